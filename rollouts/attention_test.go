// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestWhatNeedsAPerson has a wave with an approval and a gate that measures, in each of its phases.
func TestWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	since := &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	sre, budget := rollouts.GateRef{Wave: "prod", Gate: "sre"}, rollouts.GateRef{Wave: "prod", Gate: "budget"}
	gates := func(approval, measured v1alpha1.GateStatus) []v1alpha1.GateStatus {
		approval.Name, measured.Name = "sre", "budget"
		return []v1alpha1.GateStatus{approval, measured}
	}
	passed := v1alpha1.GateStatus{Verdict: v1alpha1.GatePassed}
	failed := v1alpha1.GateStatus{Verdict: v1alpha1.GateFailed}
	waits := v1alpha1.GateStatus{Verdict: v1alpha1.GateWaiting, WaitingSince: since}
	later := v1alpha1.GateStatus{Verdict: v1alpha1.GateWaiting}
	type answers struct{ Approvals, Failed, Stopped []rollouts.GateRef }
	for name, test := range map[string]struct {
		wave  v1alpha1.WaveStatus
		phase v1alpha1.RolloutPhase
		abort *v1alpha1.RolloutAbort
		want  answers
	}{
		"gated": {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveGated, Gates: gates(later, later)},
			want: answers{Approvals: []rollouts.GateRef{sre}}},
		"before its turn": {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveWaiting, Gates: gates(later, later)}},
		"skipped":         {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveSkipped, Gates: gates(later, later)}},
		"skipped, with a cluster since": {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveSkipped,
			Gates: gates(waits, later)}, want: answers{Approvals: []rollouts.GateRef{sre}}},
		"skipped, with a cluster after the success": {phase: v1alpha1.RolloutSucceeded,
			wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveSkipped, Gates: gates(waits, later)},
			want: answers{Approvals: []rollouts.GateRef{sre}}},
		"gated in a rollout that was aborted": {phase: v1alpha1.RolloutAborted,
			wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveGated, Gates: gates(later, later)}},
		"gated in a rollout that is being aborted": {abort: &v1alpha1.RolloutAbort{Reason: "bad"},
			wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveGated, Gates: gates(later, later)}},
		"without data": {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveVerifying, Gates: gates(passed, waits)},
			want: answers{Stopped: []rollouts.GateRef{budget}}},
		"failed": {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveVerifying, Gates: gates(passed, failed)},
			want: answers{Failed: []rollouts.GateRef{budget}, Stopped: []rollouts.GateRef{budget}}},
		"verified though a gate failed": {wave: v1alpha1.WaveStatus{Phase: v1alpha1.WaveVerified, VerifiedAt: since,
			Gates: gates(passed, failed)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.wave.Name = "prod"
			r := &v1alpha1.OperatorRollout{Spec: v1alpha1.OperatorRolloutSpec{Abort: test.abort,
				Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "prod", Gates: []v1alpha1.Gate{
					{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}, {Name: "budget", SLO: &v1alpha1.SLOGate{}}}}}}}}
			r.Status.Phase, r.Status.Waves = test.phase, []v1alpha1.WaveStatus{test.wave}
			got := answers{rollouts.AwaitingApproval(r), rollouts.FailedGates(r), rollouts.ListStoppingGates(r)}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
