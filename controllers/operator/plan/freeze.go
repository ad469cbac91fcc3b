// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

func (p *pass) isFrozen(i Install) bool { return freeze.Of(p.Freezes, i.Cluster) != nil }

// spareFrozen takes removals from clusters under a FleetFreeze out of the decision, but notes that one is agreed to.
// Admission there is held back by rollouts, and nothing is recovered.
func (p *pass) spareFrozen() {
	frozen := map[string]bool{} // by namespace
	for _, i := range p.Installs {
		frozen[i.Namespace] = p.isFrozen(i)
	}
	p.decision.Removals = slices.DeleteFunc(p.decision.Removals,
		func(s removal.Step) bool { return frozen[s.Namespace] && (s.Delete || s.Release) })
}

// frozenText names the clusters of the operator that are under a FleetFreeze; empty if none is.
func (p *pass) frozenText() string {
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
