// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
)

// silent starts an API server that accepts requests and never answers. It reports each request.
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

// kinds are the kinds, by group, that an agent looks up before it connects to the hub.
var kinds = map[string]struct{ resource, kind string }{
	"apiextensions.k8s.io": {"customresourcedefinitions", "CustomResourceDefinition"},
	"networking.k8s.io":    {"ingresses", "Ingress"},
	"apps":                 {"deployments", "Deployment"},
}

// answering starts an API server that serves some kinds, and has no objects. It reports Events.
func answering(t *testing.T) (*rest.Config, <-chan string) {
	t.Helper()
	emitted := make(chan string, 1000)
	answers := map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`, "/version": `{"gitVersion": "v1.36.0"}`, "/readyz": "ok",
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": ` +
			`[{"name": "services", "kind": "Service", "namespaced": true}]}`,
	}
	var groups []string
	for group, k := range kinds {
		version := group + "/v1"
		groups = append(groups, fmt.Sprintf(`{"name": %q, "versions": [{"groupVersion": %q, "version": "v1"}]}`, group,
			version))
		answers["/apis/"+version] = fmt.Sprintf(`{"kind": "APIResourceList", "groupVersion": %q, "resources": `+
			`[{"name": %q, "kind": %q}]}`, version, k.resource, k.kind)
	}
	answers["/apis"] = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [` + strings.Join(groups, ",") + "]}"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			if body, err := io.ReadAll(r.Body); err == nil && strings.HasPrefix(r.URL.Path, "/apis/events.k8s.io/") {
				emitted <- r.URL.Path + " " + string(body)
			}
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, emitted
}

// refusing is a hub that refuses all credentials.
func refusing(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", ` +
			`"message": "Unauthorized", "code": 401}`))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestEventsAreOnTheServedCluster: an agent on its own cluster has no recorder but that cluster's.
func TestEventsAreOnTheServedCluster(t *testing.T) {
	p := testProcess(t)
	local, emitted := answering(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- p.serve(ctx, target{cluster: "prod", namespace: "bellwether-prod", store: keeps(refusing(t)),
			local: local, metricsAddr: "0", healthAddr: "0", ports: serve.Ports{First: 50100, Last: 50109},
			metrics: prometheus.NewRegistry(), warnings: warnings{secret: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "kubeconfig"}}}}, func() {})
	}()
	event := next(t, emitted)
	if !strings.HasPrefix(event, "/apis/events.k8s.io/v1/namespaces/own/events ") ||
		!strings.Contains(event, "HubRefusesCredentials") {
		t.Errorf("Event %s", event)
	}
	stop()
	if err := <-ended; err != nil {
		t.Log(err)
	}
}

func testProcess(t *testing.T) *process {
	t.Helper()
	p, err := newProcess(flags{hostedNamespace: "hosting", viewPort: "50100-50999", viewBind: "127.0.0.1",
		cacheDir: t.TempDir(), leaseEvery: 100 * time.Millisecond, leaseFor: time.Second, countEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLockedOutClusterIsReported verifies that an Event on the Secret of a hosted cluster, the
// health check and the metrics report that the hub refuses the cluster's credentials.
func TestLockedOutClusterIsReported(t *testing.T) {
	p := testProcess(t)
	local, _ := answering(t)
	recorder := events.NewFakeRecorder(1000)
	super := newSupervisor(p.serve)
	t.Cleanup(super.stopAll)
	locked := target{cluster: "prod", namespace: "bellwether-prod", store: keeps(refusing(t)), local: local,
		metricsAddr: "0", healthAddr: "0", ports: serve.Ports{First: 50100, Last: 50109},
		metrics:  prometheus.NewRegistry(),
		warnings: warnings{events: recorder, secret: secretWith(func(*corev1.Secret) {})}}
	if err := super.start("s", v1, locked); err != nil {
		t.Fatal(err)
	}
	const help = "bellwether fleet join prod --hosted --cluster-kubeconfig FILE"
	event := next(t, recorder.Events)
	if !strings.Contains(event, "Warning HubRefusesCredentials ") || !strings.Contains(event, help) {
		t.Errorf("Event %s", event)
	}
	err := super.connections.Check(nil)
	if err == nil || !strings.Contains(err.Error(), "cluster prod: hub refuses my credentials since ") {
		t.Errorf("health check: %v", err)
	}
	const want = "# HELP bellwether_hosted_cluster_connected Whether the hub accepts the reports of a hosted " +
		"cluster's agent.\n# TYPE bellwether_hosted_cluster_connected gauge\n" +
		"bellwether_hosted_cluster_connected{cluster=\"prod\"} 0\n"
	if err := testutil.CollectAndCompare(&super.connections, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	super.stop("s")
	super.stopAll()
	if err := super.connections.Check(nil); err != nil {
		t.Errorf("the cluster is gone, but: %v", err)
	}
}

func (k kept) Load(context.Context) (config, renewed []byte, err error) {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: c, cluster: `+
		`{server: %q}}], contexts: [{name: x, context: {cluster: c}}]}`, string(k)), nil, nil
}

func (k kept) Save(context.Context, []byte) error { return nil }

// TestSeveralAgentsInOneProcess verifies that agents that wait for API servers without an answer
// do not prevent each other from starting, and end when they are stopped.
func TestSeveralAgentsInOneProcess(t *testing.T) {
	p := testProcess(t)
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
