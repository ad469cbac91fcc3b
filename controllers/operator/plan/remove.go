// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

func hasFinalizer(o *v1alpha1.ManagedOperator) bool {
	return slices.Contains(o.Finalizers, v1alpha1.FinalizerHub)
}

// remove removes a ManagedOperator. Its rollouts are deleted first, because a
// running one would install the operator again.
func (p *pass) remove() {
	if !hasFinalizer(p.Operator) {
		return // only finalizers of others are left
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
		p.removalSummary(waitFor, offline))
}

// removeAll removes the operator from all clusters and returns those to wait
// for. The fleet controller decides on removal from clusters that leave the
// fleet.
func (p *pass) removeAll() (waitFor, offline []string) {
	var leaving []Install
	for _, install := range p.Installs {
		waitFor = append(waitFor, install.Cluster)
		if cluster, known := p.known[install.Cluster]; !known || !cluster.Deleting {
			leaving = append(leaving, install)
		}
	}
	return waitFor, p.removeFrom(leaving)
}

// removeFrom removes the operator from clusters by its policy, and returns those
// that are waited for although they are offline. Orphan changes nothing on a
// cluster, and Restore nothing that runs, so all of them are removed at once.
func (p *pass) removeFrom(leaving []Install) (offline []string) {
	spec := p.Operator.Spec
	var leavers []removal.Leaver
	for _, install := range leaving {
		cluster, known := p.known[install.Cluster]
		leaver := removal.Leaver{
			Install: install.Install, Wave: install.Admitted.Wave, Reach: reachOf(cluster, known),
			Stalled: install.StalledReason != "", Frozen: p.isFrozen(install),
		}
		leaver.Paused = cluster.IsLeftAlone()
		leavers = append(leavers, leaver)
		switch {
		case removal.WaitsForPause(leaver.Install, spec.RemovalPolicy, leaver.Reach):
			p.paused = append(p.paused, install.Cluster)
		case removal.Blocked(leaver.Install, spec.RemovalPolicy, leaver.Reach):
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

// takeBack takes the word back that the operator may be uninstalled from clusters, or put
// back there, which are selected again before that began.
func (p *pass) takeBack() {
	for _, install := range p.Installs {
		_, wanted := p.selected[install.Cluster]
		if wanted && !install.Deleting && install.Policy.NeedsAgent() {
			p.decision.Removals = append(p.decision.Removals, removal.Step{
				Namespace: install.Namespace, Name: install.Name, SetPolicy: v1alpha1.RemovalOrphan})
		}
	}
}

func (p *pass) removalSummary(waitFor, offline []string) conditions.Summary {
	progress := p.decision.Status.Removal
	switch {
	case len(p.uninstallFailed) > 0:
		return stalled(v1alpha1.ReasonUninstallFailed, p.uninstallText())
	case progress != nil && progress.Request != "":
		return stalled(v1alpha1.ReasonRemovalUnconfirmed, p.uninstallText())
	case len(offline) > 0:
		return stalled(v1alpha1.ReasonAgentOffline, fmt.Sprintf(
			"%s %s not %s: %s; there is no time limit: "+
				"start their agents; remove clusters that are lost from the fleet with `bellwether fleet remove NAME "+
				"--offboarding-timeout 0s`; or set spec.removalPolicy to Orphan to leave the operator on all clusters "+
				"that still have it",
			phrase.Part(len(offline), len(waitFor), "cluster"),
			phrase.Word(len(waitFor), "is offline and has", "are offline and have"), p.removed(),
			phrase.First(sorted(offline), maxNamed))+p.pausedText())
	case len(p.paused) > 0:
		return waiting(v1alpha1.ReasonClusterPaused, fmt.Sprintf("waiting for %s to remove it: %s",
			phrase.Count(len(waitFor), "cluster"), phrase.First(sorted(waitFor), maxNamed))+p.pausedText()+
			p.frozenText())
	case len(waitFor) > 0:
		return waiting(v1alpha1.ReasonDeleting, fmt.Sprintf("waiting for %s to remove it: %s",
			phrase.Count(len(waitFor), "cluster"), phrase.First(sorted(waitFor), maxNamed))+p.frozenText())
	default:
		return waiting(v1alpha1.ReasonDeleting, "its rollouts are being removed")
	}
}

// pausedText names the clusters that the operator stays on because they are paused, and the ways out; empty where there
// is none.
func (p *pass) pausedText() string {
	if len(p.paused) == 0 {
		return ""
	}
	nothing := "nothing is uninstalled from"
	if p.Operator.Spec.RemovalPolicy == v1alpha1.RemovalRestore {
		nothing = "nothing is put back on"
	}
	return fmt.Sprintf("; %s clusters that are paused (%s): set spec.paused of the "+
		"FleetCluster to false, or have its source resumed; remove a cluster from the fleet with `bellwether fleet "+
		"remove NAME --offboarding Orphan`; or set spec.removalPolicy to Orphan to leave the operator on all clusters "+
		"that still have it", nothing, phrase.First(sorted(p.paused), maxNamed))
}

// removed is what an agent has done when it has carried spec.removalPolicy out: "it has …".
func (p *pass) removed() string {
	if p.Operator.Spec.RemovalPolicy == v1alpha1.RemovalRestore {
		return "put back what was there before"
	}
	return "uninstalled the operator"
}

// uninstallText says what the removal from clusters waits for; empty where
// nothing is to be uninstalled.
func (p *pass) uninstallText() string {
	progress := p.decision.Status.Removal
	switch {
	case progress == nil:
		return ""
	case len(p.uninstallFailed) > 0:
		return fmt.Sprintf("the operator cannot be uninstalled from %s, so no other cluster is begun: see their "+
			"OperatorInstalls", phrase.First(p.uninstallFailed, maxNamed))
	case progress.Request != "":
		return fmt.Sprintf("it is to be uninstalled from %s, which needs a confirmation: bellwether operator "+
			"confirm-removal %s, or set spec.removal.confirm to %s",
			phrase.Count(int(progress.Unconfirmed), "cluster"), p.Operator.Name, progress.Request)
	case progress.Uninstalling == 0:
		return fmt.Sprintf("it is still to be uninstalled from %s", phrase.Count(int(progress.Waiting), "cluster"))
	default:
		return fmt.Sprintf("uninstalling it from %s, %d more after that",
			phrase.Count(int(progress.Uninstalling), "cluster"), progress.Waiting)
	}
}
