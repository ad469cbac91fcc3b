// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// DefaultOffboardingTimeout is the timeout of a FleetCluster that sets none.
const DefaultOffboardingTimeout = 24 * time.Hour

// removeOperators adds the next step for each operator of a cluster that leaves the fleet. It returns the operators
// that wait because the cluster is offline (blocked) or paused, and the operators whose finalizer the hub removes.
func removeOperators(in Input, d *Decision, policy v1alpha1.RemovalPolicy, reach removal.Reach, isPaused bool) (
	blocked, paused, released []Operator) {
	for _, o := range in.Operators {
		o.Paused = isPaused
		step, due := removal.Next(o.Install, policy, reach)
		if due {
			d.Removals = append(d.Removals, step)
		}
		if step.Release {
			released = append(released, o)
		}
		switch {
		case removal.IsWaitingForPause(o.Install, policy, reach):
			paused = append(paused, o)
		case removal.IsBlocked(o.Install, policy, reach):
			blocked = append(blocked, o)
		}
	}
	return blocked, paused, released
}

// offboard decides the next step of the removal of a cluster from the fleet, and sets the summary. Only objects that
// were created for the cluster are deleted. If the agent has not removed its finalizers by the deadline, the hub
// removes the finalizers. A freeze of the cluster stops the removal.
func offboard(in Input, d *Decision) {
	if !slices.Contains(in.Cluster.Finalizers, v1alpha1.FinalizerHub) {
		return // only other finalizers are left
	}
	if in.Namespace == NamespaceAbsent || in.Namespace == NamespaceForeign {
		d.Actions = append(d.Actions, RemoveFinalizer)
		conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation,
			newWaiting(v1alpha1.ReasonDeleting, "nothing is left of the cluster on the hub"))
		return
	}
	if in.Freeze != nil {
		conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, newWaiting(v1alpha1.ReasonFrozen,
			"the cluster is not removed: "+holds.FreezeMessage(in.Freeze)))
		return
	}
	// The freeze that was just recorded counts in this pass.
	in.Cluster = in.Cluster.DeepCopy()
	in.Cluster.Status.PastFreezes = d.Status.PastFreezes
	policy := in.Cluster.Spec.Offboarding
	reach := readReach(in)
	isPaused := rollouts.ObserveCluster(in.Cluster).IsChangeForbidden()
	if isPaused && reach == removal.Gone {
		policy = v1alpha1.RemovalOrphan // an agent that still reports must not uninstall the operators
	}
	blocked, paused, released := removeOperators(in, d, policy, reach, isPaused)
	if len(released) > 0 {
		d.LeftBehind = buildLeftBehind(in, released)
	}
	if len(in.Operators) == 0 && in.Namespace == NamespaceOurs {
		d.Actions = append(d.Actions, DeleteNamespace)
	}
	if len(listHeld(in.Operators)) > len(released) { // the hub waits for the agent until the deadline
		delay := computeDeadline(in.Cluster).Sub(in.Now)
		d.RecheckAfter = cmp.Or(min(d.RecheckAfter, delay), delay)
	}
	conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, summarizeLeaving(in, blocked, paused))
}

// listHeld returns the operators with the agent's finalizer.
func listHeld(operators []Operator) []Operator {
	return slices.DeleteFunc(slices.Clone(operators), func(o Operator) bool { return !o.Held })
}

// readTimeout returns how long the hub waits for the agent of a cluster that leaves.
func readTimeout(c *v1alpha1.FleetCluster) time.Duration {
	if c.Spec.OffboardingTimeout == nil {
		return DefaultOffboardingTimeout
	}
	return c.Spec.OffboardingTimeout.Duration
}

// computeDeadline returns when the hub stops waiting for the agent of a cluster that leaves. Time in a freeze does
// not count.
func computeDeadline(c *v1alpha1.FleetCluster) time.Time {
	deletedAt := c.DeletionTimestamp.Time
	return rollouts.ObserveCluster(c).Extend(deletedAt, deletedAt.Add(readTimeout(c)))
}

// readReach returns whether the agent can remove the operators, is offline, or is gone. The agent is gone when its
// namespace on the hub is being deleted, because it then loses its access, and when the deadline of the cluster has
// passed, because the hub no longer waits for it.
func readReach(in Input) removal.Reach {
	switch {
	case in.Namespace == NamespaceTerminating, !in.Now.Before(computeDeadline(in.Cluster)):
		return removal.Gone
	case isReachable(in):
		return removal.Online
	default:
		return removal.Offline
	}
}

// summarizeLeaving returns the state of a cluster that leaves the fleet. blocked and paused are the operators that
// cannot be removed because the cluster is offline or paused.
func summarizeLeaving(in Input, blocked, paused []Operator) conditions.Summary {
	until := fmt.Sprintf("The hub waits until %s (spec.offboardingTimeout: %s); after that it removes the cluster, "+
		"and the operators stay installed", phrase.Time(computeDeadline(in.Cluster)), readTimeout(in.Cluster))
	waitedFor := listHeld(in.Operators)
	switch {
	case len(paused) > 0:
		return newWaiting(v1alpha1.ReasonClusterPaused, fmt.Sprintf(
			"the cluster is paused, so %s is not %s: set spec.paused to false, or have its source resumed; "+
				"or set spec.offboarding to Orphan to leave the operators as they are. %s", listNames(paused),
			describeRemoved(in),
			until))
	case len(blocked) > 0 && in.Lease.IsOnline(in.Now):
		return newStalled(v1alpha1.ReasonAPIServerUnreachable, fmt.Sprintf(
			"the agent cannot reach the API server of its own cluster, so %s cannot be %s: repair the "+
				"cluster's control plane, or set spec.offboarding to Orphan to leave the operators as they are. %s",
			listNames(blocked), describeRemoved(in), until))
	case len(blocked) > 0:
		return newStalled(v1alpha1.ReasonAgentOffline, fmt.Sprintf(
			"the agent is offline, so %s cannot be %s: start the agent, or set spec.offboarding to "+
				"Orphan to leave the operators as they are. %s",
			listNames(blocked), describeRemoved(in), until))
	case len(waitedFor) > 0 && readReach(in) == removal.Gone:
		return newWaiting(v1alpha1.ReasonDeleting,
			fmt.Sprintf("the hub releases %s without the agent; what stays on the "+
				"cluster is listed in the ConfigMap with the label %s=%s", listNames(waitedFor),
				v1alpha1.LabelLeftBehind, in.Cluster.Name))
	case len(waitedFor) > 0:
		return newWaiting(v1alpha1.ReasonDeleting,
			fmt.Sprintf("waiting for the agent to release %s (offboarding: %s). %s",
				listNames(waitedFor), formatPolicy(in.Cluster.Spec.Offboarding), until))
	case len(in.Operators) > 0:
		return newWaiting(v1alpha1.ReasonDeleting, "waiting for the deletion of "+listRemaining(in.Operators))
	default:
		message := fmt.Sprintf("namespace %s is being deleted", v1alpha1.ClusterNamespace(in.Cluster.Name))
		if in.Remaining != "" {
			message += ": " + in.Remaining
		}
		return newWaiting(v1alpha1.ReasonDeleting, message)
	}
}

// describeRemoved returns the participle for the effect of spec.offboarding on operators.
func describeRemoved(in Input) string {
	if in.Cluster.Spec.Offboarding == v1alpha1.RemovalRestore {
		return "put back as it was"
	}
	return "uninstalled"
}

// listRemaining lists the names of OperatorInstalls with their finalizers.
func listRemaining(operators []Operator) string {
	var all []string
	for _, o := range operators {
		text := o.Name
		if len(o.Finalizers) > 0 {
			text += " (finalizers: " + strings.Join(o.Finalizers, ", ") + ")"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return phrase.First(all, maxNamed)
}

// formatPolicy returns the name of the policy; Orphan if it is empty.
func formatPolicy(p v1alpha1.RemovalPolicy) string {
	if p == "" {
		return string(v1alpha1.RemovalOrphan)
	}
	return string(p)
}

// maxNamed is the maximum number of names in a message.
const maxNamed = 5

// listNames lists the names of operators.
func listNames(operators []Operator) string {
	var all []string
	for _, o := range operators {
		all = append(all, o.Name)
	}
	slices.Sort(all)
	return phrase.First(all, maxNamed)
}
