// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

func TestDependencies(t *testing.T) {
	good := func() *v1alpha1.OperatorInstall {
		o := &v1alpha1.OperatorInstall{}
		o.Generation = 2
		o.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "db.v1.2.0", Version: "1.2.0"}
		o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonSucceeded, ObservedGeneration: 2}}
		return o
	}
	type install = v1alpha1.OperatorInstall
	same := func(*install) {}
	tests := map[string]struct {
		change      func(*install)
		least, want string
	}{
		"met":         {change: same, least: "1.2.0"},
		"any version": {change: same},
		"an older version": {change: same, least: "1.10.0",
			want: "has version 1.2.0 there, and 1.10.0 is the least"},
		"an unknown version": {change: func(o *install) { o.Status.Installed.Version = "" }, least: "1.0.0",
			want: "has version db.v1.2.0 there, and 1.0.0 is the least"},
		"not installed": {change: func(o *install) { o.Status.Installed = nil }, want: "is not installed there"},
		"not Ready": {change: func(o *install) {
			o.Status.Conditions[0].Status, o.Status.Conditions[0].Reason = metav1.ConditionFalse, "PodsUnavailable"
		}, want: "is not Ready there (PodsUnavailable)"},
		"Ready with another spec": {change: func(o *install) { o.Generation++ },
			want: "is not Ready there (Succeeded)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := good()
			test.change(o)
			clusters := []rollouts.Cluster{{Name: "a"}, {Name: "b"}}
			holds.SetHolds(holds.Input{Now: noon, Dependencies: []holds.Dependency{{
				OperatorDependency: v1alpha1.OperatorDependency{Name: "db", MinVersion: test.least},
				Installs:           map[string]*v1alpha1.OperatorInstall{"a": o},
			}}}, clusters)
			var want []rollouts.Hold
			if test.want != "" {
				want = []rollouts.Hold{{Reason: v1alpha1.ReasonDependencyNotMet,
					Message: "operator db, which must come first, " + test.want}}
			}
			if diff := cmp.Diff(want, clusters[0].Holds); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
			if len(clusters[1].Holds) != 1 {
				t.Errorf("a cluster without it: %+v", clusters[1].Holds)
			}
		})
	}
}

func TestCycle(t *testing.T) {
	operators := func(edges map[string][]string) []v1alpha1.ManagedOperator {
		var list []v1alpha1.ManagedOperator
		for _, name := range []string{"a", "b", "c", "d"} {
			o := v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
			for _, d := range edges[name] {
				o.Spec.DependsOn = append(o.Spec.DependsOn, v1alpha1.OperatorDependency{Name: d})
			}
			list = append(list, o)
		}
		return list
	}
	for name, test := range map[string]struct {
		edges map[string][]string
		want  string
	}{
		"none":                       {nil, ""},
		"a chain":                    {map[string][]string{"a": {"b"}, "b": {"c", "d"}, "c": {"d"}}, ""},
		"itself":                     {map[string][]string{"a": {"a"}}, "a, a"},
		"by others":                  {map[string][]string{"a": {"d", "b"}, "b": {"c"}, "c": {"a"}}, "a, b, c, a"},
		"a cycle that it is not in":  {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}, ""},
		"on one that does not exist": {map[string][]string{"a": {"x"}}, ""},
	} {
		if got := holds.FindCycle("a", operators(test.edges)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
