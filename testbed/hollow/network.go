// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/transport"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// errCut is what a request of a cluster that is cut off fails with.
var errCut = errors.New("hollow network: the cluster is cut off from the hub")

// network carries the requests of all agents to the hub. It knows by the namespace in its path whose request one is:
// it makes the request as that cluster's agent, delays it, and fails it while the cluster is cut off. What is in no
// cluster's namespace, such as the one watch of all of them, passes as it is.
type network struct {
	next http.RoundTripper
	// clusters by their namespace on the hub.
	clusters map[string]*cluster
	latency  func(*cluster) time.Duration
	// requests counts those of agents that reached the hub.
	requests *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(request *http.Request) (*http.Response, error) {
	namespace := namespaceOf(request.URL.Path)
	c, ok := n.clusters[namespace]
	if !ok {
		return n.next.RoundTrip(request)
	}
	if c.isCut() {
		return nil, errCut
	}
	if delay := n.latency(c); delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	n.requests.Add(1)
	request = request.Clone(request.Context())
	request.Header.Set(transport.ImpersonateUserHeader,
		"system:serviceaccount:"+namespace+":"+v1alpha1.AgentServiceAccount)
	for _, group := range []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace,
		"system:authenticated"} {
		request.Header.Add(transport.ImpersonateGroupHeader, group)
	}
	return n.next.RoundTrip(request)
}

// namespaceOf returns the namespace in the path of a request; empty where there is none.
func namespaceOf(path string) string {
	_, rest, found := strings.Cut(path, "/namespaces/")
	if !found {
		return ""
	}
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}
