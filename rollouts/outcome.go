// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Outcome is the result of a rollout, or what the rollout waits for, by the last status that the hub wrote.
type Outcome string

const (
	// OutcomePending means that the rollout continues by itself, or that the hub has not processed the rollout's
	// spec yet.
	OutcomePending Outcome = "Pending"
	// OutcomeSucceeded means that every wave was verified.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed means that the release failed: the rollout stopped itself, was rolled back, or is the automatic
	// rollback of a failed release.
	OutcomeFailed Outcome = "Failed"
	// OutcomeAborted means that a person or a newer rollout ended the rollout.
	OutcomeAborted Outcome = "Aborted"
	// OutcomeNeedsPerson means that a wave waits for an approval, or that the release was not observed in a wave.
	OutcomeNeedsPerson Outcome = "NeedsPerson"
)

// OutcomeOf returns the outcome of a rollout. The first case that applies decides.
func OutcomeOf(r *v1alpha1.OperatorRollout) Outcome {
	phase := r.Status.Phase
	switch {
	case r.Status.ObservedGeneration < r.Generation:
		return OutcomePending
	case phase == v1alpha1.RolloutSucceeded && r.Spec.Rollback != nil && r.Spec.Rollback.Automatic:
		return OutcomeFailed
	case phase == v1alpha1.RolloutSucceeded:
		return OutcomeSucceeded
	case phase == v1alpha1.RolloutHalted, phase == v1alpha1.RolloutRolledBack,
		phase == v1alpha1.RolloutAborted && r.Spec.Abort == nil: // its own failure policy aborted it
		return OutcomeFailed
	case phase.Ended():
		return OutcomeAborted
	case phase == v1alpha1.RolloutProgressing && (len(BlockingApprovals(r)) > 0 || needsObservation(r)):
		return OutcomeNeedsPerson
	default:
		return OutcomePending
	}
}

// needsObservation reports whether a wave waits for a person because the release was observed on none of its clusters.
func needsObservation(r *v1alpha1.OperatorRollout) bool {
	return slices.ContainsFunc(ListStoppingGates(r), func(g GateRef) bool { return g.Gate == v1alpha1.GateObservation })
}
