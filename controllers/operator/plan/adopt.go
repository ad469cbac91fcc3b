// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// recordAdoption notes in the status that a rollout has taken over what others had installed. Rollouts are pruned, so
// they do not tell it for ever.
func (p *pass) recordAdoption() {
	status := &p.decision.Status
	if p.Operator.Spec.Adopt == nil {
		status.Adoption = nil
		return
	}
	if status.Adoption != nil {
		return
	}
	var first *v1alpha1.OperatorRollout
	for i := range p.Rollouts {
		r := &p.Rollouts[i]
		if r.Spec.Release.AsInstalled && r.Status.Phase == v1alpha1.RolloutSucceeded &&
			(first == nil || r.Spec.Revision < first.Spec.Revision) {
			first = r
		}
	}
	if first != nil {
		status.Adoption = &v1alpha1.AdoptionOutcome{Rollout: first.Name, EndedAt: first.Status.EndedAt.DeepCopy(),
			Clusters: first.Status.Clusters.Succeeded}
	}
}

// asInstalled returns the release that takes over what is installed. It has nothing of the target, so that a change of
// the target does not end its rollout, and no problem with the target keeps it from starting. The channel is needed:
// the Subscriptions that are taken over name it from then on.
func (p *pass) asInstalled(release v1alpha1.Release, problem *conditions.Summary) (v1alpha1.Release,
	*conditions.Summary) {
	if problem != nil {
		switch problem.Reason {
		case v1alpha1.ReasonUnknownChannel, v1alpha1.ReasonCatalogInvalid, v1alpha1.ReasonInvalidSpec:
			return v1alpha1.Release{}, problem
		}
		p.problemOfTarget = problem.Message
	}
	release.AsInstalled = true
	return release, nil
}

// strategyFor is the strategy with which a release is rolled out.
func (p *pass) strategyFor(release v1alpha1.Release) v1alpha1.RolloutStrategy {
	strategy := *p.Operator.Spec.Strategy.DeepCopy()
	if release.AsInstalled {
		strategy = rollouts.AdoptionStrategy(strategy)
	}
	return rollouts.Defaulted(strategy)
}

// mayAdoptMore tells whether the catalog has changed since the newest rollout began, and that rollout could not take
// over what some cluster has: the version may be in the catalog now.
func (p *pass) mayAdoptMore(release v1alpha1.Release) bool {
	return p.newest.Spec.Release.Catalog.Digest != release.Catalog.Digest && p.countInstalls(func(i Install) bool {
		return i.StalledReason == v1alpha1.ReasonNotAdoptable
	}) > 0
}

// afterAdoption is a note on what keeps the target from being rolled out next.
func (p *pass) afterAdoption() string {
	if p.problemOfTarget == "" {
		return ""
	}
	return "; after that: " + p.problemOfTarget
}
