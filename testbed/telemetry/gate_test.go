// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry tests how clusters write their series to a store: with tokens of a real API server, through the
// gate, to a real Prometheus.
package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/telemetry"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/sendertoken"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const limit = 3 * time.Minute

// fixture is a hub with two clusters, its gate, and the store behind it.
type fixture struct {
	*testing.T
	admin  client.Client
	config *rest.Config
	scheme *runtime.Scheme
	store  *prometheus.Server
	gate   *httptest.Server
	// later is how far ahead the gate's clock is.
	later atomic.Int64
}

func (f *fixture) create(objects ...client.Object) {
	f.Helper()
	for _, o := range objects {
		if err := f.admin.Create(f.Context(), o); err != nil {
			f.Fatal(err)
		}
	}
}

// as is a client with the permissions of a ServiceAccount.
func (f *fixture) as(namespace, name string) client.Client {
	f.Helper()
	config := rest.CopyConfig(f.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:authenticated", "system:serviceaccounts"}}
	c, err := client.New(config, client.Options{Scheme: f.scheme})
	if err != nil {
		f.Fatal(err)
	}
	return c
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(f.scheme); err != nil {
			t.Fatal(err)
		}
	}
	f.config = testenv.APIServer(t)
	var err error
	if f.admin, err = client.New(f.config, client.Options{Scheme: f.scheme}); err != nil {
		t.Fatal(err)
	}
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring"}})
	for _, name := range []string{"prod-eu", "prod-us"} {
		f.join(name)
	}
	f.grant(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gate"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"bellwether.dev"}, Resources: []string{"fleetclusters"}, Verbs: []string{"get"}},
	}}, "bellwether-system", "gate")
	f.serve()
	return f
}

// grant binds a role to a ServiceAccount.
func (f *fixture) grant(role *rbacv1.ClusterRole, namespace, name string) {
	f.Helper()
	testenv.Grant(f, f.admin, role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}})
}

// join makes what the hub makes of a cluster, and what its agent may do: to request tokens of its own name.
func (f *fixture) join(name string) {
	f.Helper()
	namespace := v1alpha1.ClusterNamespace(name)
	at := metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.AgentServiceAccount}
	f.create(&v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.ServiceAccount{ObjectMeta: at},
		&rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
			Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{at.Name},
			Verbs: []string{"create"}}}},
		&rbacv1.RoleBinding{ObjectMeta: at,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: at.Name}}})
}

// serve starts the store and the gate.
func (f *fixture) serve() {
	f.Helper()
	paths, err := build.Ensure(f.Context(), f.Output(), build.Prometheus)
	if err != nil {
		f.Fatal(err)
	}
	f.store, err = prometheus.Start(f.Context(), prometheus.Options{Dir: f.TempDir(), Binary: paths[build.Prometheus],
		Receive: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { f.store.Stop(context.Background()) })
	address, err := url.Parse(f.store.URL() + "/api/v1/write")
	if err != nil {
		f.Fatal(err)
	}
	now := func() time.Time { return time.Now().Add(time.Duration(f.later.Load())) }
	tokens := &telemetry.Tokens{Hub: f.as("bellwether-system", "gate"), Now: now}
	gate, err := telemetry.NewGate(telemetry.GateOptions{Authenticate: tokens.Cluster,
		Metrics: promclient.NewRegistry(), Now: now,
		Store: telemetry.Store{URL: address, Client: http.DefaultClient}})
	if err != nil {
		f.Fatal(err)
	}
	f.gate = httptest.NewServer(gate)
	f.Cleanup(f.gate.Close)
}

// send writes a slice of a cluster with a token.
func (f *fixture) send(token, cluster string) *http.Response {
	f.Helper()
	raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Labels: []prompb.Label{
		{Name: "__name__", Value: series.SLIBad}, {Name: "cluster", Value: cluster}, {Name: "sli", Value: "csv"}},
		Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 1}}}}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	request, err := http.NewRequestWithContext(f.Context(), http.MethodPost, f.gate.URL+"/api/v1/write",
		bytes.NewReader(snappy.Encode(nil, raw)))
	if err != nil {
		f.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	_ = response.Body.Close()
	return response
}

func (f *fixture) eventually(what string, check func(context.Context) error) {
	f.Helper()
	testenv.Eventually(f, limit, what, check)
}

// TestClustersWriteForThemselves has agents keep tokens for their Prometheuses, and these write.
func TestClustersWriteForThemselves(t *testing.T) {
	f := newFixture(t)
	namespace := v1alpha1.ClusterNamespace("prod-eu")
	agent := f.as(namespace, v1alpha1.AgentServiceAccount)
	secret := types.NamespacedName{Namespace: "monitoring", Name: "sender"}
	publisher := &sendertoken.Publisher{Source: sendertoken.Source{Hub: agent, Namespace: namespace}, Local: f.admin,
		Secret: secret}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- publisher.Start(ctx) }()
	var token string
	f.eventually("the agent keeps a token for the Prometheus of its cluster", func(ctx context.Context) error {
		var kept corev1.Secret
		if err := f.admin.Get(ctx, secret, &kept); err != nil {
			return err
		}
		token = string(kept.Data[slo.SenderTokenKey])
		return nil
	})
	cancel()
	if err := <-ended; err != nil || strings.Count(token, ".") != 2 {
		t.Fatalf("it ends with %v, and the token is %q", err, token)
	}

	wants := func(what string, code int, got *http.Response) {
		t.Helper()
		if got.StatusCode != code {
			t.Errorf("%s: %s, want %d", what, got.Status, code)
		}
		if retry := got.Header.Get("Retry-After"); (retry != "") != (code == 503) {
			t.Errorf("%s: the sender is to send it again after %q", what, retry)
		}
	}
	wants("its own series", 204, f.send(token, "prod-eu"))
	wants("another cluster's series", 403, f.send(token, "prod-us"))
	wants("no token", 401, f.send("", "prod-eu"))
	wants("rubbish", 401, f.send("rubbish", "prod-eu"))
	wants("a token for the hub itself", 401, f.send(f.tokenOf("bellwether-prod-eu", "bellwether-agent"), "prod-eu"))
	f.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}})
	wants("another ServiceAccount", 401, f.send(f.tokenOf(namespace, "other", telemetry.Audience), "prod-eu"))
	f.eventually("the store has what is a cluster's own, and nothing else", func(ctx context.Context) error {
		found, err := f.store.Query(ctx, `count by (cluster) ({__name__=~"bellwether.+"})`, time.Time{})
		if err != nil || len(found) != 1 || found[0].Metric["cluster"] != "prod-eu" || found[0].Value != 1 {
			return fmt.Errorf("it has %v, %w", found, err)
		}
		return nil
	})
	// The token opens nothing on the hub, and an agent gets none of another cluster.
	if err := f.with(token).Get(t.Context(), types.NamespacedName{Name: "default"}, &corev1.Namespace{}); err == nil ||
		!strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("the API server takes the token: %v", err)
	}
	if got, _, _, err := (sendertoken.Source{Hub: agent,
		Namespace: v1alpha1.ClusterNamespace("prod-us")}).Request(t.Context()); err == nil {
		t.Errorf("an agent got a token of another cluster: %q", got)
	}

	f.store.Kill()
	wants("the store is down", 503, f.send(token, "prod-eu"))
	if err := f.store.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants("the store is back", 204, f.send(token, "prod-eu"))

	// What is revoked ends within a minute.
	if err := f.admin.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: v1alpha1.AgentServiceAccount}}); err != nil {
		t.Fatal(err)
	}
	f.later.Store(int64(2 * time.Minute))
	f.eventually("a revoked token is refused", func(context.Context) error {
		if got := f.send(token, "prod-eu"); got.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("the answer is %s", got.Status)
		}
		return nil
	})
}

// tokenOf is a token of a ServiceAccount, for the API server if for no other audience.
func (f *fixture) tokenOf(namespace, name string, audiences ...string) string {
	f.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if err := f.admin.SubResource("token").Create(f.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name}}, request); err != nil {
		f.Fatal(err)
	}
	return request.Status.Token
}

// with is a client that shows a token.
func (f *fixture) with(token string) client.Client {
	f.Helper()
	config := rest.AnonymousClientConfig(f.config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: f.scheme, Mapper: f.admin.RESTMapper()})
	if err != nil {
		f.Fatal(err)
	}
	return c
}
