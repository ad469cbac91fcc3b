// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

func TestOf(t *testing.T) {
	of := func(name string, clusters ...string) v1alpha1.FleetFreeze {
		return v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.FleetFreezeSpec{Clusters: clusters, Reason: "registry is compromised."}}
	}
	ended := of("a", "*")
	ended.DeletionTimestamp = &metav1.Time{}
	*ended.DeletionTimestamp = metav1.Now()
	all := []v1alpha1.FleetFreeze{of("incident", "prod-*"), of("bad-pattern", "[a"),
		of("early", "prod-eu", "edge-1"), ended}
	for cluster, want := range map[string]string{"prod-eu": "early", "prod-us": "incident", "edge-1": "early",
		"dev": ""} {
		got := ""
		if f := holds.FreezeOf(all, cluster); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("%s is under %q, want %q", cluster, got, want)
		}
	}
	const want = "FleetFreeze incident stops all changes there: registry is compromised; to end it, a person runs " +
		"`bellwether fleet unfreeze incident`"
	if got := holds.FreezeMessage(&all[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestClusterPatterns(t *testing.T) {
	for text, want := range map[string]bool{"prod-1": true, "prod-*": true, "edge-?": true, "prod-[12]": false,
		"Prod": false} {
		if got := holds.IsClusterPattern(text); got != want {
			t.Errorf("%s is a pattern: %t, want %t", text, got, want)
		}
	}
	names := []string{"prod-2", "edge-1", "prod-1"}
	if got := holds.MatchClusters("prod-*", names); !slices.Equal(got, []string{"prod-2", "prod-1"}) {
		t.Errorf("matching: %v", got)
	}
	if len(names) != 3 || names[1] != "edge-1" {
		t.Errorf("the names are changed: %v", names)
	}
}

func TestListUnrecorded(t *testing.T) {
	f := &v1alpha1.FleetFreeze{Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"prod-*"}}}
	recorded := v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod-1"}}
	recorded.Status.Freeze = &v1alpha1.ClusterFreeze{Name: "another"}
	got := holds.ListUnrecorded(f, []v1alpha1.FleetCluster{recorded, {ObjectMeta: metav1.ObjectMeta{Name: "prod-2"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}})
	if !slices.Equal(got, []string{"prod-2"}) {
		t.Errorf("got %v", got)
	}
}
