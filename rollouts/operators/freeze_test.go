// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

func freezes(clusters ...string) []v1alpha1.FleetFreeze {
	return []v1alpha1.FleetFreeze{{ObjectMeta: metav1.ObjectMeta{Name: "incident"},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: clusters, Reason: "the registry is hostile"}}}
}

// TestFrozenOperator checks that nothing is recovered on or removed from clusters under a FleetFreeze. Other clusters
// are not affected.
func TestFrozenOperator(t *testing.T) {
	for name, in := range map[string]operators.Input{
		"deleted": func() operators.Input {
			in := newInput(t)
			in.Operator.DeletionTimestamp, in.Rollouts = &created, nil
			in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalOrphan
			return in
		}(),
		"no longer selected": func() operators.Input {
			in := newInput(t)
			in.Clusters = append(in.Clusters, rollouts.Cluster{Name: "c", Labels: map[string]string{"tier": "edge"}})
			in.Operator.Spec.ClusterSelector.MatchLabels = map[string]string{"tier": "edge"}
			in.Rollouts[0].Spec.ClusterSelector = in.Operator.Spec.ClusterSelector
			return in
		}(),
		"found": func() operators.Input {
			in := found(t, 7)
			in.Installs[1].Kept = kept(in, 7)
			in.Installs[1].Admitted.Recovered = 7
			return in
		}(),
	} {
		steps := func(d operators.Decision) (namespaces []string) {
			for _, s := range d.Removals {
				namespaces = append(namespaces, s.Namespace)
			}
			for _, a := range d.Recover {
				namespaces = append(namespaces, a.Key.Namespace)
			}
			return namespaces
		}
		if got := steps(operators.Next(in)); len(got) != 2 {
			t.Errorf("%s: changes %v", name, got)
		}
		in.Freezes = freezes("a")
		d := operators.Next(in)
		if got := steps(d); len(got) != 1 || got[0] != "bellwether-b" {
			t.Errorf("%s, and a is frozen: changes %v", name, got)
		}
		ready := conditions.Get(d.Status.Conditions, v1alpha1.ConditionReady)
		if name == "deleted" && !strings.Contains(ready.Message, "under a FleetFreeze: a") {
			t.Errorf("%s: %s", name, ready.Message)
		}
		in.Freezes = freezes("*")
		if got := steps(operators.Next(in)); len(got) != 0 {
			t.Errorf("%s, and all is frozen: changes %v", name, got)
		}
	}
}
