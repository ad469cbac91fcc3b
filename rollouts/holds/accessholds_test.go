// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestAccessHolds checks that a cluster that no FleetAccess permits has a hold before all other holds, and that other
// clusters do not.
func TestAccessHolds(t *testing.T) {
	permit := v1alpha1.FleetAccess{Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{"ops"},
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		Registries:      []string{"*"}, TargetNamespaces: []string{"*"}}}
	decision := holds.DecideAccess([]v1alpha1.FleetAccess{permit}, "ops", v1alpha1.Release{Package: "echo"})
	clusters := []rollouts.Cluster{{Name: "a", Labels: map[string]string{"team": "a"}}, {Name: "b"}}
	holds.SetHolds(holds.Input{Now: noon, Access: decision, PreflightJob: &rollouts.PreflightJob{}}, clusters)
	for _, h := range clusters[0].Holds {
		if h.Reason == v1alpha1.ReasonAccessNotPermitted {
			t.Errorf("a permitted cluster is held back: %s", h.Message)
		}
	}
	first := clusters[1].Holds[0]
	if first.Reason != v1alpha1.ReasonAccessNotPermitted || first.Defers ||
		!strings.Contains(first.Message, "ask the platform team") {
		t.Errorf("%+v", first)
	}
}
