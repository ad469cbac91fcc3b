// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/access"
)

// reportAccess says on which clusters no FleetAccess permits the operator: those that
// are selected are not admitted, and what runs is left alone.
func (p *pass) reportAccess() {
	list := &p.decision.Status.Conditions
	refused, running := p.refusals(), p.outsiders()
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, why+": not admitted: "+phrase.First(sorted(refused[why]), maxNamed))
	}
	if len(running) > 0 {
		parts = append(parts, "it runs, and is left alone, on "+phrase.First(sorted(running), maxNamed))
	}
	if len(parts) == 0 {
		meta.RemoveStatusCondition(list, v1alpha1.ConditionOutsideAccess)
		return
	}
	conditions.Set(list, p.Operator.Generation, v1alpha1.ConditionOutsideAccess, true,
		v1alpha1.ReasonAccessNotPermitted, phrase.Truncate(strings.Join(parts, "; "), maxAccess))
}

// maxAccess bounds the message.
const maxAccess = 2048

// refusals are the selected clusters that the operator's release is not permitted on,
// by why that is.
func (p *pass) refusals() map[string][]string {
	refused := map[string][]string{}
	if p.newest == nil || len(p.Access) == 0 {
		return refused
	}
	decision := access.Decide(p.Access, p.Operator.Namespace, p.newest.Spec.Release)
	for name, c := range p.selected {
		if why := decision.Refusal(c.Labels); why != "" {
			refused[why] = append(refused[why], name)
		}
	}
	return refused
}

// outsiders are the clusters that were admitted to a release which is not permitted
// there now.
func (p *pass) outsiders() []string {
	if len(p.Access) == 0 {
		return nil
	}
	var running []string
	var decision *access.Decision
	var of *v1alpha1.Release
	for _, i := range p.Installs {
		if i.Release == nil || i.Deleting {
			continue
		}
		if of == nil || !equality.Semantic.DeepEqual(of, i.Release) { // mostly all run the same
			of, decision = i.Release, access.Decide(p.Access, p.Operator.Namespace, *i.Release)
		}
		if decision.Refusal(p.known[i.Cluster].Labels) != "" {
			running = append(running, i.Cluster)
		}
	}
	return running
}
