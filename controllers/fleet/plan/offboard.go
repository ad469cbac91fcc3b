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

// offboard takes a cluster out of the fleet. Nothing that was not made for it is
// deleted.
func offboard(in Input, d *Decision) {
	if !slices.Contains(in.Cluster.Finalizers, v1alpha1.FinalizerHub) {
		return // others hold it
	}
	if in.Namespace == NamespaceAbsent || in.Namespace == NamespaceForeign {
		d.Actions = append(d.Actions, RemoveFinalizer)
		conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation,
			waiting(v1alpha1.ReasonDeleting, "nothing is left of the cluster on the hub"))
		return
	}
	policy := in.Cluster.Spec.Offboarding
	reach := reachOf(in)
	blocked := false
	for _, o := range in.Operators {
		if step, due := removal.Next(o.Install, policy, reach); due {
			d.Removals = append(d.Removals, step)
		}
		blocked = blocked || removal.Blocked(o.Install, policy, reach)
	}
	if len(in.Operators) == 0 && in.Namespace == NamespaceOurs {
		d.Actions = append(d.Actions, DeleteNamespace)
	}
	conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, summarizeLeaving(in, blocked))
}

func reachOf(in Input) removal.Reach {
	switch {
	case in.Namespace == NamespaceTerminating:
		return removal.Gone
	case isReachable(in):
		return removal.Online
	default:
		return removal.Offline
	}
}

func summarizeLeaving(in Input, blocked bool) conditions.Summary {
	switch {
	case blocked && in.Lease.IsOnline(in.Now):
		return stalled(v1alpha1.ReasonAPIServerUnreachable, fmt.Sprintf(
			"the agent cannot reach the API server of its own cluster, so %s cannot be uninstalled: repair the "+
				"cluster's control plane, or set spec.offboarding to Orphan to leave the operators as they are",
			names(in.Operators)))
	case blocked:
		return stalled(v1alpha1.ReasonAgentOffline, fmt.Sprintf(
			"the agent is offline, so %s cannot be uninstalled: start the agent, or set spec.offboarding to "+
				"Orphan to leave the operators as they are",
			names(in.Operators)))
	case len(in.Operators) > 0:
		return waiting(v1alpha1.ReasonDeleting, fmt.Sprintf("waiting for the agent to release %s (offboarding: %s)",
			names(in.Operators), policyText(in.Cluster.Spec.Offboarding)))
	default:
		return waiting(v1alpha1.ReasonDeleting, fmt.Sprintf("namespace %s is being deleted",
			v1alpha1.ClusterNamespace(in.Cluster.Name)))
	}
}

func policyText(p v1alpha1.RemovalPolicy) string {
	if p == "" {
		return string(v1alpha1.RemovalOrphan)
	}
	return string(p)
}

// maxNamed keeps messages short enough to read.
const maxNamed = 5

func names(operators []Operator) string {
	var all []string
	for _, o := range operators {
		all = append(all, o.Name)
	}
	slices.Sort(all)
	return phrase.First(all, maxNamed)
}
