// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestFreezeHolds: a cluster is held from when a FleetFreeze is made, which its status need not say yet, until its end
// is in the status. The clock of the cluster stands still for that long, and no longer.
func TestFreezeHolds(t *testing.T) {
	made := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	now := made.Add(2 * time.Hour)
	all := []v1alpha1.FleetFreeze{{
		ObjectMeta: metav1.ObjectMeta{Name: "incident", CreationTimestamp: metav1.Time{Time: made}},
		Spec:       v1alpha1.FleetFreezeSpec{Clusters: []string{"a*"}, Reason: "the registry is hostile"},
	}}
	soon := made.Add(time.Minute)
	earlier := []rollouts.Period{{Since: made.Add(-time.Hour), EndedAt: soon}}
	for name, test := range map[string]struct {
		freezes []v1alpha1.FleetFreeze
		cluster rollouts.Cluster
		held    bool
		clock   time.Time
	}{
		"none":                          {nil, rollouts.Cluster{Name: "a"}, false, now},
		"one of others":                 {all, rollouts.Cluster{Name: "b"}, false, now},
		"not in its status yet":         {all, rollouts.Cluster{Name: "a"}, true, made},
		"in its status":                 {all, rollouts.Cluster{Name: "a", FrozenSince: soon}, true, soon},
		"made before another ended":     {all, rollouts.Cluster{Name: "a", FrozenBefore: earlier}, true, soon},
		"its end not in its status yet": {nil, rollouts.Cluster{Name: "a", FrozenSince: made}, true, made},
		"its end in its status":         {nil, rollouts.Cluster{Name: "a", FrozenBefore: earlier}, false, now},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := []rollouts.Cluster{test.cluster}
			holds.SetHolds(holds.Input{Now: now, Freezes: test.freezes}, clusters)
			got := clusters[0]
			held := len(got.Holds) > 0 && got.Holds[0].Reason == v1alpha1.ReasonFrozen && !got.Holds[0].Defers
			if held != test.held || !got.Clock(now).Equal(test.clock) {
				t.Errorf("holds %+v, clock %s, want held %t, %s", got.Holds, got.Clock(now), test.held, test.clock)
			}
		})
	}
}
