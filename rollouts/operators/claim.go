// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// checkConflict returns a problem if an older ManagedOperator claims the same objects on one of the selected clusters.
// Otherwise it returns nil.
func (p *pass) checkConflict() *conditions.Summary {
	ownClaim := engines.NewClaim(p.Operator)
	if t := p.decision.Status.Target; t != nil {
		ownClaim.Provides = t.Provides
	}
	var older []engines.Claim
	for _, c := range p.Claims {
		if c.Compare(ownClaim) < 0 && ownClaim.FindConflict(c) != nil {
			older = append(older, c)
		}
	}
	slices.SortFunc(older, engines.Claim.Compare)
	for _, c := range older { // the oldest claim with a shared cluster decides
		conflict := ownClaim.FindConflict(c)
		if shared := p.listSharedClusters(c); len(shared) > 0 {
			text := fmt.Sprintf("ManagedOperator %s is older and %s, on %s", c.Key, conflict.Overlap,
				phrase.First(sortNames(shared), maxNamed))
			if conflict.Cause != "" {
				text += "; " + conflict.Cause
			}
			s := newStalled(conflict.Reason, text+": "+conflict.Advice)
			return &s
		}
	}
	return nil
}

// listSharedClusters returns the selected clusters that the claim's operator also selects and on which the claim's
// namespace may install operators.
func (p *pass) listSharedClusters(c engines.Claim) []string {
	selector, err := metav1.LabelSelectorAsSelector(&c.Selector)
	if err != nil {
		return nil // the operator selects nothing, and its own status reports that
	}
	var names []string
	for name, cluster := range p.selected {
		if selector.Matches(labels.Set(cluster.Labels)) &&
			holds.HasAccess(p.Access, c.Key.Namespace, cluster.Labels) {
			names = append(names, name)
		}
	}
	return names
}

// maxProvides is the API's limit for the provided APIs in the status.
const maxProvides = 256

// listProvidedAPIs returns the sorted names of the APIs that a bundle provides, at most maxProvides.
func listProvidedAPIs(b *catalogs.Bundle) []string {
	var names []string
	for _, api := range b.Provides() {
		names = append(names, api.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxProvides)]
}
