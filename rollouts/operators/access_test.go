// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// TestOutsideAccess checks that the condition lists the clusters that are not permitted, and separately the clusters
// that run the operator. The operator is not removed from these clusters.
func TestOutsideAccess(t *testing.T) {
	permit := func(selector map[string]string, targets ...string) v1alpha1.FleetAccess {
		a := v1alpha1.FleetAccess{Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{"team"},
			ClusterSelector: metav1.LabelSelector{MatchLabels: selector}, Registries: []string{"*"},
			TargetNamespaces: targets}}
		a.Name = "teams"
		return a
	}
	for name, test := range map[string]struct {
		access []v1alpha1.FleetAccess
		want   string
	}{
		"there is none":    {nil, ""},
		"all is permitted": {[]v1alpha1.FleetAccess{permit(nil, "*")}, ""},
		"not the namespace": {[]v1alpha1.FleetAccess{permit(nil, "other")}, "FleetAccess teams does not permit the " +
			"target namespace echo: not admitted: a, b; it runs, and is left alone, on a, b"},
		"not these clusters": {[]v1alpha1.FleetAccess{permit(map[string]string{"none": "x"}, "*")}, "FleetAccess " +
			"teams does not permit this cluster (spec.clusterSelector): not admitted: a, b; " +
			"it runs, and is left alone, on a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.Access = test.access
			for i := range in.Installs {
				in.Installs[i].Release = &in.Rollouts[0].Spec.Release
			}
			next := operators.Next(in)
			got := conditions.Get(next.Status.Conditions, v1alpha1.ConditionOutsideAccess)
			if got.Message != test.want {
				t.Errorf("%q, want %q", got.Message, test.want)
			}
			if len(next.Removals) > 0 || next.Supersede != nil {
				t.Errorf("what runs is not left alone: %+v, %+v", next.Removals, next.Supersede)
			}
		})
	}
}
