// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// gatedRollout returns a rollout that waits for the approval of wave prod. Its wave canary is skipped, and a cluster
// joined it later.
func gatedRollout() *v1alpha1.OperatorRollout {
	since := &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	gates := []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}, {Name: "budget",
		SLO: &v1alpha1.SLOGate{}}}
	r := &v1alpha1.OperatorRollout{}
	r.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", Gates: gates}, {Name: "prod", Gates: gates}}
	waits := v1alpha1.GateStatus{Name: "sre", Verdict: v1alpha1.GateWaiting, WaitingSince: since}
	r.Status.Phase = v1alpha1.RolloutProgressing
	r.Status.Waves = []v1alpha1.WaveStatus{
		{Name: "canary", Phase: v1alpha1.WaveSkipped, Gates: []v1alpha1.GateStatus{waits, {Name: "budget",
			Verdict: v1alpha1.GateFailed}}},
		{Name: "prod", Phase: v1alpha1.WaveGated, Gates: []v1alpha1.GateStatus{waits, {Name: "budget",
			Verdict: v1alpha1.GateWaiting}}}}
	return r
}

func TestListApprovable(t *testing.T) {
	t.Parallel()
	canary, prod := rollouts.GateRef{Wave: "canary", Gate: "sre"}, rollouts.GateRef{Wave: "prod", Gate: "sre"}
	for name, test := range map[string]struct {
		change   func(*v1alpha1.OperatorRollout)
		wanted   rollouts.GateRef
		want     []rollouts.GateRef
		hasEnded bool
	}{
		"what it waits for": {want: []rollouts.GateRef{prod}},
		"what joined later": {change: func(r *v1alpha1.OperatorRollout) {
			r.Status.Waves[1].Phase = v1alpha1.WaveVerifying
		}, want: []rollouts.GateRef{canary}},
		"a wave":             {wanted: rollouts.GateRef{Wave: "canary"}, want: []rollouts.GateRef{canary}},
		"a gate":             {wanted: rollouts.GateRef{Gate: "sre"}, want: []rollouts.GateRef{canary, prod}},
		"a gate of the wave": {wanted: prod, want: []rollouts.GateRef{prod}},
		"no approval":        {wanted: rollouts.GateRef{Gate: "budget"}},
		"it has ended": {change: func(r *v1alpha1.OperatorRollout) { r.Status.Phase = v1alpha1.RolloutAborted },
			hasEnded: true},
		"it has succeeded, and a cluster joined": {change: func(r *v1alpha1.OperatorRollout) {
			r.Status.Phase, r.Status.Waves[1].Phase = v1alpha1.RolloutSucceeded, v1alpha1.WaveVerified
		}, want: []rollouts.GateRef{canary}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gatedRollout()
			if test.change != nil {
				test.change(r)
			}
			got, hasEnded := rollouts.ListApprovable(r, test.wanted)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || hasEnded != test.hasEnded {
				t.Errorf("ended: %t, gates (-want +got):\n%s", hasEnded, diff)
			}
		})
	}
}

func TestListOverridable(t *testing.T) {
	t.Parallel()
	canary, prod := rollouts.GateRef{Wave: "canary", Gate: "budget"}, rollouts.GateRef{Wave: "prod", Gate: "budget"}
	r := gatedRollout()
	r.Status.Waves[0].Phase = v1alpha1.WaveVerifying
	ended := gatedRollout()
	ended.Status.Phase = v1alpha1.RolloutSucceeded
	for name, test := range map[string]struct {
		rollout  *v1alpha1.OperatorRollout
		wanted   rollouts.GateRef
		want     []rollouts.GateRef
		hasEnded bool
	}{
		"what stops it": {rollout: r, want: []rollouts.GateRef{canary}},
		"a wave":        {rollout: r, wanted: rollouts.GateRef{Wave: "prod"}, want: []rollouts.GateRef{prod}},
		"a gate":        {rollout: r, wanted: rollouts.GateRef{Gate: "budget"}, want: []rollouts.GateRef{canary, prod}},
		"an approval":   {rollout: r, wanted: rollouts.GateRef{Gate: "sre"}},
		"it has ended":  {rollout: ended, wanted: canary, hasEnded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, hasEnded := rollouts.ListOverridable(test.rollout, test.wanted)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || hasEnded != test.hasEnded {
				t.Errorf("ended: %t, gates (-want +got):\n%s", hasEnded, diff)
			}
		})
	}
}

func TestApproveAndOverrideOnce(t *testing.T) {
	t.Parallel()
	r := gatedRollout()
	for _, by := range []string{"anna", "bert"} {
		rollouts.Approve(r, v1alpha1.Approval{Wave: "prod", Gate: "sre", By: by})
		rollouts.Override(r, v1alpha1.GateOverride{Wave: "prod", Gate: "budget", By: by})
	}
	if a, o := r.Spec.Approvals, r.Spec.Overrides; len(a) != 1 || a[0].By != "anna" || len(o) != 1 ||
		o[0].By != "anna" {
		t.Errorf("approvals %v, overrides %v", a, o)
	}
}
