// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/claim"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/access"
)

// conflict tells whether an older ManagedOperator claims what this one does on one of the
// selected clusters.
func (p *pass) conflict() *conditions.Summary {
	own := claim.Of(p.Operator)
	if t := p.decision.Status.Target; t != nil {
		own.Provides = t.Provides
	}
	var older []claim.Claim
	for _, c := range p.Claims {
		if c.Compare(own) < 0 && own.Meets(c) != nil {
			older = append(older, c)
		}
	}
	slices.SortFunc(older, claim.Claim.Compare)
	for _, c := range older {
		meeting := own.Meets(c)
		if shared := p.sharedClusters(c); len(shared) > 0 {
			text := fmt.Sprintf("ManagedOperator %s is older and %s, on %s", c.Key, meeting.What,
				phrase.First(sorted(shared), maxNamed))
			if meeting.Why != "" {
				text += "; " + meeting.Why
			}
			s := stalled(meeting.Reason, text+": "+meeting.Do)
			return &s
		}
	}
	return nil
}

// sharedClusters are the selected clusters that a claim is about: those that its operator
// selects, and that its namespace may install something on.
func (p *pass) sharedClusters(c claim.Claim) []string {
	selector, err := metav1.LabelSelectorAsSelector(&c.Selector)
	if err != nil {
		return nil // it selects nothing, which its own status reports
	}
	var names []string
	for name, cluster := range p.selected {
		if selector.Matches(labels.Set(cluster.Labels)) &&
			access.Reaches(p.Access, c.Key.Namespace, cluster.Labels) {
			names = append(names, name)
		}
	}
	return names
}

// maxProvides is the API's limit.
const maxProvides = 256

// provides names the APIs of a bundle, sorted; at most maxProvides.
func provides(b *catalogs.Bundle) []string {
	var names []string
	for _, api := range b.Provides() {
		names = append(names, api.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxProvides)]
}
