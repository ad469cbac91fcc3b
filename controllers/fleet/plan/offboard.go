// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// DefaultOffboardingTimeout is that of a FleetCluster that names none.
const DefaultOffboardingTimeout = 24 * time.Hour

// removeOperators plans the next step for each operator of a cluster that leaves, and returns those that cannot be
// uninstalled, those that wait because the cluster is paused, and those that are let go.
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
		case removal.WaitsForPause(o.Install, policy, reach):
			paused = append(paused, o)
		case removal.Blocked(o.Install, policy, reach):
			blocked = append(blocked, o)
		}
	}
	return blocked, paused, released
}

// offboard takes a cluster out of the fleet. Nothing that was not made for it is
// deleted. What its agent has not released by the deadline, the hub releases.
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
	if in.Freeze != nil {
		conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, waiting(v1alpha1.ReasonFrozen,
			"the cluster is not removed: "+freeze.Message(in.Freeze)))
		return
	}
	// What has just been recorded of a freeze counts in this pass.
	in.Cluster = in.Cluster.DeepCopy()
	in.Cluster.Status.PastFreezes = d.Status.PastFreezes
	policy := in.Cluster.Spec.Offboarding
	reach := reachOf(in)
	isPaused := rollouts.ObserveCluster(in.Cluster).IsLeftAlone()
	if isPaused && reach == removal.Gone {
		policy = v1alpha1.RemovalOrphan // an agent that reports could uninstall what is about to be released
	}
	blocked, paused, released := removeOperators(in, d, policy, reach, isPaused)
	if len(released) > 0 {
		d.LeftBehind = leftBehind(in, released)
	}
	if len(in.Operators) == 0 && in.Namespace == NamespaceOurs {
		d.Actions = append(d.Actions, DeleteNamespace)
	}
	if len(held(in.Operators)) > len(released) {
		wait := deadline(in.Cluster).Sub(in.Now)
		d.RecheckAfter = cmp.Or(min(d.RecheckAfter, wait), wait)
	}
	conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, summarizeLeaving(in, blocked, paused))
}

// held returns those that the agent holds.
func held(operators []Operator) []Operator {
	return slices.DeleteFunc(slices.Clone(operators), func(o Operator) bool { return !o.Held })
}

// timeout is how long the agent of a cluster that leaves is waited for.
func timeout(c *v1alpha1.FleetCluster) time.Duration {
	if c.Spec.OffboardingTimeout == nil {
		return DefaultOffboardingTimeout
	}
	return c.Spec.OffboardingTimeout.Duration
}

// deadline is when the hub no longer waits for the agent of a cluster that leaves. Time that the cluster was frozen
// does not count.
func deadline(c *v1alpha1.FleetCluster) time.Time {
	at := c.DeletionTimestamp.Time
	return rollouts.ObserveCluster(c).Extend(at, at.Add(timeout(c)))
}

func reachOf(in Input) removal.Reach {
	switch {
	case in.Namespace == NamespaceTerminating, !in.Now.Before(deadline(in.Cluster)):
		return removal.Gone
	case isReachable(in):
		return removal.Online
	default:
		return removal.Offline
	}
}

func summarizeLeaving(in Input, blocked, paused []Operator) conditions.Summary {
	until := fmt.Sprintf("The hub waits until %s (spec.offboardingTimeout: %s); after that it removes the cluster, "+
		"and the operators stay installed", phrase.Time(deadline(in.Cluster)), timeout(in.Cluster))
	waitedFor := held(in.Operators)
	switch {
	case len(paused) > 0:
		return waiting(v1alpha1.ReasonClusterPaused, fmt.Sprintf(
			"the cluster is paused, so %s is not %s: set spec.paused to false, or have its source resumed; "+
				"or set spec.offboarding to Orphan to leave the operators as they are. %s", names(paused), removed(in),
			until))
	case len(blocked) > 0 && in.Lease.IsOnline(in.Now):
		return stalled(v1alpha1.ReasonAPIServerUnreachable, fmt.Sprintf(
			"the agent cannot reach the API server of its own cluster, so %s cannot be %s: repair the "+
				"cluster's control plane, or set spec.offboarding to Orphan to leave the operators as they are. %s",
			names(blocked), removed(in), until))
	case len(blocked) > 0:
		return stalled(v1alpha1.ReasonAgentOffline, fmt.Sprintf(
			"the agent is offline, so %s cannot be %s: start the agent, or set spec.offboarding to "+
				"Orphan to leave the operators as they are. %s",
			names(blocked), removed(in), until))
	case len(waitedFor) > 0 && reachOf(in) == removal.Gone:
		return waiting(v1alpha1.ReasonDeleting, fmt.Sprintf("the hub releases %s without the agent; what stays on the "+
			"cluster is listed in the ConfigMap with the label %s=%s", names(waitedFor), v1alpha1.LabelLeftBehind,
			in.Cluster.Name))
	case len(waitedFor) > 0:
		return waiting(v1alpha1.ReasonDeleting, fmt.Sprintf("waiting for the agent to release %s (offboarding: %s). %s",
			names(waitedFor), policyText(in.Cluster.Spec.Offboarding), until))
	case len(in.Operators) > 0:
		return waiting(v1alpha1.ReasonDeleting, "waiting for the deletion of "+remaining(in.Operators))
	default:
		message := fmt.Sprintf("namespace %s is being deleted", v1alpha1.ClusterNamespace(in.Cluster.Name))
		if in.Remaining != "" {
			message += ": " + in.Remaining
		}
		return waiting(v1alpha1.ReasonDeleting, message)
	}
}

// removed is the participle for what spec.offboarding does with operators.
func removed(in Input) string {
	if in.Cluster.Spec.Offboarding == v1alpha1.RemovalRestore {
		return "put back as it was"
	}
	return "uninstalled"
}

// remaining names OperatorInstalls that the agent does not hold, with what does.
func remaining(operators []Operator) string {
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
