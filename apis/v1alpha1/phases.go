// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Ended tells whether a rollout in this phase has come to its first end, which its status records. One that has
// succeeded may still admit clusters: see MayAdmit.
func (p RolloutPhase) Ended() bool {
	return p == RolloutSucceeded || p == RolloutAborted || p == RolloutSuperseded || p == RolloutRolledBack
}

// MayAdmit tells whether the rollout may admit clusters, now or later. One that has succeeded may: it takes in clusters
// that join late, and those that were deferred, until a newer rollout of the operator supersedes it. Paused and halted
// rollouts may, once they go on.
func (r *OperatorRollout) MayAdmit() bool { return r.Spec.Abort == nil && !r.IsStopped() }

// IsRunning tells whether the rollout goes through its waves, or will: it may admit clusters and has not succeeded.
func (r *OperatorRollout) IsRunning() bool { return r.MayAdmit() && r.Status.Phase != RolloutSucceeded }

// IsStopped tells whether the rollout ended without success: what its waves were doing is over.
func (r *OperatorRollout) IsStopped() bool {
	return r.Status.Phase.Ended() && r.Status.Phase != RolloutSucceeded
}
