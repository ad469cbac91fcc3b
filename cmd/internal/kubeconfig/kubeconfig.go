// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig checks kubeconfigs from untrusted authors. A kubeconfig can make the
// program that loads it run other programs, read files and send credentials to any server. A
// kubeconfig from a Secret must not be able to do that.
package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrRefused means that a kubeconfig would do more than connect to an API server with the
// credentials that it contains.
var ErrRefused = errors.New("the kubeconfig is refused")

// Check reads a kubeconfig and returns it as a text that contains only its current context. A
// program that loads the text runs no other program and reads no file, and sends the
// credentials to one server only, over verified TLS. A kubeconfig with an entry that does
// anything else is refused, even if its current context does not use the entry. The error wraps
// ErrRefused and names the field.
func Check(text []byte) ([]byte, error) {
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it is no kubeconfig") // the parser's error may quote credentials
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		if err := checkUser(config.AuthInfos[name]); err != nil {
			return nil, fmt.Errorf("%w: user %q: %w", ErrRefused, name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		if err := checkCluster(config.Clusters[name]); err != nil {
			return nil, fmt.Errorf("%w: cluster %q: %w", ErrRefused, name, err)
		}
	}
	reduced, err := reduceToCurrent(config)
	if err != nil {
		return nil, err
	}
	checked, err := clientcmd.Write(*reduced)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return checked, nil
}

// checkUser returns an error if a user would run a program or read a file.
func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user == nil:
		return errors.New("it is empty")
	case user.Exec != nil:
		return errors.New("exec would run a program")
	case user.AuthProvider != nil:
		return errors.New("auth-provider would run a plugin")
	case user.ClientCertificate != "":
		return errors.New("client-certificate would read a file; only client-certificate-data is used")
	case user.ClientKey != "":
		return errors.New("client-key would read a file; only client-key-data is used")
	case user.TokenFile != "":
		return errors.New("tokenFile would read a file; only token is used")
	}
	return nil
}

// checkCluster returns an error if a cluster would read a file, or send credentials to another
// server or over unverified TLS.
func checkCluster(cluster *clientcmdapi.Cluster) error {
	switch {
	case cluster == nil:
		return errors.New("it is empty")
	case cluster.CertificateAuthority != "":
		return errors.New("certificate-authority would read a file; only certificate-authority-data is used")
	case cluster.ProxyURL != "":
		return errors.New("proxy-url would send the connection to another server")
	case cluster.InsecureSkipTLSVerify:
		return errors.New("insecure-skip-tls-verify would send credentials to any server that answers")
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil {
		return errors.New("server must be a URL of the form https://HOST:PORT")
	}
	return nil
}

// reduceToCurrent returns a configuration with only the current context,
// its user and its cluster.
func reduceToCurrent(config *clientcmdapi.Config) (*clientcmdapi.Config, error) {
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, errors.New("the kubeconfig has no current context")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, errors.New("the current context of the kubeconfig names a cluster or a user that is not in it")
	}
	reduced := clientcmdapi.NewConfig()
	reduced.Clusters["cluster"] = &clientcmdapi.Cluster{Server: cluster.Server, TLSServerName: cluster.TLSServerName,
		CertificateAuthorityData: cluster.CertificateAuthorityData}
	reduced.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.ClientCertificateData,
		ClientKeyData: user.ClientKeyData, Token: user.Token, Username: user.Username, Password: user.Password,
		Impersonate: user.Impersonate, ImpersonateUID: user.ImpersonateUID, ImpersonateGroups: user.ImpersonateGroups,
		ImpersonateUserExtra: user.ImpersonateUserExtra}
	reduced.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	reduced.CurrentContext = "cluster"
	return reduced, nil
}
