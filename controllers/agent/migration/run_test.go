// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/migration"
)

// objects are n of a resource, listed by their numbers.
type objects struct {
	n int
	// rewritten counts how often each object was rewritten. errs are the errors of one object,
	// in the order of its rewrites.
	rewritten map[string]int
	errs      map[string][]error
	pageErr   error
}

func (o *objects) Page(_ context.Context, _ migration.Definition, limit int64, next string) ([]types.NamespacedName,
	string, error) {
	if o.pageErr != nil {
		return nil, "", o.pageErr
	}
	from := 0
	if next != "" {
		from, _ = strconv.Atoi(next)
	}
	to := min(from+int(limit), o.n)
	var names []types.NamespacedName
	for i := from; i < to; i++ {
		names = append(names, types.NamespacedName{Namespace: "a", Name: fmt.Sprint(i)})
	}
	if to == o.n {
		return names, "", nil
	}
	return names, fmt.Sprint(to), nil
}

func (o *objects) Rewrite(_ context.Context, _ migration.Definition, name types.NamespacedName) error {
	if errs := o.errs[name.Name]; len(errs) > 0 {
		o.errs[name.Name] = errs[1:]
		return errs[0]
	}
	if o.rewritten == nil {
		o.rewritten = map[string]int{}
	}
	o.rewritten[name.Name]++
	return nil
}

func (o *objects) Finish(context.Context, string, string, string) error { return nil }

var (
	things   = migration.Definition{Group: "example.com", Plural: "things", Version: "v1", Storage: "v1"}
	resource = schema.GroupResource{Group: "example.com", Resource: "things"}
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func always(context.Context) (bool, error) { return true, nil }

// TestPass goes through 600 objects, which are three pages.
func TestPass(t *testing.T) {
	conflict := apierrors.NewConflict(resource, "x", errors.New("written"))
	denied := apierrors.NewForbidden(resource, "x", errors.New("denied"))
	for name, test := range map[string]struct {
		objects objects
		// step is how much the clock advances at each call.
		step    time.Duration
		mayGoOn func(context.Context) (bool, error)
		begin   string
		want    v1alpha1.StorageMigrationProgress
		ended   bool
		fails   bool
	}{
		"all":            {want: v1alpha1.StorageMigrationProgress{Objects: 600}, ended: true},
		"the slice ends": {step: sliceDuration, want: v1alpha1.StorageMigrationProgress{Objects: 250, Continue: "250"}},
		"from where another agent stopped": {begin: "500", want: v1alpha1.StorageMigrationProgress{Objects: 100},
			ended: true},
		"the install has changed": {mayGoOn: func(context.Context) (bool, error) { return false, nil },
			want: v1alpha1.StorageMigrationProgress{Objects: 250, Continue: "250"}},
		"one is gone": {ended: true, want: v1alpha1.StorageMigrationProgress{Objects: 599},
			objects: objects{errs: map[string][]error{"7": {apierrors.NewNotFound(resource, "7")}}}},
		"one was written meanwhile": {ended: true, want: v1alpha1.StorageMigrationProgress{Objects: 600},
			objects: objects{errs: map[string][]error{"7": {conflict, conflict}}}},
		"one is refused": {ended: true, want: v1alpha1.StorageMigrationProgress{Objects: 599, Failed: 1,
			Failures: []string{`things.example.com a/7: things.example.com "x" is forbidden: denied`}},
			objects: objects{errs: map[string][]error{"7": {denied}}}},
		"the API server is busy": {fails: true, want: v1alpha1.StorageMigrationProgress{Objects: 250, Continue: "250"},
			objects: objects{errs: map[string][]error{"300": {apierrors.NewTooManyRequests("busy", 1)}}}},
		"the API server is away": {fails: true, want: v1alpha1.StorageMigrationProgress{},
			objects: objects{pageErr: errors.New("connection refused")}},
	} {
		t.Run(name, func(t *testing.T) {
			test.objects.n = 600
			at := noon
			clock := func() time.Time {
				at = at.Add(test.step)
				return at
			}
			if test.mayGoOn == nil {
				test.mayGoOn = always
			}
			got := v1alpha1.StorageMigrationProgress{Continue: test.begin}
			err := migrateSlice(t.Context(), &test.objects, things, &got, clock, test.mayGoOn)
			if (err != nil) != test.fails || (got.EndTime != nil) != test.ended {
				t.Errorf("error %v, ended at %v", err, got.EndTime)
			}
			got.EndTime = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPassEndsWhereAllFails has a webhook that refuses every object.
func TestPassEndsWhereAllFails(t *testing.T) {
	o := objects{n: 10000, errs: map[string][]error{}}
	for i := range o.n {
		o.errs[fmt.Sprint(i)] = []error{apierrors.NewInternalError(errors.New("no endpoints for the webhook"))}
	}
	var got v1alpha1.StorageMigrationProgress
	if err := migrateSlice(t.Context(), &o, things, &got, func() time.Time { return noon }, always); err != nil {
		t.Fatal(err)
	}
	if got.Failed != pageSize || len(got.Failures) != maxFailures || got.EndTime == nil || got.Objects != 0 {
		t.Errorf("%+v", got)
	}
}

// TestSlicesGoThroughAllOnce kills the agent after each slice.
func TestSlicesGoThroughAllOnce(t *testing.T) {
	o := objects{n: 1000}
	var got v1alpha1.StorageMigrationProgress
	for slices := 1; got.EndTime == nil; slices++ {
		at := noon
		clock := func() time.Time {
			at = at.Add(sliceDuration)
			return at
		}
		if err := migrateSlice(t.Context(), &o, things, &got, clock, always); err != nil || slices > 4 {
			t.Fatalf("slice %d: %v, %+v", slices, err, got)
		}
	}
	for i := range o.n {
		if o.rewritten[fmt.Sprint(i)] != 1 {
			t.Errorf("object %d was stored anew %d times", i, o.rewritten[fmt.Sprint(i)])
		}
	}
}
