// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// fleet is a hub's API server with a rollout over clusters that are all online. It counts
// writes, and refuses those of OperatorInstalls of some clusters.
type fleet struct {
	client.Client
	t       *testing.T
	rollout *v1alpha1.OperatorRollout
	hub     reconcile.Reconciler
	now     time.Time

	mu     sync.Mutex
	writes map[string]int
	// lists are live ones, by namespace.
	lists  map[string]int
	refuse func(verb, cluster string) error
}

func newFleet(t *testing.T, clusters int, concurrency int32) *fleet {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), writes: map[string]int{},
		lists: map[string]int{}, refuse: func(string, string) error { return nil }}
	slots := intstr.FromInt32(concurrency)
	f.rollout = &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "echo-1", UID: "uid-1"},
		Spec: v1alpha1.OperatorRolloutSpec{Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: 1,
			Release: v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0"},
			Strategy: rollouts.Defaulted(v1alpha1.RolloutStrategy{
				Waves: []v1alpha1.Wave{{Name: "all", MaxConcurrency: &slots}}}),
		}}
	objects := []client.Object{f.rollout}
	for i := range clusters {
		c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%02d", i)}}
		c.Status.Namespace = v1alpha1.ClusterNamespace(c.Name)
		conditions.Set(&c.Status.Conditions, 0, v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "")
		objects = append(objects, c)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.OperatorRollout{}, &v1alpha1.OperatorInstall{}, &v1alpha1.FleetCluster{}).
		WithInterceptorFuncs(f.interceptors())
	for _, index := range kit.Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Keys)
	}
	f.Client = builder.Build()
	f.hub = kit.WrapReconciler(f.Client, silent{}, &Reconciler{Client: f.Client, Live: live{f}, Events: silent{},
		Now: func() time.Time { return f.now }, Admitted: func() {}, MaxChanges: 1, Measurer: newMeasurer(nil)})
	return f
}

// live reads past the cache, and counts how often the OperatorInstalls of a namespace are listed.
type live struct{ *fleet }

func (l live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if _, installs := list.(*v1alpha1.OperatorInstallList); installs && o.Namespace != "" {
		l.mu.Lock()
		l.lists[o.Namespace]++
		l.mu.Unlock()
	}
	return l.fleet.List(ctx, list, opts...)
}

type silent struct{ events.EventRecorder }

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func (f *fleet) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := f.write("create", o.GetNamespace()); err != nil {
				return err
			}
			o.SetUID(types.UID(o.GetNamespace() + "/" + o.GetName()))
			return c.Create(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
			if err := f.write("apply", o.(interface{ GetNamespace() string }).GetNamespace()); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := f.write("status", o.GetNamespace()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

func (f *fleet) write(verb, namespace string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[verb]++
	return f.refuse(verb, namespace)
}

// run reconciles and simulates agents that succeed at once, until done returns true or
// there were too many passes.
func (f *fleet) run(done func() bool) {
	f.t.Helper()
	for range 300 {
		f.now = f.now.Add(5 * time.Second)
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.rollout)}
		_, _ = f.hub.Reconcile(f.t.Context(), request) // an error is tried again
		if err := f.Get(f.t.Context(), request.NamespacedName, f.rollout); err != nil {
			f.t.Fatal(err)
		}
		if done() {
			return
		}
		f.playAgents()
	}
	f.t.Fatalf("after 300 passes: %s, %+v: %s", f.rollout.Status.Phase, f.rollout.Status.Clusters,
		f.rollout.Status.Message)
}

func (f *fleet) playAgents() {
	f.t.Helper()
	var all v1alpha1.OperatorInstallList
	if err := f.List(f.t.Context(), &all); err != nil {
		f.t.Fatal(err)
	}
	for i := range all.Items {
		o := &all.Items[i]
		a := o.Spec.Admission
		switch {
		case a == nil && o.Status.ObservedGeneration == 0: // it reports that it keeps nothing
			o.Status.ObservedGeneration = 1
		case a != nil && o.Status.SucceededHash != a.Hash:
			o.Status.SucceededHash, o.Status.SucceededAt = a.Hash, &metav1.Time{Time: f.now}
			conditions.Set(&o.Status.Conditions, o.Generation, v1alpha1.ConditionReady, true,
				v1alpha1.ReasonSucceeded, "")
		default:
			continue
		}
		if err := f.Status().Update(f.t.Context(), o); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fleet) succeeded() bool { return f.rollout.Status.Phase == v1alpha1.RolloutSucceeded }

// TestWritesOfARollout limits the writes of a rollout: two writes of each OperatorInstall, one
// write of the status for each batch, and a few writes at the start and at the end.
func TestWritesOfARollout(t *testing.T) {
	const clusters, batches, others = 48, 4, 6
	f := newFleet(t, clusters, clusters/batches)
	f.run(f.succeeded)
	if f.writes["create"] != clusters || f.writes["apply"] != clusters || f.writes["status"] > batches+others {
		t.Errorf("writes %v for %d clusters in %d batches", f.writes, clusters, batches)
	}
	t.Logf("writes: %v", f.writes)
}

// TestAnAdmissionListsItsClusterOnce has an API server that refuses the first admission of each
// cluster, which is then tried again in the same pass.
func TestAnAdmissionListsItsClusterOnce(t *testing.T) {
	const clusters = 12
	f := newFleet(t, clusters, clusters)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "operatorinstalls"}, "ops.echo",
		errors.New("it changed"))
	objected := map[string]bool{}
	f.refuse = func(verb, namespace string) error {
		if verb != "apply" || objected[namespace] {
			return nil
		}
		objected[namespace] = true
		return conflict
	}
	f.run(f.succeeded)
	if len(objected) != clusters || f.writes["apply"] != 2*clusters {
		t.Fatalf("%d clusters were tried again, with %v", len(objected), f.writes)
	}
	for namespace, n := range f.lists {
		if n != 1 {
			t.Errorf("%s is listed %d times, want once", namespace, n)
		}
	}
	if len(f.lists) != clusters {
		t.Errorf("listed: %v, want %d namespaces", f.lists, clusters)
	}
}

// TestOthersGoOn has an API server that refuses to create an OperatorInstall, and to admit
// another one that comes first while one cluster is updated at a time.
func TestOthersGoOn(t *testing.T) {
	installs := schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group, Resource: "operatorinstalls"}
	quota := apierrors.NewForbidden(installs, "ops.echo", errors.New("exceeded quota"))
	for name, cause := range map[string]error{"quota": quota,
		"webhook": apierrors.NewInternalError(errors.New("failed calling webhook"))} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 6, 1)
			f.refuse = func(verb, namespace string) error {
				switch verb + " " + namespace {
				case "create bellwether-c03", "apply bellwether-c00":
					return cause
				}
				return nil
			}
			f.run(func() bool {
				return f.rollout.Status.Clusters.Succeeded == 4 && slices.Equal(f.refused(), []string{"c00", "c03"})
			})
			f.refuse = func(string, string) error { return nil }
			f.run(func() bool { return f.succeeded() && f.rollout.Status.Clusters.Succeeded == 6 })
		})
	}
}

// refused are the clusters that the status reports as not writable.
func (f *fleet) refused() []string {
	var names []string
	for _, g := range f.rollout.Status.HeldBack {
		if g.Reason == v1alpha1.ReasonClusterNotWritable {
			names = append(names, g.Clusters...)
		}
	}
	slices.Sort(names)
	return names
}

// TestEtcdIsFull has the API server refuse all writes for an hour.
func TestEtcdIsFull(t *testing.T) {
	f := newFleet(t, 6, 2)
	f.run(func() bool { return f.rollout.Status.Clusters.Succeeded >= 2 })
	full := apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded"))
	f.refuse = func(string, string) error { return full }
	end := f.now.Add(20 * time.Minute)
	f.run(func() bool { return f.now.After(end) })
	f.refuse = func(string, string) error { return nil }
	repaired := f.now
	f.run(f.succeeded)
	if took := f.now.Sub(repaired); took > 5*time.Minute {
		t.Errorf("the rollout ended %s after the repair", took)
	}
}
