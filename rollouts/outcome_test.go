// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func TestOutcomeOf(t *testing.T) {
	approval := v1alpha1.Gate{Name: "sign-off", Approval: &v1alpha1.ApprovalGate{}}
	for name, c := range map[string]struct {
		phase      v1alpha1.RolloutPhase
		wave       v1alpha1.WavePhase
		change     func(*v1alpha1.OperatorRollout)
		want       rollouts.Outcome
		wantBlocks bool
	}{
		"new":                   {phase: "", want: rollouts.OutcomePending},
		"on its way":            {phase: v1alpha1.RolloutProgressing, want: rollouts.OutcomePending},
		"paused":                {phase: v1alpha1.RolloutPaused, want: rollouts.OutcomePending},
		"done":                  {phase: v1alpha1.RolloutSucceeded, want: rollouts.OutcomeSucceeded},
		"stopped":               {phase: v1alpha1.RolloutHalted, want: rollouts.OutcomeFailed},
		"rolled back":           {phase: v1alpha1.RolloutRolledBack, want: rollouts.OutcomeFailed},
		"aborted by its policy": {phase: v1alpha1.RolloutAborted, want: rollouts.OutcomeFailed},
		"superseded":            {phase: v1alpha1.RolloutSuperseded, want: rollouts.OutcomeAborted},
		"waits for an approval": {phase: v1alpha1.RolloutProgressing, wave: v1alpha1.WaveGated,
			want: rollouts.OutcomeNeedsPerson, wantBlocks: true},
		"late joiners wait for an approval": {phase: v1alpha1.RolloutProgressing, wave: v1alpha1.WaveSkipped,
			want: rollouts.OutcomePending},
		"aborted by a person": {phase: v1alpha1.RolloutAborted, want: rollouts.OutcomeAborted,
			change: func(r *v1alpha1.OperatorRollout) { r.Spec.Abort = &v1alpha1.RolloutAbort{} }},
		"an automatic rollback is done": {phase: v1alpha1.RolloutSucceeded, want: rollouts.OutcomeFailed,
			change: func(r *v1alpha1.OperatorRollout) { r.Spec.Rollback = &v1alpha1.RolloutRollback{Automatic: true} }},
		"a rollback that a person asked for is done": {phase: v1alpha1.RolloutSucceeded,
			want:   rollouts.OutcomeSucceeded,
			change: func(r *v1alpha1.OperatorRollout) { r.Spec.Rollback = &v1alpha1.RolloutRollback{} }},
		"the hub has not seen the spec": {phase: v1alpha1.RolloutSucceeded, want: rollouts.OutcomePending,
			change: func(r *v1alpha1.OperatorRollout) { r.Generation = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			since := metav1.Now()
			r := &v1alpha1.OperatorRollout{}
			r.Generation, r.Status.ObservedGeneration, r.Status.Phase = 1, 1, c.phase
			r.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", Gates: []v1alpha1.Gate{approval}}}
			r.Status.Waves = []v1alpha1.WaveStatus{{Name: "canary", Phase: c.wave,
				Gates: []v1alpha1.GateStatus{{Name: approval.Name, WaitingSince: &since}}}}
			if c.change != nil {
				c.change(r)
			}
			if got := rollouts.OutcomeOf(r); got != c.want {
				t.Errorf("outcome %s, want %s", got, c.want)
			}
			if blocks := len(rollouts.BlockingApprovals(r)) > 0; blocks != c.wantBlocks {
				t.Errorf("an approval blocks it: %t, want %t", blocks, c.wantBlocks)
			}
		})
	}
}
