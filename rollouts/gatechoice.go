// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ListApprovable lists the gates that a person can mean who approves a gate of a rollout; hasEnded is true if the
// rollout has ended and waits for no approval. If wanted is empty, these are the gates that the rollout waits for or,
// if there are none, the gates of clusters that joined later. Otherwise they are the approval gates with the wave and
// the gate of wanted, of which one can be empty.
func ListApprovable(r *v1alpha1.OperatorRollout, wanted GateRef) (gates []GateRef, hasEnded bool) {
	awaited := AwaitingApproval(r)
	if !r.IsRunning() && len(awaited) == 0 {
		return nil, true
	}
	if wanted != (GateRef{}) {
		return selectGates(GatesOf(r, true), wanted), false
	}
	if blocking := BlockingApprovals(r); len(blocking) > 0 {
		return blocking, false
	}
	return awaited, false
}

// ListOverridable lists the gates that a person can mean who overrides a gate of a rollout; hasEnded is true if the
// rollout has ended. If wanted is empty, these are the gates of ListStoppingGates. Otherwise they are the gates that
// measure the release with the wave and the gate of wanted, of which one can be empty.
func ListOverridable(r *v1alpha1.OperatorRollout, wanted GateRef) (gates []GateRef, hasEnded bool) {
	switch {
	case !r.IsRunning():
		return nil, true
	case wanted != (GateRef{}):
		return selectGates(GatesOf(r, false), wanted), false
	}
	return ListStoppingGates(r), false
}

// selectGates returns the gates with the wave and the gate of wanted. An empty field matches all gates.
func selectGates(gates []GateRef, wanted GateRef) []GateRef {
	return slices.DeleteFunc(gates, func(g GateRef) bool {
		isOtherWave := wanted.Wave != "" && g.Wave != wanted.Wave
		isOtherGate := wanted.Gate != "" && g.Gate != wanted.Gate
		return isOtherWave || isOtherGate
	})
}

// Approve adds an approval to the spec of a rollout, unless the gate is already approved there.
func Approve(r *v1alpha1.OperatorRollout, approval v1alpha1.Approval) {
	if !slices.ContainsFunc(r.Spec.Approvals, func(a v1alpha1.Approval) bool {
		return a.Wave == approval.Wave && a.Gate == approval.Gate
	}) {
		r.Spec.Approvals = append(r.Spec.Approvals, approval)
	}
}

// Override adds an override to the spec of a rollout, unless the gate is already overridden there.
func Override(r *v1alpha1.OperatorRollout, override v1alpha1.GateOverride) {
	if !slices.ContainsFunc(r.Spec.Overrides, func(o v1alpha1.GateOverride) bool {
		return o.Wave == override.Wave && o.Gate == override.Gate
	}) {
		r.Spec.Overrides = append(r.Spec.Overrides, override)
	}
}
