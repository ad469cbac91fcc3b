// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout tests the rollout controller against a real API server, with
// the permissions that the chart gives the hub. The tests play the fleet: they
// enroll clusters and do the agents' part. A recorder reads the API server's
// own record of what was written, so that what is asserted is the truth and
// not what any hub believed.
package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	server "github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	hubcontrollers "github.com/bellwether-dev/bellwether/controllers/hub"
	"github.com/bellwether-dev/bellwether/controllers/hub/changeevents"
	"github.com/bellwether-dev/bellwether/controllers/hub/paging"
	"github.com/bellwether-dev/bellwether/controllers/hub/rollout"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(testLog{})))
	os.Exit(testenv.Main(m))
}

// testLog shows what the hub logs when tests run with -v.
type testLog struct{}

func (testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		return os.Stderr.Write(p)
	}
	return len(p), nil
}

const (
	patience = 8 * time.Minute
	look     = 30 * time.Millisecond
	hubUser  = "rollout-test-hub"
)

// fixture is a fleet of its own on the shared API server.
type fixture struct {
	client.WithWatch
	t         *testing.T
	namespace string
	// tag keeps the fleets of the tests apart.
	tag      string
	hub      *rest.Config
	scheme   *runtime.Scheme
	recorder *recorder
	// metrics are those of the hub that was started last.
	metrics *prometheus.Registry
	// prometheus is what hubs measure by.
	prometheus server.Endpoint
	// changeEvents has hubs send them to these hosts, as policies of the fleet's namespace say.
	changeEvents pagerduty.Hosts
}

// preparing is held while the API server that all tests share is set up.
var preparing sync.Mutex

func newFixture(t *testing.T) *fixture {
	t.Helper()
	preparing.Lock()
	c := testenv.Shared(t, cluster.Options{APIServerOnly: true})
	testenv.InstallCRDs(t, c)
	preparing.Unlock()
	f := newFixtureOn(t, c)
	f.grantHub()
	var err error
	f.hub, err = c.UserConfig(hubUser)
	must(t, err)
	return f
}

// newWorldOn returns a fleet on a cluster that has the CRDs. Its hub has no permissions.
func newFixtureOn(t *testing.T, c *cluster.Cluster) *fixture {
	t.Helper()
	f := &fixture{t: t, tag: utilrand.String(5), scheme: runtime.NewScheme()}
	must(t, clientgoscheme.AddToScheme(f.scheme))
	must(t, v1alpha1.AddToScheme(f.scheme))
	var err error
	f.WithWatch, err = client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: f.scheme})
	must(t, err)
	f.namespace = testenv.Namespace(t, c.RESTConfig(), "rollout")
	f.watch()
	return f
}

// grantHub gives the hub's user the permissions that the chart gives the hub.
func (f *fixture) grantHub() {
	f.t.Helper()
	root, err := build.Root()
	must(f.t, err)
	text, err := os.ReadFile(filepath.Join(root, "charts", "bellwether", "files", "hub-rules.yaml"))
	must(f.t, err)
	role := &rbacv1.ClusterRole{}
	must(f.t, yaml.Unmarshal(text, role))
	role.Name = "rollout-test-hub"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: hubUser}},
	}
	testenv.Grant(f.t, f, role, binding)
}

// startHub runs a hub with a cache of its own until stop is called. Leader
// election is left out on purpose: tests run two at a time.
func (f *fixture) startHub() (stop func()) {
	f.t.Helper()
	yes := true
	// A hub of another test would take this one's rollouts on.
	own := labels.SelectorFromSet(labels.Set{v1alpha1.LabelOperatorNamespace: f.namespace})
	caches := hubcontrollers.Cache()
	caches.ByObject[&v1alpha1.OperatorRollout{}] = cache.ByObject{Namespaces: map[string]cache.Config{f.namespace: {}}}
	caches.ByObject[&v1alpha1.OperatorInstall{}] = cache.ByObject{Label: own}
	mgr, err := ctrl.NewManager(f.hub, ctrl.Options{
		Scheme: f.scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	must(f.t, err)
	must(f.t, kit.IndexInstalls(f.t.Context(), mgr.GetFieldIndexer()))
	f.metrics = prometheus.NewRegistry()
	must(f.t, rollout.Add(mgr, rollout.Options{Concurrency: 4, Metrics: f.metrics, Prometheus: f.prometheus}))
	must(f.t, f.metrics.Register(rollout.Gauges(mgr)))
	if f.changeEvents != nil {
		must(f.t, paging.Add(mgr, paging.Options{Namespace: f.namespace, PagerDuty: f.changeEvents}))
		must(f.t, changeevents.Add(mgr, changeevents.Options{Concurrency: 2, PagerDuty: f.changeEvents}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("hub: %v", err)
		}
	})
}

// enroll adds an online cluster, as the fleet controller would.
func (f *fixture) enroll(name string, extra map[string]string) string {
	f.t.Helper()
	name = name + "-" + f.tag
	fc := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"fleet": f.tag}}}
	for k, v := range extra {
		fc.Labels[k] = v
	}
	must(f.t, f.Create(f.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterNamespace(name)}}))
	must(f.t, f.Create(f.t.Context(), fc))
	f.changeStatus(fc, func() {
		fc.Status.Namespace = v1alpha1.ClusterNamespace(name)
		conditions.Set(&fc.Status.Conditions, fc.Generation, v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh,
			"alive")
	})
	return name
}

func (f *fixture) enrollMany(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = f.enroll(fmt.Sprintf("c%02d", i), nil)
	}
	return names
}

func (f *fixture) online(name string, online bool) {
	f.t.Helper()
	fc := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.changeStatus(fc, func() {
		conditions.Set(&fc.Status.Conditions, fc.Generation, v1alpha1.ConditionOnline, online,
			v1alpha1.ReasonLeaseExpired, "as the test says")
	})
}

// start creates a rollout as the operator controller would.
func (f *fixture) start(revision int64, strategy v1alpha1.RolloutStrategy) *v1alpha1.OperatorRollout {
	f.t.Helper()
	return f.startWith(revision, strategy, nil)
}

// startWith creates a rollout of a release with requirements.
func (f *fixture) startWith(revision int64, strategy v1alpha1.RolloutStrategy,
	needs *v1alpha1.ReleaseRequirements) *v1alpha1.OperatorRollout {
	f.t.Helper()
	ro := &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: fmt.Sprintf("echo-%d", revision)},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: revision,
			Release: v1alpha1.Release{
				Package: "echo-operator", Channel: "stable", Version: fmt.Sprintf("1.%d.0", revision),
				Bundle: fmt.Sprintf("echo-operator.v1.%d.0", revision),
				Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: "registry.example/catalog:1"},
					Digest: "sha256:" + strings.Repeat("a", 64)},
				Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallAllNamespaces},
			},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": f.tag}},
			Strategy:        rollouts.Defaulted(strategy),
			Requirements:    needs,
		},
	}
	must(f.t, f.Create(f.t.Context(), ro))
	return ro
}

func wave(name string, concurrency int32) v1alpha1.Wave {
	n := intstr.FromInt32(concurrency)
	return v1alpha1.Wave{Name: name, MaxConcurrency: &n}
}

func sized(w v1alpha1.Wave, size int32) v1alpha1.Wave {
	n := intstr.FromInt32(size)
	w.Size = &n
	return w
}

// reaches waits until the rollout is in a phase and says every part.
func (f *fixture) reaches(ro *v1alpha1.OperatorRollout, phase v1alpha1.RolloutPhase, parts ...string) {
	f.t.Helper()
	f.eventually(func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
			return err
		}
		ready := conditions.Get(ro.Status.Conditions, v1alpha1.ConditionReady)
		said := fmt.Sprintf("%s %s %s %s", ro.Status.Phase, ready.Status, ready.Reason, ready.Message)
		if ro.Status.Phase != phase {
			return fmt.Errorf("%s is %q, want %s", ro.Name, said, phase)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				return fmt.Errorf("%s is %q, want %q in it", ro.Name, said, part)
			}
		}
		return nil
	})
}

func (f *fixture) eventually(objection func() error) {
	f.t.Helper()
	testenv.Eventually(f.t, patience, testenv.Caller(), func(context.Context) error { return objection() })
}

func (f *fixture) change(o client.Object, edit func()) {
	f.t.Helper()
	must(f.t, f.Get(f.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	edit()
	must(f.t, f.Patch(f.t.Context(), o, client.MergeFrom(before)))
}

func (f *fixture) changeStatus(o client.Object, edit func()) {
	f.t.Helper()
	must(f.t, f.Get(f.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	edit()
	must(f.t, f.Status().Patch(f.t.Context(), o, client.MergeFrom(before)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recorder follows every write to the fleet's OperatorInstalls in order.
type recorder struct {
	mu sync.Mutex
	// installs by namespace and name.
	installs map[string]*v1alpha1.OperatorInstall
	// peak is the most clusters of a rollout's wave that were ever in progress
	// at a time.
	peak map[string]int
	// admitted lists clusters by rollout, in the order of admission.
	admitted map[string][]string
	// together lists admissions of clusters on which another operator was changing.
	together []string
}

func (f *fixture) watch() {
	f.t.Helper()
	f.recorder = &recorder{installs: map[string]*v1alpha1.OperatorInstall{}, peak: map[string]int{},
		admitted: map[string][]string{}}
	events, err := f.Watch(f.t.Context(), &v1alpha1.OperatorInstallList{})
	must(f.t, err)
	f.t.Cleanup(events.Stop)
	go func() {
		for e := range events.ResultChan() {
			if at, ok := e.Object.(*v1alpha1.OperatorInstall); ok && at.Spec.Operator.Namespace == f.namespace {
				f.recorder.note(e.Type, at)
				f.reportNothingKept(at)
			}
		}
	}()
}

// reportNothingKept does what every agent does first with an install.
func (f *fixture) reportNothingKept(at *v1alpha1.OperatorInstall) {
	if at.Spec.Admission != nil || at.Status.ObservedGeneration > 0 {
		return
	}
	reported := at.DeepCopy()
	reported.Status.ObservedGeneration = at.Generation
	if err := f.Status().Patch(f.t.Context(), reported, client.MergeFrom(at)); client.IgnoreNotFound(err) != nil &&
		f.t.Context().Err() == nil {
		f.t.Logf("agent of %s: %v", at.Spec.Cluster, err)
	}
}

func (v *recorder) note(kind watch.EventType, at *v1alpha1.OperatorInstall) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := at.Namespace + "/" + at.Name
	before := v.installs[key]
	if kind == watch.Deleted {
		delete(v.installs, key)
		return
	}
	v.installs[key] = at
	a := at.Spec.Admission
	if a == nil || before != nil && before.Spec.Admission != nil && before.Spec.Admission.RolloutUID == a.RolloutUID {
		return
	}
	v.admitted[a.Rollout] = append(v.admitted[a.Rollout], at.Spec.Cluster)
	running := 0
	for _, other := range v.installs {
		if o := other.Spec.Admission; o != nil && o.Rollout == a.Rollout && o.Wave == a.Wave &&
			other.Status.SucceededHash != o.Hash {
			running++
		}
	}
	wave := a.Rollout + "/" + a.Wave
	v.peak[wave] = max(v.peak[wave], running)
	v.noteOthers(at)
}

// noteOthers looks for other operators that change on the cluster of an admission.
func (v *recorder) noteOthers(at *v1alpha1.OperatorInstall) {
	for _, other := range v.installs {
		if o := other.Spec.Admission; other.Name != at.Name && other.Spec.Cluster == at.Spec.Cluster && o != nil &&
			other.Status.SucceededHash != o.Hash {
			v.together = append(v.together, fmt.Sprintf("%s: %s and %s", at.Spec.Cluster, at.Name, other.Name))
		}
	}
}

func (v *recorder) peakOf(key string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peak[key]
}

func (v *recorder) admittedBy(rollout string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.admitted[rollout])
}

// unfinished are admitted installs that did not succeed yet, or whose agent has
// not reported on their spec as it is.
func (v *recorder) unfinished() []*v1alpha1.OperatorInstall {
	v.mu.Lock()
	defer v.mu.Unlock()
	var result []*v1alpha1.OperatorInstall
	for _, at := range v.installs {
		if a := at.Spec.Admission; a != nil && (at.Status.SucceededHash != a.Hash ||
			at.Status.ObservedGeneration != at.Generation) {
			result = append(result, at.DeepCopy())
		}
	}
	return result
}

// runAgents does the agents' part until the test ends: each admission succeeds
// after a while, on clusters that are not sick.
func (f *fixture) runAgents(sick ...string) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var done sync.WaitGroup
	f.t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for {
			for _, at := range f.recorder.unfinished() {
				if rand.IntN(5) == 0 {
					f.report(ctx, at, !slices.Contains(sick, at.Spec.Cluster))
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// report writes what the agent would. A conflict means that the spec changed
// meanwhile; the next round sees it.
func (f *fixture) report(ctx context.Context, at *v1alpha1.OperatorInstall, success bool) {
	before := at.DeepCopy()
	at.Status.ObservedGeneration = at.Generation
	if success {
		at.Status.SucceededHash = at.Spec.Admission.Hash
	}
	conditions.Set(&at.Status.Conditions, at.Generation, v1alpha1.ConditionStalled, !success, v1alpha1.ReasonCSVFailed,
		"as the test says")
	conditions.Set(&at.Status.Conditions, at.Generation, v1alpha1.ConditionReady, success, v1alpha1.ReasonCSVFailed,
		"as the test says")
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := f.Status().Patch(ctx, at, patch); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		f.t.Logf("agent of %s: %v", at.Spec.Cluster, err)
	}
}

// install reads the OperatorInstall of a cluster.
func (f *fixture) install(cluster string) *v1alpha1.OperatorInstall {
	f.t.Helper()
	install := &v1alpha1.OperatorInstall{}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: f.namespace + ".echo"}
	must(f.t, f.Get(f.t.Context(), key, install))
	return install
}

// setReady has the agent of a cluster report that an updated install is Ready, or
// is not.
func (f *fixture) setReady(cluster string, ready bool) {
	f.t.Helper()
	install := f.install(cluster)
	f.changeStatus(install, func() {
		conditions.Set(&install.Status.Conditions, install.Generation, v1alpha1.ConditionReady, ready,
			v1alpha1.ReasonPodsUnavailable, "as the test says")
	})
}
