// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// object is a cluster of generation 2, whose status was observed for generation 1.
func object() *v1alpha1.FleetCluster {
	c := &v1alpha1.FleetCluster{}
	c.Name, c.UID, c.Generation, c.Status.ObservedGeneration = "c", "uid", 2, 1
	conditions.Summarize(&c.Status.Conditions, 1, conditions.Summary{State: conditions.Current,
		Reason: v1alpha1.ReasonSucceeded})
	return c
}

// inner reports for the generation, or fails before it observed anything.
type inner struct {
	observed bool
	err      error
	times    int
}

func (i *inner) Reconcile(_ context.Context, c *v1alpha1.FleetCluster) (ctrl.Result, error) {
	i.times++
	if i.observed {
		conditions.Summarize(&c.Status.Conditions, c.Generation, conditions.Summary{State: conditions.Current,
			Reason: v1alpha1.ReasonSucceeded})
	}
	return ctrl.Result{RequeueAfter: time.Minute}, i.err
}

// fixture is a shell around an inner reconciler, and an API server that counts writes.
type fixture struct {
	*shell[*v1alpha1.FleetCluster]
	inner    *inner
	writes   int
	writeErr error
	clock    time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{inner: &inner{}, clock: time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object()).WithStatusSubresource(object()).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, name string,
			obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			f.writes++
			if f.writeErr != nil {
				return f.writeErr
			}
			return c.SubResource(name).Patch(ctx, obj, patch, opts...)
		}}).Build()
	f.shell = &shell[*v1alpha1.FleetCluster]{client: c, inner: f.inner, now: func() time.Time { return f.clock },
		outdated: newOutdatedVersions()}
	return f
}

func (f *fixture) read(t *testing.T) *v1alpha1.FleetCluster {
	t.Helper()
	c := object()
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fixture) run(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return f.Reconcile(t.Context(), f.read(t))
}

// TestFailingIsReportedOnce plays an object that fails to be observed for a while.
func TestFailingIsReportedOnce(t *testing.T) {
	f := newFixture(t)
	steps := []struct {
		name       string
		after      time.Duration
		inner      inner
		writes     int
		generation int64
		since      string // of ReconcileFailing; empty: not failing
	}{
		{"fails for the first time", 0, inner{err: errors.New("port 1")}, 0, 1, ""},
		{"within the grace", 9 * time.Second, inner{err: errors.New("port 2")}, 0, 1, ""},
		{"for longer", 2 * time.Second, inner{err: errors.New("port 3")}, 1, 1, "02:00:00"},
		{"for another reason", time.Minute, inner{err: errors.New("port 4")}, 0, 1, "02:00:00"},
		{"observed, and it could not be applied", time.Second, inner{observed: true, err: errors.New("port 5")}, 1, 2,
			"02:00:00"},
		{"succeeds", time.Second, inner{observed: true}, 1, 2, ""},
		{"succeeds again", time.Second, inner{observed: true}, 0, 2, ""},
		{"fails anew", time.Second, inner{err: errors.New("port 6")}, 0, 2, ""},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			f.clock = f.clock.Add(step.after)
			*f.inner, f.writes = step.inner, 0
			if _, err := f.run(t); !errors.Is(err, step.inner.err) {
				t.Errorf("error %v, want %v", err, step.inner.err)
			}
			c := f.read(t)
			if c.Status.ObservedGeneration != step.generation || f.writes != step.writes {
				t.Errorf("observed generation %d after %d writes, want %d after %d", c.Status.ObservedGeneration,
					f.writes, step.generation, step.writes)
			}
			failing := conditions.Get(c.Status.Conditions, v1alpha1.ConditionReconcileFailing)
			since := ""
			if failing.Type != "" {
				since = failing.LastTransitionTime.UTC().Format(time.TimeOnly)
			}
			if since != step.since || since != "" && !strings.Contains(failing.Message, "port 3") {
				t.Errorf("failing since %q (%s), want %q", since, failing.Message, step.since)
			}
		})
	}
}

func TestErrorsOfBoth(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "fleetclusters"}, "c", errors.New("changed"))
	apply, patch := errors.New("apply"), errors.New("patch")
	tests := map[string]struct {
		inner, patch error
		want         []error
		requeue      time.Duration
	}{
		"none":                           {nil, nil, nil, time.Minute},
		"reconcile":                      {apply, nil, []error{apply}, time.Minute},
		"patch":                          {nil, patch, []error{patch}, time.Minute},
		"both":                           {apply, patch, []error{apply, patch}, time.Minute},
		"conflict of the reconcile":      {conflict, nil, nil, ConflictDelay},
		"conflict of the patch":          {nil, conflict, nil, ConflictDelay},
		"a conflict does not hide apply": {apply, conflict, []error{apply}, time.Minute},
		"a conflict does not hide patch": {conflict, patch, []error{patch}, time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			*f.inner = inner{observed: true, err: test.inner}
			f.writeErr = test.patch
			result, err := f.run(t)
			if (err != nil) != (len(test.want) > 0) || result.RequeueAfter != test.requeue {
				t.Errorf("%v, %v; want %v, requeue after %s", result, err, test.want, test.requeue)
			}
			for _, want := range test.want {
				if !errors.Is(err, want) {
					t.Errorf("error %v lacks %v", err, want)
				}
			}
		})
	}
}

// TestOutdatedIsNotReconciled verifies that a version that is known to be outdated is not
// reconciled, because the API server would refuse the write. No request is sent before the
// cache has a newer version.
func TestOutdatedIsNotReconciled(t *testing.T) {
	conflict := func(resource, name string) error {
		return fmt.Errorf("write: %w", apierrors.NewConflict(schema.GroupResource{Resource: resource}, name,
			errors.New("changed")))
	}
	tests := map[string]struct {
		inner, patch error
		observed     bool
		outdated     bool
	}{
		"written by itself":            {observed: true, outdated: true},
		"refused":                      {observed: true, patch: conflict("fleetclusters", "c"), outdated: true},
		"refused within":               {inner: conflict("fleetclusters", "c"), outdated: true},
		"another object is outdated":   {inner: conflict("fleetclusters", "other")},
		"another kind is outdated":     {inner: conflict("namespaces", "c")},
		"nothing written":              {},
		"an error that is no conflict": {inner: errors.New("broken")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.inner.observed, f.inner.err, f.writeErr = test.observed, test.inner, test.patch
			cached := f.read(t)
			reconcile := func(c *v1alpha1.FleetCluster) ctrl.Result {
				t.Helper()
				result, _ := f.Reconcile(t.Context(), c.DeepCopy())
				return result
			}
			reconcile(cached)
			f.writeErr, f.inner.err, f.inner.times, f.writes = nil, nil, 0, 0
			again := reconcile(cached)
			if skipped := f.inner.times == 0; skipped != test.outdated {
				t.Errorf("skipped %t, want %t", skipped, test.outdated)
			}
			if test.outdated && (f.writes > 0 || again.RequeueAfter != ConflictDelay) {
				t.Errorf("%d writes, result %+v", f.writes, again)
			}
			f.inner.times = 0
			newer := f.read(t)
			newer.ResourceVersion += "0"
			reconcile(newer)
			if f.inner.times != 1 {
				t.Error("the newer version was not reconciled")
			}
			f.outdated.record(cached, cached.ResourceVersion, f.clock)
			f.clock = f.clock.Add(outdatedRetention)
			f.inner.times = 0
			if reconcile(cached); f.inner.times != 1 {
				t.Error("a version that the cache keeps was not reconciled after a while")
			}
		})
	}
}
