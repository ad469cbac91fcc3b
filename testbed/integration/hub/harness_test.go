// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub tests the hub's controllers against a real API server and its
// controller-manager. The hub runs in the test's process, but as the user and
// with exactly the permissions that the chart gives it; the tests play the
// agents with tokens of their ServiceAccounts.
package hub

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	hubcontrollers "github.com/bellwether-dev/bellwether/controllers/hub"
	"github.com/bellwether-dev/bellwether/controllers/hub/catalog"
	"github.com/bellwether-dev/bellwether/controllers/hub/fleet"
	"github.com/bellwether-dev/bellwether/controllers/hub/operator"
	"github.com/bellwether-dev/bellwether/controllers/hub/paging"
	"github.com/bellwether-dev/bellwether/controllers/hub/silence"
	"github.com/bellwether-dev/bellwether/controllers/hub/slo"
	"github.com/bellwether-dev/bellwether/controllers/hub/window"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestMain has the tests with a cluster of their own run at the same time, after the others: they wait for leases and
// clusters rather than compute, so that more of them run than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(testenv.Main(m))
}

const (
	patience = 5 * time.Minute
	look     = 50 * time.Millisecond

	hubNamespace = "bellwether-system"
	hubVersion   = "0.3.0"
	hubUser      = "system:serviceaccount:" + hubNamespace + ":bellwether-hub"
)

// harness is the cluster, seen by its administrator, and the hub that runs on it.
type harness struct {
	client.Client
	cluster *cluster.Cluster
	scheme  *runtime.Scheme
	whole   bool
	metrics *prometheus.Registry
	slo     slo.Options
	paging  paging.Options
	silence silence.Options
	// configure changes how the hub reaches its API server.
	configure []func(*rest.Config)

	stop func()
}

var shared = sync.OnceValues(func() (*harness, error) { return &harness{scheme: runtime.NewScheme()}, nil })

// start returns the hub that most tests of this package share. It has no
// rollout controller: the tests play it.
func start(t *testing.T) *harness {
	t.Helper()
	h, err := shared()
	must(t, err)
	if h.cluster == nil {
		h.prepare(t, testenv.Shared(t, cluster.Options{}))
		h.startHub(t)
	}
	return h
}

// startWhole returns a hub of the test's own, with every controller that the
// program has. Tests with a hub of their own are parallel.
func startWhole(t *testing.T, configure ...func(*rest.Config)) *harness {
	t.Helper()
	h := &harness{scheme: runtime.NewScheme(), whole: true, configure: configure}
	h.prepare(t, testenv.Cluster(t, cluster.Options{}))
	h.startHub(t)
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *harness) prepare(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(testLog{})))
	must(t, clientgoscheme.AddToScheme(h.scheme))
	must(t, v1alpha1.AddToScheme(h.scheme))
	testenv.InstallCRDs(t, c)
	var err error
	h.Client, err = client.New(c.RESTConfig(), client.Options{Scheme: h.scheme})
	must(t, err)
	h.installChart(t)
	h.cluster = c
}

// testLog shows what the hub logs when tests run with -v.
type testLog struct{}

func (testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		return os.Stderr.Write(p)
	}
	return len(p), nil
}

// installChart installs what the chart gives the hub, but for its Deployment. The hub may read the Secret pagerduty of
// its own namespace.
func (h *harness) installChart(t *testing.T) {
	t.Helper()
	objects, err := hubchart.Objects(hubNamespace, map[string]any{"paging": map[string]any{
		"secrets": []any{map[string]any{"namespace": hubNamespace, "name": "pagerduty"}}}})
	must(t, err)
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(hubNamespace)
	must(t, h.Create(t.Context(), namespace))
	for _, object := range objects {
		must(t, h.Create(t.Context(), object))
	}
}

// startHub runs the controllers under test with the chart's permissions.
func (h *harness) startHub(t *testing.T) {
	t.Helper()
	config, err := h.cluster.UserConfig(hubUser, "system:serviceaccounts", "system:serviceaccounts:"+hubNamespace)
	must(t, err)
	for _, change := range h.configure {
		change(config)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: h.scheme, Cache: hubcontrollers.Cache(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: skipNameValidation(),
	})
	must(t, err)
	h.addControllers(t, mgr)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	h.stop = func() {
		cancel()
		<-ended
	}
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatalf("the hub's cache does not fill: %v", <-ended)
	}
}

func (h *harness) addControllers(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	catalogs := hubcontrollers.NewCatalogs("")
	if h.whole {
		h.metrics = prometheus.NewRegistry()
		h.silence.Namespace, h.silence.Recheck = hubNamespace, time.Second
		h.paging.Namespace, h.paging.Recheck = hubNamespace, time.Second
		must(t, hubcontrollers.Add(mgr, hubcontrollers.Options{Concurrency: 4, Catalogs: catalogs, Metrics: h.metrics,
			SLO: h.slo, Paging: h.paging, Silence: h.silence}))
		return
	}
	must(t, kit.IndexInstalls(t.Context(), mgr.GetFieldIndexer()))
	must(t, fleet.Add(mgr, fleet.Options{Concurrency: 4, Namespace: hubNamespace, Version: hubVersion}))
	catalogs.ReadSecrets(mgr.GetAPIReader(), "bellwether-system:bellwether-hub")
	must(t, catalog.Add(mgr, catalogs, 2))
	must(t, operator.Add(mgr, catalogs, 2))
	must(t, window.Add(mgr, 2))
}

func (h *harness) restartHub(t *testing.T) {
	t.Helper()
	h.stop()
	h.startHub(t)
}

func skipNameValidation() config.Controller {
	yes := true
	return config.Controller{SkipNameValidation: &yes}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until there is no objection.
func eventually(t *testing.T, objection func() error) {
	t.Helper()
	testenv.Eventually(t, patience, testenv.Caller(), func(context.Context) error { return objection() })
}

// holds asks again and again for a while and fails at the first objection.
func holds(t *testing.T, long time.Duration, objection func() error) {
	t.Helper()
	end := time.After(long)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := objection(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-end:
			return
		case <-ticker.C:
		}
	}
}

// state is what a person reads from an object: Ready's status or Stalled, and
// the reason.
func state(o kit.Object) string {
	ready := conditions.Get(*o.StatusConditions(), v1alpha1.ConditionReady)
	text := string(ready.Status)
	if conditions.IsTrue(*o.StatusConditions(), v1alpha1.ConditionStalled) {
		text = "Stalled"
	}
	return text + " " + ready.Reason
}

func (h *harness) reaches(t *testing.T, o kit.Object, want string, contains ...string) {
	t.Helper()
	testenv.Eventually(t, patience, fmt.Sprintf("%T is %s", o, want), func(context.Context) error {
		return h.is(t, o, want, contains...)
	})
}

func (h *harness) is(t *testing.T, o kit.Object, want string, contains ...string) error {
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	ready := conditions.Get(*o.StatusConditions(), v1alpha1.ConditionReady)
	if got := state(o); got != want {
		return fmt.Errorf("%T %s is %q (%s), want %q", o, o.GetName(), got, ready.Message, want)
	}
	for _, part := range contains {
		if !strings.Contains(ready.Message, part) {
			return fmt.Errorf("%T %s says %q, want %q in it", o, o.GetName(), ready.Message, part)
		}
	}
	return nil
}

// gone objects to an object that is still there.
func (h *harness) gone(t *testing.T, o client.Object) {
	t.Helper()
	eventually(t, func() error {
		err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("%T %s is still there", o, client.ObjectKeyFromObject(o))
		}
		return client.IgnoreNotFound(err)
	})
}

// change reads an object and patches what edit changes.
func (h *harness) change(t *testing.T, o client.Object, edit func()) {
	t.Helper()
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	edit()
	must(t, h.Patch(t.Context(), o, client.MergeFrom(before)))
}

func (h *harness) changeStatus(t *testing.T, o client.Object, edit func()) {
	t.Helper()
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	edit()
	must(t, h.Status().Patch(t.Context(), o, client.MergeFrom(before)))
}

// as returns a client for another configuration.
func (h *harness) as(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: h.scheme})
	must(t, err)
	return c
}

var errNotYet = errors.New("not yet")
