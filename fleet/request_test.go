// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
)

func TestPlanJoin(t *testing.T) {
	newCluster := func(labels map[string]string) *v1alpha1.FleetCluster {
		return &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: labels}}
	}
	leaving := newCluster(map[string]string{"env": "dev"})
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	prod := map[string]string{"env": "prod"}
	tests := map[string]struct {
		existing *v1alpha1.FleetCluster
		labels   map[string]string
		change   fleet.JoinChange
		want     map[string]string
	}{
		"new":            {nil, prod, fleet.JoinCreates, prod},
		"without labels": {newCluster(nil), prod, fleet.JoinLabels, prod},
		"another value":  {newCluster(map[string]string{"env": "dev"}), prod, fleet.JoinLabels, prod},
		"other labels stay": {newCluster(map[string]string{"a": "b"}), prod, fleet.JoinLabels,
			map[string]string{"a": "b", "env": "prod"}},
		"has them":           {newCluster(prod), prod, fleet.JoinKeeps, prod},
		"none and none":      {newCluster(nil), nil, fleet.JoinKeeps, map[string]string{}},
		"none are requested": {newCluster(prod), nil, fleet.JoinKeeps, prod},
		"leaving":            {leaving, prod, fleet.JoinRefused, map[string]string{"env": "dev"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before map[string]string
			if test.existing != nil {
				before = maps.Clone(test.existing.Labels)
			}
			got, change := fleet.PlanJoin(test.existing, "prod", test.labels)
			if change != test.change || got.Name != "prod" || !maps.Equal(got.Labels, test.want) {
				t.Errorf("%s: %s with labels %v, want %s, %v", change, got.Name, got.Labels, test.change, test.want)
			}
			if test.existing != nil && !maps.Equal(test.existing.Labels, before) {
				t.Errorf("the existing labels are now %v", test.existing.Labels)
			}
		})
	}
}

func TestExplainMissingNamespace(t *testing.T) {
	c := &v1alpha1.FleetCluster{}
	if got := fleet.ExplainMissingNamespace(c); got != "" {
		t.Errorf("a hub that reported nothing: %q", got)
	}
	conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionReady, false, "NamespaceConflict", "it exists")
	if got := fleet.ExplainMissingNamespace(c); got != "it exists" {
		t.Errorf("a problem: %q", got)
	}
	c.Status.Namespace = "bellwether-prod"
	if got := fleet.ExplainMissingNamespace(c); got != "" {
		t.Errorf("a cluster with a namespace: %q", got)
	}
}

func TestSelectToJoin(t *testing.T) {
	discovered := func(name string, change func(*v1alpha1.FleetCluster)) v1alpha1.FleetCluster {
		c := v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.SourceRef = &v1alpha1.SourceReference{Kind: "ClusterDeployment", Name: name}
		c.Status.Source = &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent}
		if change != nil {
			change(&c)
		}
		return c
	}
	names, skipped := fleet.SelectToJoin([]v1alpha1.FleetCluster{
		discovered("b", nil),
		discovered("by-hand", func(c *v1alpha1.FleetCluster) { c.Spec.SourceRef = nil }),
		discovered("a", func(c *v1alpha1.FleetCluster) { c.Status.Source = nil }),
		discovered("moving", func(c *v1alpha1.FleetCluster) { c.Status.Source.State = v1alpha1.SourceRelocating }),
		discovered("leaving", func(c *v1alpha1.FleetCluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }),
		discovered("online", func(c *v1alpha1.FleetCluster) {
			conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionOnline, true, "LeaseFresh", "")
		}),
		discovered("asleep", func(c *v1alpha1.FleetCluster) {
			c.Status.Source.PowerState = v1alpha1.PowerHibernating
			conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionHibernating, true, "Hibernating", "")
		}),
	})
	want := map[string]int{"being removed from the fleet": 1, "already online": 1, "hibernating": 1,
		"whose source is relocating": 1}
	if diff := cmp.Diff(want, skipped); diff != "" || !slices.Equal(names, []string{"b", "a"}) {
		t.Errorf("names %v; skipped (-want +got):\n%s", names, diff)
	}
}
