// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
)

// tokenMount is where the ServiceAccount admission plugin mounts the pod's token.
const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path, no secret

// apiServer is how a pod reaches the API server.
type apiServer struct {
	url string
	ca  []byte
}

func newAPIServer(config *rest.Config) (apiServer, error) {
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return apiServer{}, fmt.Errorf("load CA: %w", err)
	}
	return apiServer{url: loaded.Host, ca: loaded.CAData}, nil
}

// writeKubeconfig writes a kubeconfig with the identity that is mounted into a
// container and returns its path, or "" for a container that has none. A pod
// that was refused a token has no other way in.
func (s apiServer) writeKubeconfig(pod *corev1.Pod, podDir string, mounts plan.Mounts) (string, error) {
	dir, ok := mounts.Dir(tokenMount)
	if !ok {
		return "", nil
	}
	const name = "pod"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: s.url, CertificateAuthorityData: s.ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(dir, "token")}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: pod.Namespace}
	config.CurrentContext = name

	file := filepath.Join(podDir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return file, nil
}
