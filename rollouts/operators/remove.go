// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// hasFinalizer reports whether the object has the hub's finalizer.
func hasFinalizer(o *v1alpha1.ManagedOperator) bool {
	return slices.Contains(o.Finalizers, v1alpha1.FinalizerHub)
}

// removeOperator decides the next step of the removal of a ManagedOperator. Its rollouts are deleted first, because a
// running rollout would install the operator again. Then the operator is removed from the clusters, and then the
// finalizer is removed.
func (p *pass) removeOperator() {
	if !hasFinalizer(p.Operator) {
		return // only other finalizers are left
	}
	for _, r := range p.Rollouts {
		if r.DeletionTimestamp == nil {
			p.decision.DeleteRollouts = append(p.decision.DeleteRollouts, r.Name)
		}
	}
	var waitFor, offline []string
	if len(p.Rollouts) == 0 {
		waitFor, offline = p.removeAll()
	}
	p.decision.RemoveFinalizer = len(p.Rollouts) == 0 && len(p.Installs) == 0
	conditions.Summarize(&p.decision.Status.Conditions, p.Operator.Generation,
		p.summarizeRemoval(waitFor, offline))
}

// removeAll removes the operator from all clusters. It returns the clusters that still have the operator, and the
// offline clusters among them. The fleet controller decides on removal from clusters that leave the fleet.
func (p *pass) removeAll() (waitFor, offline []string) {
	var leaving []Install
	for _, install := range p.Installs {
		waitFor = append(waitFor, install.Cluster)
		if cluster, known := p.fleet[install.Cluster]; !known || !cluster.Deleting {
			leaving = append(leaving, install)
		}
	}
	return waitFor, p.removeFrom(leaving)
}

// removeFrom removes the operator from clusters by its policy, and returns the offline clusters that block the removal.
// It adds the paused clusters that block the removal to paused. Uninstall follows the waves of the strategy. Orphan
// changes nothing on a cluster, and Restore changes nothing that runs, so these policies apply to all clusters at once.
func (p *pass) removeFrom(leaving []Install) (offline []string) {
	spec := p.Operator.Spec
	var leavers []removal.Leaver
	for _, install := range leaving {
		cluster, known := p.fleet[install.Cluster]
		leaver := removal.Leaver{
			Install: install.Install, Wave: install.Admitted.Wave, Reach: readReach(cluster, known),
			Stalled: install.StalledReason != "", Frozen: p.isFrozen(install),
		}
		leaver.Paused = cluster.IsChangeForbidden()
		leavers = append(leavers, leaver)
		switch {
		case removal.IsWaitingForPause(leaver.Install, spec.RemovalPolicy, leaver.Reach):
			p.paused = append(p.paused, install.Cluster)
		case removal.IsBlocked(leaver.Install, spec.RemovalPolicy, leaver.Reach):
			offline = append(offline, install.Cluster)
		}
	}
	if spec.RemovalPolicy == v1alpha1.RemovalUninstall {
		pace := removal.Uninstall(leavers, spec.Strategy, spec.Removal)
		p.decision.Removals, p.uninstallFailed = append(p.decision.Removals, pace.Steps...), pace.Failed
		p.decision.Status.Removal = pace.Progress
		return offline
	}
	for _, l := range leavers {
		if step, due := removal.Next(l.Install, spec.RemovalPolicy, l.Reach); due {
			p.decision.Removals = append(p.decision.Removals, step)
		}
	}
	return offline
}

// cancelRemovals withdraws the permission to remove or restore the operator on clusters that were selected again
// before the removal began.
func (p *pass) cancelRemovals() {
	for _, install := range p.Installs {
		_, isSelected := p.selected[install.Cluster]
		if isSelected && !install.Deleting && install.Policy.NeedsAgent() {
			p.decision.Removals = append(p.decision.Removals, removal.Step{
				Namespace: install.Namespace, Name: install.Name, SetPolicy: v1alpha1.RemovalOrphan})
		}
	}
}

// summarizeRemoval returns the state of the removal of the operator. waitFor are the clusters that still have the
// operator, and offline are the offline clusters among them. States in which a person must act come first.
func (p *pass) summarizeRemoval(waitFor, offline []string) conditions.Summary {
	progress := p.decision.Status.Removal
	switch {
	case len(p.uninstallFailed) > 0:
		return newStalled(v1alpha1.ReasonUninstallFailed, p.explainUninstall())
	case progress != nil && progress.Request != "":
		return newStalled(v1alpha1.ReasonRemovalUnconfirmed, p.explainUninstall())
	case len(offline) > 0:
		return newStalled(v1alpha1.ReasonAgentOffline, fmt.Sprintf(
			"%s %s not %s: %s; there is no time limit: "+
				"start their agents; remove clusters that are lost from the fleet with `bellwether fleet remove NAME "+
				"--offboarding-timeout 0s`; or set spec.removalPolicy to Orphan to leave the operator on all clusters "+
				"that still have it",
			phrase.Part(len(offline), len(waitFor), "cluster"),
			phrase.Word(len(waitFor), "is offline and has", "are offline and have"), p.describeRemoved(),
			phrase.First(sortNames(offline), maxNamed))+p.notePaused())
	case len(p.paused) > 0:
		return newWaiting(v1alpha1.ReasonClusterPaused, fmt.Sprintf("waiting for %s to remove it: %s",
			phrase.Count(len(waitFor), "cluster"), phrase.First(sortNames(waitFor), maxNamed))+p.notePaused()+
			p.noteFrozen())
	case len(waitFor) > 0:
		return newWaiting(v1alpha1.ReasonDeleting, fmt.Sprintf("waiting for %s to remove it: %s",
			phrase.Count(len(waitFor), "cluster"), phrase.First(sortNames(waitFor), maxNamed))+p.noteFrozen())
	default:
		return newWaiting(v1alpha1.ReasonDeleting, "its rollouts are being removed")
	}
}

// notePaused lists the clusters that keep the operator because they are paused, and says what a person can do. It
// returns "" if there are none.
func (p *pass) notePaused() string {
	if len(p.paused) == 0 {
		return ""
	}
	effect := "nothing is uninstalled from"
	if p.Operator.Spec.RemovalPolicy == v1alpha1.RemovalRestore {
		effect = "nothing is put back on"
	}
	return fmt.Sprintf("; %s clusters that are paused (%s): set spec.paused of the "+
		"FleetCluster to false, or have its source resumed; remove a cluster from the fleet with `bellwether fleet "+
		"remove NAME --offboarding Orphan`; or set spec.removalPolicy to Orphan to leave the operator on all clusters "+
		"that still have it", effect, phrase.First(sortNames(p.paused), maxNamed))
}

// describeRemoved returns what an agent has done after the removal: the text follows "it has".
func (p *pass) describeRemoved() string {
	if p.Operator.Spec.RemovalPolicy == v1alpha1.RemovalRestore {
		return "put back what was there before"
	}
	return "uninstalled the operator"
}

// explainUninstall says what the removal from clusters waits for. It returns "" if no cluster must uninstall
// the operator.
func (p *pass) explainUninstall() string {
	progress := p.decision.Status.Removal
	switch {
	case progress == nil:
		return ""
	case len(p.uninstallFailed) > 0:
		return fmt.Sprintf("the operator cannot be uninstalled from %s, so no other removal begins: see their "+
			"OperatorInstalls", phrase.First(p.uninstallFailed, maxNamed))
	case progress.Request != "":
		return fmt.Sprintf("it is to be uninstalled from %s, which needs a confirmation: bellwether operator "+
			"confirm-removal %s, or set spec.removal.confirm to %s",
			phrase.Count(int(progress.Unconfirmed), "cluster"), p.Operator.Name, progress.Request)
	case progress.Uninstalling == 0:
		return fmt.Sprintf("it must still be uninstalled from %s", phrase.Count(int(progress.Waiting), "cluster"))
	default:
		return fmt.Sprintf("uninstalling it from %s, %d more after that",
			phrase.Count(int(progress.Uninstalling), "cluster"), progress.Waiting)
	}
}
