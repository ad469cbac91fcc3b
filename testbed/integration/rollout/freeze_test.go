// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestFreeze: no cluster under a FleetFreeze is admitted, others are, and the rollout goes on when the freeze has
// ended.
func TestFreeze(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	names := f.enrollMany(2)
	freeze := &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: names[:1], Reason: "incident"}}
	must(t, f.Create(t.Context(), freeze))
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "1 of 2 clusters updated", "FleetFreeze "+f.namespace, "incident")
	if diff := cmp.Diff(names[1:], f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	must(t, f.Delete(t.Context(), freeze))
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
}
