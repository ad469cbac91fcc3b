// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// APIServer is the API server of the agent's own cluster. It caches nothing, and has separate
// connections, so that a check never waits for a watch.
type APIServer struct {
	client *corev1.CoreV1Client // a client for all APIs would add 8 MB to the agent
	http   *http.Client
}

// dialTimeout limits the time to open one connection.
const dialTimeout = 5 * time.Second

// NewAPIServer returns the API server of a configuration. It does not connect yet.
func NewAPIServer(config *rest.Config) (*APIServer, error) {
	config = rest.CopyConfig(config)
	// client-go shares connections between equal configurations. A separate dialer makes
	// this configuration different.
	config.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	config.RateLimiter, config.QPS = nil, -1
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make transport for the fleet cluster: %w", err)
	}
	client, err := corev1.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make client for the fleet cluster: %w", err)
	}
	return &APIServer{client: client, http: transport}, nil
}

var errNotAnAPIServer = errors.New("the answer is not from a Kubernetes API server")

// Check returns an error unless the API server reads the namespace kube-system from etcd. A
// health endpoint is not sufficient: a load balancer can answer 200 by itself, and a watch
// cache answers without etcd.
func (a *APIServer) Check(ctx context.Context) error {
	namespace, err := a.client.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err == nil && (namespace.Name != metav1.NamespaceSystem || namespace.UID == "") {
		err = errNotAnAPIServer
	}
	if err != nil {
		// A broken connection must not be used for the next check.
		utilnet.CloseIdleConnectionsFor(a.http.Transport)
		return fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return nil
}

// Version returns the version of Kubernetes, such as v1.34.1.
func (a *APIServer) Version(ctx context.Context) (string, error) {
	text, err := a.client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("read version: %w", err)
	}
	var info version.Info
	if err := json.Unmarshal(text, &info); err != nil {
		return "", fmt.Errorf("decode version: %w", err)
	}
	return info.GitVersion, nil
}
