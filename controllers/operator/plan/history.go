// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// maxOutcomes is the API's bound on status.history.
	maxOutcomes = 20
	// maxOutcomeMessage is the API's bound on an outcome's message.
	maxOutcomeMessage = 512
)

// recordHistory keeps the outcome of each rollout in the status after the
// OperatorRollout was deleted. A rollout that this controller did not delete is
// reported as lost. One that succeeded goes on counting its clusters as they are
// now, for late joiners; its outcome stays what it was.
func (p *pass) recordHistory() {
	var history []v1alpha1.RolloutOutcome
	before, seen := map[string]v1alpha1.RolloutOutcome{}, map[string]bool{}
	for _, outcome := range p.Operator.Status.History {
		before[outcome.Name] = outcome
	}
	for i := range p.Rollouts {
		outcome := outcomeOf(&p.Rollouts[i])
		if was := before[outcome.Name]; hasSucceededThen(was, outcome) {
			outcome = was
		}
		outcome.Deleted = slices.Contains(p.decision.DeleteRollouts, outcome.Name)
		seen[outcome.Name] = true
		history = append(history, outcome)
	}
	for _, outcome := range p.Operator.Status.History {
		if seen[outcome.Name] {
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

// hasSucceededThen tells whether an outcome is of a rollout that had succeeded before, and did nothing since then.
func hasSucceededThen(was, is v1alpha1.RolloutOutcome) bool {
	return was.Phase == v1alpha1.RolloutSucceeded && is.Phase == was.Phase && is.EndedAt.Equal(was.EndedAt)
}

func outcomeOf(r *v1alpha1.OperatorRollout) v1alpha1.RolloutOutcome {
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
