// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/bellwether-dev/bellwether/rollouts/audit"

// recordDecisions brings the trail of decisions up to date.
func (p *pass) recordDecisions() {
	p.decision.Status.Decisions, p.decision.Decided = audit.Update(audit.Input{
		Now: p.Now, Operator: p.Operator, Rollouts: p.Rollouts, LiftsHolds: p.isOutlived,
	})
}
