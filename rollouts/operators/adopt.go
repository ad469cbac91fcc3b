// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// recordAdoption records in the status which rollout first took over the operators that were already installed. The
// status must have this record because old rollouts are deleted. Without spec.adopt, the record is removed.
func (p *pass) recordAdoption() {
	status := &p.decision.Status
	if p.Operator.Spec.Adopt == nil {
		status.Adoption = nil
		return
	}
	if status.Adoption != nil {
		return
	}
	var earliest *v1alpha1.OperatorRollout
	for i := range p.Rollouts {
		r := &p.Rollouts[i]
		if r.Spec.Release.AsInstalled && r.Status.Phase == v1alpha1.RolloutSucceeded &&
			(earliest == nil || r.Spec.Revision < earliest.Spec.Revision) {
			earliest = r
		}
	}
	if earliest != nil {
		status.Adoption = &v1alpha1.AdoptionOutcome{Rollout: earliest.Name, EndedAt: earliest.Status.EndedAt.DeepCopy(),
			Clusters: earliest.Status.Clusters.Succeeded}
	}
}

// buildAdoptionRelease returns the release that takes over the installed operators, or a problem. The release has no
// version, so a change of the target does not end its rollout, and most problems with the target do not block it. They
// are kept for noteAfterAdoption. The channel must be valid, because the Subscriptions get this channel.
func (p *pass) buildAdoptionRelease(release v1alpha1.Release, problem *conditions.Summary) (v1alpha1.Release,
	*conditions.Summary) {
	if problem != nil {
		switch problem.Reason {
		case v1alpha1.ReasonUnknownChannel, v1alpha1.ReasonCatalogInvalid, v1alpha1.ReasonInvalidSpec:
			return v1alpha1.Release{}, problem
		}
		p.targetProblem = problem.Message
	}
	release.AsInstalled = true
	return release, nil
}

// buildStrategy returns the strategy for the rollout of a release.
func (p *pass) buildStrategy(release v1alpha1.Release) v1alpha1.RolloutStrategy {
	strategy := *p.Operator.Spec.Strategy.DeepCopy()
	if release.AsInstalled {
		strategy = rollouts.AdoptionStrategy(strategy)
	}
	return rollouts.Defaulted(strategy)
}

// canAdoptMore reports whether the catalog has changed since the newest rollout began, and a cluster's operator could
// not be taken over in that rollout. The changed catalog might have the installed version.
func (p *pass) canAdoptMore(release v1alpha1.Release) bool {
	return p.newest.Spec.Release.Catalog.Digest != release.Catalog.Digest && p.countInstalls(func(i Install) bool {
		return i.StalledReason == v1alpha1.ReasonNotAdoptable
	}) > 0
}

// noteAfterAdoption returns a note on the problem that blocks the target after the take-over. It returns "" if there
// is none.
func (p *pass) noteAfterAdoption() string {
	if p.targetProblem == "" {
		return ""
	}
	return "; after that: " + p.targetProblem
}
