// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

// recordDecisions updates the record of decisions in the status.
func (p *pass) recordDecisions() {
	p.decision.Status.Decisions, p.decision.Decided = UpdateDecisionLog(DecisionLogInput{
		Now: p.Now, Operator: p.Operator, Rollouts: p.Rollouts, LiftsHolds: p.hasNewerRollout,
	})
}
