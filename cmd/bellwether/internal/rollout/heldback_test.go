// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func TestHeldBack(t *testing.T) {
	r := fixture.HaltedRollout()
	r.Status.Phase, r.Status.Message = v1alpha1.RolloutProgressing, "wave rest: 0 of 1 cluster updated"
	r.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "CVE-2026-1234"}
	r.Status.HeldBack = []v1alpha1.HeldBackClusters{
		{Reason: v1alpha1.ReasonWindowClosed, Count: 7, Clusters: []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7"},
			Message: "outside of ChangeWindow nights; open from 2026-03-01T22:00:00Z",
			Until:   &metav1.Time{Time: fixture.Noon.Add(10 * time.Hour)}},
		{Reason: v1alpha1.ReasonClusterBusy, Count: 1, Clusters: []string{"prod-1"},
			Message: "operator ops/db is being changed there by rollout db-3"},
	}
	in := RolloutInput{Now: fixture.Noon, Rollout: r, Installs: fixture.Installs(), Clusters: fixture.FleetOfFour()}
	fixture.AssertGolden(t, "rollout-held-back", RenderRollout(in, term.Style{Width: 140}))
}

func TestPlanTellsOfHolds(t *testing.T) {
	in := PlanInput{Held: []rollouts.Cluster{
		{Name: "a", Holds: []rollouts.Hold{{Message: "outside of ChangeWindow nights"}}}, {Name: "b"},
		{Name: "c", Holds: []rollouts.Hold{{Message: "outside of ChangeWindow nights"}}},
		{Name: "d", Holds: []rollouts.Hold{{Message: "outside of ChangeWindow nights"}}},
	}}
	want := []string{"Clusters would not be admitted now: a, c: outside of ChangeWindow nights."}
	if diff := cmp.Diff(want, listHoldNotes(in, map[string]bool{"a": true, "b": true, "c": true})); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
