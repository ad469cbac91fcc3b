// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// freeze distributes the clusters over the waves and writes the membership to
// labels. Nothing was admitted yet, so it starts anew on every pass until it
// finds every label as it would write it; then the plan is frozen. A cluster that
// cannot be written to is left out, and is a late joiner once it can.
func (p *pass) freeze() Decision {
	status := *p.prior.DeepCopy()
	status.Phase = v1alpha1.RolloutPending
	status.ReleaseHash = p.hash
	d := Decision{Reason: v1alpha1.ReasonPending}
	if len(p.selected) == 0 {
		status.Message = "no enrolled cluster matches the cluster selector: label a FleetCluster or change the " +
			"ManagedOperator's clusterSelector"
		d.Status, d.Standing, d.Reason = status, Stuck, v1alpha1.ReasonNoClusters
		return d
	}
	writable, held := p.writable()
	if len(writable) == 0 {
		status.Message = phrase.Truncate("the rollout cannot start on any cluster: "+listHeld(held, cannotBeWritten),
			maxMessage)
		d.Status, d.Standing, d.Reason = status, Stuck, v1alpha1.ReasonClusterNotWritable
		d.RecheckAfter = max(firstEnd(held).Sub(p.in.Now), recheckPlanning)
		return d
	}
	assigned := assign(p.waves, writable)
	d.Actions = p.misplaced(assigned)
	// A view from a cache could miss a label that another pass has written.
	if len(d.Actions) > 0 || !p.in.Live {
		status.Message = fmt.Sprintf("freezing the membership: %s assigned to a wave",
			phrase.Part(len(writable)-len(d.Actions), len(p.selected), "cluster"))
		if len(held) > 0 {
			status.Message = phrase.Truncate(status.Message+"; "+listHeld(held, cannotBeWritten), maxMessage)
		}
		d.Actions = d.Actions[:min(len(d.Actions), MaxAssignments)]
		d.Status, d.RecheckAfter = status, recheckPlanning
		return d
	}
	p.prior.PlanHash = hashPlan(p.waves, assigned)
	p.prior.StartedAt = stampTime(p.in.Now)
	p.count()
	frozen := p.proceed()
	frozen.Events = append([]Event{{
		Reason:  v1alpha1.ConditionPlanned,
		Message: phrase.Count(len(writable), "cluster") + " in " + phrase.Count(len(p.waves), "wave"),
	}}, frozen.Events...)
	return frozen
}

const cannotBeWritten = "cannot be written to"

// writable returns the selected clusters that can be written to, and those that cannot.
func (p *pass) writable() (clusters []Cluster, held []heldCluster) {
	for _, c := range p.selected {
		if h := p.notWritable(c); h != nil {
			held = append(held, heldCluster{c.Name, *h})
		} else {
			clusters = append(clusters, c)
		}
	}
	return clusters, held
}

// misplaced are the assignments that the labels do not show yet. An install
// that is being deleted is left out until it is gone and made anew.
func (p *pass) misplaced(assigned [][]string) []Action {
	var actions []Action
	for i, names := range assigned {
		for _, name := range names {
			install, exists := p.installs[name]
			placed := exists && install.Rollout == p.in.Rollout.Name && install.Wave == p.waves[i].Name
			if !placed && (!exists || !install.Deleting) {
				actions = append(actions, Action{Kind: ActionAssign, Cluster: name, Wave: p.waves[i].Name})
			}
		}
	}
	return actions
}

// adopt assigns late joiners to their wave.
func (p *pass) adopt() []Action {
	if p.strategy.LateJoiners == v1alpha1.LateIgnore || p.ending() {
		return nil
	}
	var actions []Action
	for _, c := range p.selected {
		install, exists := p.installs[c.Name]
		if exists && (install.Deleting || install.Rollout == p.in.Rollout.Name) || p.notWritable(c) != nil {
			continue
		}
		if len(actions) == MaxAssignments {
			break
		}
		i := p.waveOf(c)
		p.states[i].present++
		actions = append(actions, Action{Kind: ActionAssign, Cluster: c.Name, Wave: p.waves[i].Name})
	}
	return actions
}

// waveOf is the wave that a late joiner belongs to; the last one takes all.
func (p *pass) waveOf(c Cluster) int {
	for i, w := range p.waves {
		if w.joins(c, p.states[i].present) {
			return i
		}
	}
	return len(p.waves) - 1
}
