// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"slices"

	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// isFrozen reports whether a FleetFreeze covers the cluster of an install.
func (p *pass) isFrozen(i Install) bool { return holds.FreezeOf(p.Freezes, i.Cluster) != nil }

// dropFrozenRemovals drops removals on clusters under a FleetFreeze from the decision. A step that only sets the
// removal policy stays. Rollouts admit no cluster in a freeze, and nothing is recovered.
func (p *pass) dropFrozenRemovals() {
	frozen := map[string]bool{} // by namespace
	for _, i := range p.Installs {
		frozen[i.Namespace] = p.isFrozen(i)
	}
	p.decision.Removals = slices.DeleteFunc(p.decision.Removals,
		func(s removal.Step) bool { return frozen[s.Namespace] && (s.Delete || s.Release) })
}

// noteFrozen returns a note that lists the operator's clusters under a FleetFreeze. It returns "" if there are none.
func (p *pass) noteFrozen() string {
	var names []string
	for _, i := range p.Installs {
		if p.isFrozen(i) {
			names = append(names, i.Cluster)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "; nothing is changed on clusters under a FleetFreeze: " + phrase.First(names, maxNamed)
}
