// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Ended reports whether a rollout in this phase has ended for the first time, which its status records. A rollout
// that has succeeded may still admit clusters; see MayAdmit.
func (p RolloutPhase) Ended() bool {
	return p == RolloutSucceeded || p == RolloutAborted || p == RolloutSuperseded || p == RolloutRolledBack
}

// MayAdmit reports whether the rollout may admit clusters, now or later. A rollout that has succeeded may admit
// clusters that join late or were deferred, until a newer rollout of the operator supersedes it. Paused and halted
// rollouts may admit clusters once they continue.
func (r *OperatorRollout) MayAdmit() bool { return r.Spec.Abort == nil && !r.IsStopped() }

// IsRunning reports whether the rollout updates its waves, now or later: it may admit clusters and has not succeeded.
func (r *OperatorRollout) IsRunning() bool { return r.MayAdmit() && r.Status.Phase != RolloutSucceeded }

// IsStopped reports whether the rollout ended without success, so that its waves do not continue.
func (r *OperatorRollout) IsStopped() bool {
	return r.Status.Phase.Ended() && r.Status.Phase != RolloutSucceeded
}
