// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	adminUser = "admin"
	// masters is the group that RBAC always lets pass.
	masters = "system:masters"
)

// Kubeconfig returns the path of a kubeconfig with all rights.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig", adminUser+".yaml") }

// CAFile returns the path of the certificate authority that signs the API server's certificate.
func (c *Cluster) CAFile() string { return c.path("pki", fileCA) }

// UserConfig returns a client configuration that authenticates by certificate as user, member of groups, so that tests
// act with exactly the rights that RBAC gives to them.
func (c *Cluster) UserConfig(user string, groups ...string) (*rest.Config, error) {
	credentials, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %s: %w", user, err)
	}
	return &rest.Config{
		Host: c.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.ca.pem,
			CertData: credentials.certificate,
			KeyData:  credentials.key,
		},
		QPS: -1,
	}, nil
}

// WriteKubeconfig writes a kubeconfig that authenticates as user, member of groups, into the cluster's folder under the
// given name and returns its path.
func (c *Cluster) WriteKubeconfig(name, user string, groups ...string) (string, error) {
	config, err := c.UserConfig(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeConfig(name, config)
}

func (c *Cluster) writeConfig(name string, config *rest.Config) (string, error) {
	path := c.path("kubeconfig", name+".yaml")
	kubeconfig := api.NewConfig()
	kubeconfig.Clusters[c.opts.Name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts[c.opts.Name] = &api.Context{Cluster: c.opts.Name, AuthInfo: name}
	kubeconfig.CurrentContext = c.opts.Name
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

// writeAdmin sets up the access that the testbed itself and its user have.
func (c *Cluster) writeAdmin() error {
	config, err := c.UserConfig("testbed-"+adminUser, masters)
	if err != nil {
		return err
	}
	c.config = config
	_, err = c.writeConfig(adminUser, config)
	return err
}
