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
	conditions.Summarize(&p.decision.Status.Conditions, p.Operator.Generation, removalSummary(waitFor, offline))
}

// removeAll removes the operator from all clusters and returns those to wait
// for. The fleet controller decides on removal from clusters that leave the
// fleet.
func (p *pass) removeAll() (waitFor, offline []string) {
	policy := p.Operator.Spec.RemovalPolicy
	for _, install := range p.Installs {
		cluster, known := p.known[install.Cluster]
		if known && cluster.Deleting {
			waitFor = append(waitFor, install.Cluster)
			continue
		}
		at := reachOf(cluster, known)
		if step, due := removal.Next(install.Install, policy, at); due {
			p.decision.Removals = append(p.decision.Removals, step)
		}
		waitFor = append(waitFor, install.Cluster)
		if removal.Blocked(install.Install, policy, at) {
			offline = append(offline, install.Cluster)
		}
	}
	return waitFor, offline
}

func removalSummary(waitFor, offline []string) conditions.Summary {
	switch {
	case len(offline) > 0:
		return stalled(v1alpha1.ReasonAgentOffline, fmt.Sprintf(
			"%d of %d clusters are offline and have not uninstalled the operator: %s; start their agents, "+"or "+
				"set spec.removalPolicy to Orphan to leave the operator there",
			len(offline), len(waitFor), phrase.First(sorted(offline), maxNamed)))
	case len(waitFor) > 0:
		return waiting(v1alpha1.ReasonDeleting, fmt.Sprintf("waiting for %d clusters to remove it: %s", len(waitFor),
			phrase.First(sorted(waitFor), maxNamed)))
	default:
		return waiting(v1alpha1.ReasonDeleting, "its rollouts are being removed")
	}
}
