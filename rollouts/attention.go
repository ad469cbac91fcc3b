// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// AwaitingApproval lists the missing approvals of gated waves, and of skipped waves that clusters joined later. The
// rollout does not wait for a skipped wave. A rollout that admits no more clusters waits for no approval.
func AwaitingApproval(r *v1alpha1.OperatorRollout) []GateRef {
	return listMissingApprovals(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		return w.Phase == v1alpha1.WaveGated || w.Phase == v1alpha1.WaveSkipped && g.WaitingSince != nil
	})
}

// BlockingApprovals lists the approvals of AwaitingApproval that block the rollout: approvals of gated waves.
func BlockingApprovals(r *v1alpha1.OperatorRollout) []GateRef {
	return listMissingApprovals(r, func(w v1alpha1.WaveStatus, _ v1alpha1.GateStatus) bool {
		return w.Phase == v1alpha1.WaveGated
	})
}

// listMissingApprovals lists the missing approvals of the gates for which isWaiting returns true.
func listMissingApprovals(r *v1alpha1.OperatorRollout,
	isWaiting func(v1alpha1.WaveStatus, v1alpha1.GateStatus) bool) []GateRef {
	if !r.MayAdmit() {
		return nil
	}
	approvals := GatesOf(r, true)
	return filterGates(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		return isWaiting(w, g) && !g.IsPassed() && slices.Contains(approvals, GateRef{w.Name, g.Name})
	})
}

// FailedGates lists the failed gates of waves that are not done. A failed gate of a verified wave stops nothing.
func FailedGates(r *v1alpha1.OperatorRollout) []GateRef {
	return filterGates(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		return !w.IsDone() && g.Verdict == v1alpha1.GateFailed
	})
}

// ListStoppingGates lists the gates that measure the release and either failed or block their wave without a verdict.
func ListStoppingGates(r *v1alpha1.OperatorRollout) []GateRef {
	measured := GatesOf(r, false)
	return filterGates(r, func(w v1alpha1.WaveStatus, g v1alpha1.GateStatus) bool {
		isFailed := g.Verdict == v1alpha1.GateFailed
		isBlocking := g.Verdict == v1alpha1.GateWaiting && g.WaitingSince != nil
		return (isFailed || isBlocking) && !w.IsDone() && slices.Contains(measured, GateRef{w.Name, g.Name})
	})
}

// filterGates lists the gates of a rollout's status for which matches returns true.
func filterGates(r *v1alpha1.OperatorRollout,
	matches func(v1alpha1.WaveStatus, v1alpha1.GateStatus) bool) []GateRef {
	var all []GateRef
	for _, w := range r.Status.Waves {
		for _, g := range w.Gates {
			if matches(w, g) {
				all = append(all, GateRef{w.Name, g.Name})
			}
		}
	}
	return all
}
