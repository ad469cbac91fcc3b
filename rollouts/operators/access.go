// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// reportAccess sets or removes the condition OutsideAccess, which lists the clusters on which no FleetAccess permits
// the operator. Selected clusters among them are not admitted, and running operators are not changed.
func (p *pass) reportAccess() {
	list := &p.decision.Status.Conditions
	refused, running := p.listRefusals(), p.listOutsiders()
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, why+": not admitted: "+phrase.First(sortNames(refused[why]), maxNamed))
	}
	if len(running) > 0 {
		parts = append(parts, "it runs, and is left alone, on "+phrase.First(sortNames(running), maxNamed))
	}
	if len(parts) == 0 {
		meta.RemoveStatusCondition(list, v1alpha1.ConditionOutsideAccess)
		return
	}
	conditions.Set(list, p.Operator.Generation, v1alpha1.ConditionOutsideAccess, true,
		v1alpha1.ReasonAccessNotPermitted, phrase.Truncate(strings.Join(parts, "; "), maxAccess))
}

// maxAccess is the maximum length of the message.
const maxAccess = 2048

// listRefusals returns the selected clusters on which the release of the newest rollout is not permitted, by reason.
func (p *pass) listRefusals() map[string][]string {
	refused := map[string][]string{}
	if p.newest == nil || len(p.Access) == 0 {
		return refused
	}
	decision := holds.DecideAccess(p.Access, p.Operator.Namespace, p.newest.Spec.Release)
	for name, c := range p.selected {
		if why := decision.Refusal(c.Labels); why != "" {
			refused[why] = append(refused[why], name)
		}
	}
	return refused
}

// listOutsiders returns the clusters whose admitted release is not permitted there now.
func (p *pass) listOutsiders() []string {
	if len(p.Access) == 0 {
		return nil
	}
	var running []string
	var decision *holds.AccessDecision
	var release *v1alpha1.Release
	for _, i := range p.Installs {
		if i.Release == nil || i.Deleting {
			continue
		}
		if release == nil || !equality.Semantic.DeepEqual(release, i.Release) { // most clusters run the same release
			release, decision = i.Release, holds.DecideAccess(p.Access, p.Operator.Namespace, *i.Release)
		}
		if decision.Refusal(p.fleet[i.Cluster].Labels) != "" {
			running = append(running, i.Cluster)
		}
	}
	return running
}
