// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/controllers/credentials"
)

// silent is an API server that takes requests and never answers. It tells of each.
func silent(t *testing.T) (*rest.Config, <-chan string) {
	t.Helper()
	asked := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // Close would wait for the answers
		server.Close()
	})
	return &rest.Config{Host: server.URL}, asked
}

// keeps returns a store of credentials for a hub.
func keeps(hub *rest.Config) func(cluster.Cluster) (credentials.Store, error) {
	return func(cluster.Cluster) (credentials.Store, error) { return kept(hub.Host), nil }
}

type kept string

func (k kept) Load(context.Context) (config, renewed []byte, err error) {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: c, cluster: `+
		`{server: %q}}], contexts: [{name: x, context: {cluster: c}}]}`, string(k)), nil, nil
}

func (k kept) Save(context.Context, []byte) error { return nil }

// TestSeveralAgentsInOneProcess: agents that wait for API servers that never answer do
// not keep each other from starting, and end when they are told.
func TestSeveralAgentsInOneProcess(t *testing.T) {
	p, err := newProcess(flags{hostedNamespace: "hosting", viewPort: "50100-50999", viewBind: "127.0.0.1",
		cacheDir: t.TempDir(), leaseEvery: 100 * time.Millisecond, leaseFor: time.Second, countEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	for i, name := range []string{"a", "b", "c"} {
		hub, _ := silent(t)
		local, localAsked := silent(t)
		target := target{cluster: name, namespace: "bellwether-" + name, store: keeps(hub), local: local,
			metricsAddr: "0", healthAddr: "0", ports: serve.Ports{First: 50100 + 10*i, Last: 50109 + 10*i},
			metrics: prometheus.NewRegistry()}
		go func() {
			ended <- p.serve(ctx, target, func() { t.Errorf("cluster %s has started without an API server", name) })
		}()
		next(t, localAsked)
	}
	stop()
	for range 3 {
		select {
		case err := <-ended:
			t.Log(err)
		case <-time.After(patience):
			t.Fatal("an agent does not end")
		}
	}
}
