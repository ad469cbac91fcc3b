// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"cmp"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// maxOutcomes is the API's limit for status.history.
	maxOutcomes = 20
	// maxOutcomeMessage is the API's limit for an outcome's message.
	maxOutcomeMessage = 512
)

// recordHistory keeps the outcome of each rollout in the status after the OperatorRollout was deleted. A rollout that
// this controller did not delete is reported as lost. A succeeded rollout continues to count its clusters for late
// joiners, but its recorded outcome does not change.
func (p *pass) recordHistory() {
	var history []v1alpha1.RolloutOutcome
	recorded, hasRollout := map[string]v1alpha1.RolloutOutcome{}, map[string]bool{}
	for _, outcome := range p.Operator.Status.History {
		recorded[outcome.Name] = outcome
	}
	for i := range p.Rollouts {
		outcome := buildOutcome(&p.Rollouts[i])
		if previous := recorded[outcome.Name]; hasAlreadySucceeded(previous, outcome) {
			outcome = previous
		}
		outcome.Deleted = slices.Contains(p.decision.DeleteRollouts, outcome.Name)
		hasRollout[outcome.Name] = true
		history = append(history, outcome)
	}
	for _, outcome := range p.Operator.Status.History {
		if hasRollout[outcome.Name] {
			continue
		}
		if !outcome.Deleted {
			outcome.Deleted = true
			p.decision.Lost = append(p.decision.Lost, outcome)
		}
		history = append(history, outcome)
	}
	slices.SortFunc(history, func(a, b v1alpha1.RolloutOutcome) int { return cmp.Compare(b.Revision, a.Revision) })
	p.decision.Status.History = history[:min(len(history), maxOutcomes)]
}

// hasAlreadySucceeded reports whether a rollout had succeeded in its previous outcome and has not ended again
// since then.
func hasAlreadySucceeded(previous, current v1alpha1.RolloutOutcome) bool {
	return previous.Phase == v1alpha1.RolloutSucceeded && current.Phase == previous.Phase &&
		current.EndedAt.Equal(previous.EndedAt)
}

// buildOutcome returns the outcome of a rollout.
func buildOutcome(r *v1alpha1.OperatorRollout) v1alpha1.RolloutOutcome {
	message := r.Status.Message
	if runes := []rune(message); len(runes) > maxOutcomeMessage {
		message = string(runes[:maxOutcomeMessage-1]) + "…"
	}
	return v1alpha1.RolloutOutcome{
		Name: r.Name, Revision: r.Spec.Revision, Version: r.Spec.Release.VersionText(),
		Phase:     cmp.Or(r.Status.Phase, v1alpha1.RolloutPending),
		StartedAt: r.Status.StartedAt, EndedAt: r.Status.EndedAt, Clusters: r.Status.Clusters, Message: message,
	}
}
