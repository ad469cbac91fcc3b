// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

// fixture is a hub whose caches are always current. The tests of the testbed use a real API
// server; these tests are for situations that are hard to create there.
type fixture struct {
	client.Client
	r      *Reconciler
	events *events.FakeRecorder
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	kind, _ := discovery.FindKind("hive")
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seen := &view{kind: kind, version: "v1"}
	scheme.AddKnownTypeWithName(kind.WithVersion("v1"), &unstructured.Unstructured{})
	list := kind.WithVersion("v1")
	list.Kind += "List"
	scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.FleetCluster{}).
		WithIndex(&v1alpha1.FleetCluster{}, indexSource, readSourceKeys).
		WithIndex(seen.newObject(), indexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithReturnManagedFields().Build()
	seen.cache = c
	w := &watch{kind: kind}
	w.view.Store(seen)
	recorder := events.NewFakeRecorder(10)
	return &fixture{Client: c, events: recorder, r: &Reconciler{Client: c, Live: c, Events: recorder, Now: time.Now,
		Options: discovery.Options{Labels: discovery.DefaultLabels()},
		watches: map[schema.GroupKind]*watch{{Group: kind.Group, Kind: kind.Kind}: w}}}
}

func (f *fixture) reconcile(t *testing.T, name string) {
	t.Helper()
	if _, err := f.r.Reconcile(t.Context(), newRequest(name)); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) cluster(t *testing.T, name string) *v1alpha1.FleetCluster {
	t.Helper()
	c := &v1alpha1.FleetCluster{}
	if err := f.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func deployment(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"installed": true},
		"status": map[string]any{"powerState": "Running"}}}
	u.SetAPIVersion("hive.openshift.io/v1")
	u.SetKind("ClusterDeployment")
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{"hive.openshift.io/cluster-region": "eu"})
	return u
}

func definition(deleting bool) client.Object {
	d := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1",
		Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: "clusterdeployments.hive.openshift.io"}}
	if deleting {
		d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: time.Now()}, []string{"customresourcecleanup"}
	}
	return d
}

func TestReconcile(t *testing.T) {
	f := newFixture(t, deployment("a", "prod"), deployment("a", "other"), definition(false))
	f.reconcile(t, "prod")
	c := f.cluster(t, "prod")
	if c.Labels["region"] != "eu" || c.Spec.SourceRef == nil || c.Spec.SourceRef.Namespace != "a" ||
		!discovery.IsCreatedHere(c) || c.Status.Source == nil || c.Status.Source.PowerState != v1alpha1.PowerRunning {
		t.Fatalf("made %+v", c)
	}
	version := c.ResourceVersion
	f.reconcile(t, "prod")
	if again := f.cluster(t, "prod"); again.ResourceVersion != version {
		t.Errorf("written again without need: %+v", again)
	}
	second := deployment("b", "prod")
	if err := f.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t, "prod")
	f.reconcile(t, "prod")
	if clashes := f.cluster(t, "prod").Status.Source.Clashes; len(clashes) != 1 || clashes[0].Namespace != "b" {
		t.Errorf("clashes %v", clashes)
	}
	if n := len(f.events.Events); n != 1 || !strings.Contains(<-f.events.Events, "FleetClusterNameTaken") {
		t.Errorf("%d Events of one clash", n)
	}
	if err := f.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), deployment("a", "prod")); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t, "prod")
	if err := f.Get(t.Context(), client.ObjectKey{Name: "prod"}, c); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the FleetCluster of a source that is gone: %v", err)
	}
}

// TestStaleCache has a cache without this controller's own last write: nothing of that is lost.
func TestStaleCache(t *testing.T) {
	f := newFixture(t, deployment("a", "prod"), deployment("a", "other"), definition(false))
	f.reconcile(t, "prod")
	stale := f.cluster(t, "prod")
	stale.Status.Source = nil
	stale.ResourceVersion = "1"
	f.r.Client = interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context,
		c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if cluster, ok := obj.(*v1alpha1.FleetCluster); ok {
			stale.DeepCopyInto(cluster)
			return nil
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	for range 2 {
		result, err := f.r.Reconcile(t.Context(), newRequest("prod"))
		if err != nil || result.RequeueAfter == 0 {
			t.Fatalf("%+v, %v: it is not tried again", result, err)
		}
		if set := f.cluster(t, "prod").Status.Source.Labels; set["region"] != "eu" {
			t.Fatalf("the status forgot which labels it set: %v", set)
		}
		// The source was relocating, which the cache does not have yet, and was then deleted.
		err = f.Delete(t.Context(), deployment("a", "prod"))
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// TestAbsenceIsDoubted has missing sources whose clusters still exist.
func TestAbsenceIsDoubted(t *testing.T) {
	for name, test := range map[string]struct {
		others []client.Object
		want   v1alpha1.SourceState
	}{
		"its definition is being deleted":  {[]client.Object{definition(true), deployment("a", "other")}, v1alpha1.SourcePresent},
		"its definition is gone":           {[]client.Object{deployment("a", "other")}, v1alpha1.SourcePresent},
		"there is no object of its kind":   {[]client.Object{definition(false)}, v1alpha1.SourceMissing},
		"and then there are others again ": {[]client.Object{definition(false), deployment("b", "prod")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := v1alpha1.SourceReference{APIVersion: "hive.openshift.io/v1", Kind: "ClusterDeployment",
				Namespace: "a",
				Name:      "prod"}
			c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod",
				Annotations: map[string]string{v1alpha1.AnnotationDiscovered: "true"}},
				Spec:   v1alpha1.FleetClusterSpec{SourceRef: &of},
				Status: v1alpha1.FleetClusterStatus{Source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent}}}
			f := newFixture(t, append(test.others, c)...)
			f.reconcile(t, "prod")
			err := f.Get(t.Context(), client.ObjectKey{Name: "prod"}, c)
			if test.want == "" {
				if client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("it is still there (%v)", err)
				}
				return
			}
			if err != nil || c.Status.Source.State != test.want {
				t.Errorf("state %+v (%v), want %s", c.Status.Source, err, test.want)
			}
		})
	}
}
