// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// AwaitingApproval lists the approvals that clusters of a rollout wait for, wave by wave: all clusters of a wave that
// is gated, or those that joined a wave after it was skipped, for which the rollout itself does not wait. A rollout
// that admits nothing any more waits for none.
func AwaitingApproval(r *v1alpha1.OperatorRollout) []GateRef {
	if !r.MayAdmit() {
		return nil
	}
	approvals := GatesOf(r, true)
	return gatesWhere(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		waits := w.Phase == v1alpha1.WaveGated || w.Phase == v1alpha1.WaveSkipped && g.WaitingSince != nil
		return waits && !g.IsPassed() && slices.Contains(approvals, GateRef{w.Name, g.Name})
	})
}

// FailedGates lists the gates that failed of waves that are not done. What failed in a wave that was verified since
// stops nothing.
func FailedGates(r *v1alpha1.OperatorRollout) []GateRef {
	return gatesWhere(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		return !w.IsDone() && g.Verdict == v1alpha1.GateFailed
	})
}

// StoppedBy lists the gates that measure the release and failed, or that hold their wave back without a verdict.
func StoppedBy(r *v1alpha1.OperatorRollout) []GateRef {
	measured := GatesOf(r, false)
	return gatesWhere(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		holds := g.Verdict == v1alpha1.GateFailed || g.Verdict == v1alpha1.GateWaiting && g.WaitingSince != nil
		return holds && !w.IsDone() && slices.Contains(measured, GateRef{w.Name, g.Name})
	})
}

func gatesWhere(r *v1alpha1.OperatorRollout,
	which func(v1alpha1.WaveStatus, v1alpha1.GateStatus) bool) []GateRef {
	var all []GateRef
	for _, w := range r.Status.Waves {
		for _, g := range w.Gates {
			if which(w, g) {
				all = append(all, GateRef{w.Name, g.Name})
			}
		}
	}
	return all
}
