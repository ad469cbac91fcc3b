// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// freezeMembership distributes the clusters over the waves. It returns a decision with actions that write the
// membership to labels. No cluster is admitted yet, so every pass computes the distribution again until a live view
// shows all labels. Then it returns an observation with the frozen plan, and no decision. A cluster that cannot be
// written to is left out, and becomes a late joiner when it can be written to. Without any usable cluster the decision
// is Stuck.
func freezeMembership(o observation) (observation, *Decision) {
	if len(o.selected) == 0 {
		return o, recordPending(o.in, o.hash, Decision{Standing: Stuck, Reason: v1alpha1.ReasonNoClusters},
			"no enrolled cluster matches the cluster selector: label a FleetCluster or change the "+
				"ManagedOperator's clusterSelector")
	}
	writable, held := splitWritable(o.in.Rollout, o.selected)
	if len(writable) == 0 {
		delay := max(findFirstEnd(held).Sub(o.in.Now), recheckPlanning)
		return o, recordPending(o.in, o.hash, Decision{Standing: Stuck, Reason: v1alpha1.ReasonClusterNotWritable,
			RecheckAfter: delay}, "the rollout cannot start on any cluster: "+listHeld(held, cannotBeWritten))
	}
	assigned := assignClusters(o.waves, writable)
	actions := findMisplaced(o.in.Rollout.Name, o.waves, assigned, o.installs)
	// A view from a cache could miss a label that another pass has written.
	if len(actions) > 0 || !o.in.Live {
		message := fmt.Sprintf("freezing the membership: %s assigned to a wave",
			phrase.Part(len(writable)-len(actions), len(o.selected), "cluster"))
		if len(held) > 0 {
			message += "; " + listHeld(held, cannotBeWritten)
		}
		return o, recordPending(o.in, o.hash, Decision{Reason: v1alpha1.ReasonPending, RecheckAfter: recheckPlanning,
			Actions: actions[:min(len(actions), MaxAssignments)]}, message)
	}
	o.prior.PlanHash = hashPlan(o.waves, assigned)
	o.prior.StartedAt = roundDown(o.in.Now)
	o.events = []Event{{
		Reason:  v1alpha1.ConditionPlanned,
		Message: phrase.Count(len(writable), "cluster") + " in " + phrase.Count(len(o.waves), "wave"),
	}}
	return o, nil
}

const cannotBeWritten = "cannot be written to"

// recordPending completes the decision for a rollout whose membership is not frozen.
func recordPending(in Input, hash string, d Decision, message string) *Decision {
	d.Status = *in.Rollout.Status.DeepCopy()
	d.Status.Phase, d.Status.ReleaseHash = v1alpha1.RolloutPending, hash
	d.Status.Message = phrase.Truncate(message, maxMessage)
	d.Status.Phases = appendPhaseChange(in, d.Status)
	return &d
}

// splitWritable returns the selected clusters that can be written to, and the clusters that cannot be written to.
func splitWritable(ro *v1alpha1.OperatorRollout, selected []Cluster) (clusters []Cluster, held []heldCluster) {
	for i := range selected {
		c := &selected[i]
		if h := findNotWritableHold(ro, c); h != nil {
			held = append(held, heldCluster{c.Name, *h})
		} else {
			clusters = append(clusters, *c)
		}
	}
	return clusters, held
}

// findMisplaced returns an assignment for each cluster whose labels do not show its wave. assigned has the names of the
// clusters of each wave. A cluster whose install is being deleted is left out until the install is gone.
func findMisplaced(rollout string, waves []wave, assigned [][]string, installs map[string]*Install) []Action {
	var actions []Action
	for i, names := range assigned {
		for _, name := range names {
			install, exists := installs[name]
			placed := exists && install.Rollout == rollout && install.Wave == waves[i].Name
			if !placed && (!exists || !install.Deleting) {
				actions = append(actions, Action{Kind: ActionAssign, Cluster: name, Wave: waves[i].Name})
			}
		}
	}
	return actions
}

// assignLateJoiners returns at most MaxAssignments assignments for selected clusters that are not members yet and can
// be written to. It counts these clusters as present in waves.
func assignLateJoiners(ro *v1alpha1.OperatorRollout, selected []Cluster, installs map[string]*Install,
	waves []judgedWave) []Action {
	var actions []Action
	for i := range selected {
		c := &selected[i]
		install, exists := installs[c.Name]
		isMember := exists && install.Rollout == ro.Name
		isDeleting := exists && install.Deleting // the cluster is assigned when the install is created again
		if isMember || isDeleting || findNotWritableHold(ro, c) != nil {
			continue
		}
		if len(actions) == MaxAssignments {
			break
		}
		place := findLateJoinerWave(c, waves)
		waves[place].present++
		actions = append(actions, Action{Kind: ActionAssign, Cluster: c.Name, Wave: waves[place].Name})
	}
	return actions
}

// findLateJoinerWave returns the index of the wave for a late joiner. The last wave takes every cluster.
func findLateJoinerWave(c *Cluster, waves []judgedWave) int {
	for i := range waves {
		if waves[i].canJoin(*c, waves[i].present) {
			return i
		}
	}
	return len(waves) - 1
}
