// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery tests how FleetClusters are made of other systems' objects, on a real API
// server with the definitions of Hive, of Cluster API and of the cluster inventory from their modules.
// Only the discovery controller runs, with exactly the permissions that the chart gives the
// hub: the tests play the other systems.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/discovery"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	patience = 3 * time.Minute

	hubNamespace = "bellwether-system"
	hubUser      = "system:serviceaccount:" + hubNamespace + ":bellwether-hub"
)

// harness is an API server, seen by its administrator, and the hub's discovery on it.
type harness struct {
	client.Client
	t       *testing.T
	cluster *cluster.Cluster
	scheme  *runtime.Scheme
	stop    func()
}

// start returns an API server of the test's own that serves no kind of source yet, with the
// hub on it.
func start(t *testing.T) *harness {
	t.Helper()
	ctrl.SetLogger(zap.New(zap.WriteTo(testLog{})))
	h := &harness{t: t, cluster: testenv.Cluster(t, cluster.Options{APIServerOnly: true}), scheme: runtime.NewScheme()}
	h.must(clientgoscheme.AddToScheme(h.scheme))
	h.must(v1alpha1.AddToScheme(h.scheme))
	testenv.InstallCRDs(t, h.cluster)
	var err error
	h.Client, err = client.New(h.cluster.RESTConfig(), client.Options{Scheme: h.scheme})
	h.must(err)
	h.grant()
	h.startHub()
	t.Cleanup(func() { h.stop() })
	return h
}

type testLog struct{}

func (testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		return os.Stderr.Write(p)
	}
	return len(p), nil
}

// grant gives the hub what the chart gives it.
func (h *harness) grant() {
	h.t.Helper()
	objects, err := hubchart.Objects(hubNamespace, map[string]any{
		"discovery": map[string]any{"sources": []any{"hive", "clusterprofile", "clusterapi"}}})
	h.must(err)
	for _, object := range objects {
		if kind := object.GetKind(); kind == "ClusterRole" || kind == "ClusterRoleBinding" {
			h.must(h.Create(h.t.Context(), object))
		}
	}
}

func (h *harness) startHub() {
	h.t.Helper()
	config, err := h.cluster.UserConfig(hubUser, "system:serviceaccounts", "system:serviceaccounts:"+hubNamespace)
	h.must(err)
	skip := true
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: h.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cacheOptions(), Controller: ctrlconfig.Controller{SkipNameValidation: &skip}})
	h.must(err)
	h.must(discovery.Add(mgr, discovery.Options{Sources: discovery.SourceNames(), Concurrency: 4,
		Recheck: 200 * time.Millisecond, Labels: map[string]string{"platform": "platform", "region": "region",
			"version": "version", "stage": "labels/stage"}}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the hub ended: %v", err)
		}
	}
	if !mgr.GetCache().WaitForCacheSync(h.t.Context()) {
		h.t.Fatal("the hub's cache does not fill")
	}
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) eventually(objection func() error) {
	h.t.Helper()
	testenv.Eventually(h.t, patience, testenv.Caller(), func(context.Context) error { return objection() })
}

// define installs the definitions of all kinds of sources.
func (h *harness) define() {
	h.t.Helper()
	paths, err := build.Ensure(h.t.Context(), h.t.Output(), build.ClusterAPICRDs, build.ClusterInventoryCRDs)
	h.must(err)
	h.must(h.cluster.InstallCRDs(filepath.Join(paths[build.ClusterAPICRDs], "cluster.x-k8s.io_clusters.yaml"),
		filepath.Join(paths[build.ClusterInventoryCRDs], "multicluster.x-k8s.io_clusterprofiles.yaml"),
		filepath.Join(h.hiveCRDs(), "hive.openshift.io_clusterdeployments.yaml")))
}

// hiveCRDs makes a folder of Hive's definitions, which its module does not contain, from its types.
func (h *harness) hiveCRDs() string {
	h.t.Helper()
	var definitions genall.Generator = crd.Generator{MaxDescLen: ptr.To(0)}
	generators := genall.Generators{&definitions}
	generate, err := generators.ForRoots("github.com/openshift/hive/apis/hive/v1")
	h.must(err)
	dir := h.t.TempDir()
	generate.OutputRules = genall.OutputRules{Default: genall.OutputToDirectory(dir)}
	generate.ErrorWriter = h.t.Output()
	if failed := generate.Run(); failed {
		h.t.Fatal("no definitions were made of Hive's types: see above")
	}
	return dir
}

// create creates an object, and its status, from a text.
func (h *harness) create(text string, args ...any) *unstructured.Unstructured {
	h.t.Helper()
	u := &unstructured.Unstructured{}
	h.must(yaml.Unmarshal(fmt.Appendf(nil, text, args...), u))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.GetNamespace()}}
	if err := h.Create(h.t.Context(), namespace); !apierrors.IsAlreadyExists(err) {
		h.must(err)
	}
	status := u.Object["status"]
	// A fast hub may not see the object without its status as ready.
	h.must(h.Create(h.t.Context(), u))
	if status != nil {
		h.change(u, true, func() { u.Object["status"] = status })
	}
	return u
}

// change changes an object, or its status.
func (h *harness) change(o client.Object, status bool, edit func()) {
	h.t.Helper()
	h.must(h.Get(h.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	edit()
	if status {
		h.must(h.Status().Patch(h.t.Context(), o, client.MergeFrom(before)))
		return
	}
	h.must(h.Patch(h.t.Context(), o, client.MergeFrom(before)))
}

// is objects to a FleetCluster that is not as wanted: its source, the labels that are asked
// for, and its status.
func (h *harness) is(name, want string) error {
	c := &v1alpha1.FleetCluster{}
	if err := h.Get(h.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		return err
	}
	if got := describe(c); got != want {
		return fmt.Errorf("FleetCluster %s is %q, want %q", name, got, want)
	}
	return nil
}

func (h *harness) becomes(name, want string) {
	h.t.Helper()
	h.eventually(func() error { return h.is(name, want) })
}

// describe says what a FleetCluster is. Its labels and its status are written one after the other, so it also says what
// the status has of another label than the cluster has.
func describe(c *v1alpha1.FleetCluster) string {
	var words []string
	if ref := c.Spec.SourceRef; ref != nil {
		words = append(words, ref.Kind+" "+ref.Namespace+"/"+ref.Name)
	}
	for _, key := range []string{"platform", "region", "stage", "version"} {
		if value, ok := c.Labels[key]; ok {
			words = append(words, key+"="+value)
		}
	}
	if s := c.Status.Source; s != nil {
		for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
			if s.Labels[key] != c.Labels[key] {
				words = append(words, "not yet "+key+"="+s.Labels[key])
			}
		}
		words = append(words, strings.TrimSpace(string(s.State)+" "+string(s.PowerState)))
		for _, clash := range s.Clashes {
			words = append(words, "clash "+clash.Namespace)
		}
	}
	return strings.Join(words, ", ")
}

func (h *harness) gone(name string) {
	h.t.Helper()
	h.eventually(func() error {
		err := h.Get(h.t.Context(), client.ObjectKey{Name: name}, &v1alpha1.FleetCluster{})
		if err == nil {
			return fmt.Errorf("FleetCluster %s is still there", name)
		}
		return client.IgnoreNotFound(err)
	})
}

// isTold waits for an Event with a reason on a source.
func (h *harness) isTold(source client.Object, reason string) {
	h.t.Helper()
	h.eventually(func() error {
		var events eventsv1.EventList
		if err := h.List(h.t.Context(), &events, client.InNamespace(source.GetNamespace())); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == source.GetName() && e.Regarding.UID == source.GetUID() && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no Event %s on %s among %d", reason, source.GetName(), len(events.Items))
	})
}

// settled waits until the hub has dealt with what happened before: it makes a FleetCluster of
// a source that comes afterwards.
func (h *harness) settled(marker string) {
	h.t.Helper()
	h.create(clusterDeployment, "markers", marker, "true")
	h.eventually(func() error { return h.Get(h.t.Context(), client.ObjectKey{Name: marker}, &v1alpha1.FleetCluster{}) })
}

func cacheOptions() cache.Options {
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
}

var errStillThere = errors.New("it is still there")
