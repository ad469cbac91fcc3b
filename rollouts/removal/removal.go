// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package removal decides how an OperatorInstall leaves the hub: the removal
// policy is written first, then the object is deleted, then its agent carries
// the policy out and removes its finalizer. It is pure.
//
// One controller decides on each install at any time: the fleet controller for all
// installs of a FleetCluster that is being deleted, by its spec.offboarding, and the
// operator controller for all others, by the ManagedOperator's spec.removalPolicy. Two
// that disagreed would overwrite each other without end.
package removal

import (
	"cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Reach says whether somebody is there to carry a removal policy out.
type Reach int

const (
	// Online clusters have an agent that will act.
	Online Reach = iota
	// Offline clusters have an agent that may come back.
	Offline
	// Gone clusters have no agent that could ever act: it has lost its access.
	Gone
)

// Install is what is seen of an OperatorInstall that has to go.
type Install struct {
	Namespace string
	Name      string
	Cluster   string
	Policy    v1alpha1.RemovalPolicy
	// Deleting is true once the object was deleted.
	Deleting bool
	// Held is true while the agent's finalizer is on the object.
	Held bool
	// Paused is true while a person wants nothing changed on the cluster: see rollouts.Cluster.IsLeftAlone.
	Paused bool
}

// Observe takes in what matters of an OperatorInstall.
func Observe(o *v1alpha1.OperatorInstall) Install {
	held := false
	for _, finalizer := range o.Finalizers {
		held = held || finalizer == v1alpha1.FinalizerAgent
	}
	return Install{
		Namespace: o.Namespace, Name: o.Name, Cluster: o.Spec.Cluster, Policy: o.Spec.RemovalPolicy,
		Deleting: o.DeletionTimestamp != nil, Held: held,
	}
}

// Step is what to do with one OperatorInstall, in the order of the fields.
type Step struct {
	Namespace string
	Name      string
	// SetPolicy writes the removal policy; empty leaves it.
	SetPolicy v1alpha1.RemovalPolicy
	// Delete deletes the object.
	Delete bool
	// Release removes the agent's finalizer, because nobody else would.
	Release bool
}

// Next returns the step that is due, and whether there is one. Without a step
// the agent's word is waited for.
//
// An offline cluster is not waited for where nothing is to be done on it
// (Orphan). With Uninstall and Restore it is: whoever gave up the wait would leave behind
// what was to be removed, or to be put back. A paused cluster is not changed either, unless
// that began before the pause.
func Next(i Install, policy v1alpha1.RemovalPolicy, reach Reach) (Step, bool) {
	policy = cmp.Or(policy, v1alpha1.RemovalOrphan)
	step := Step{Namespace: i.Namespace, Name: i.Name}
	if cmp.Or(i.Policy, v1alpha1.RemovalOrphan) != policy {
		step.SetPolicy = policy
	}
	step.Delete = !i.Deleting && !WaitsForPause(i, policy, reach)
	step.Release = i.Held && (reach == Gone || reach == Offline && !policy.NeedsAgent())
	return step, step.SetPolicy != "" || step.Delete || step.Release
}

// Blocked tells whether the install waits for a cluster that is offline.
func Blocked(i Install, policy v1alpha1.RemovalPolicy, reach Reach) bool {
	return i.Held && reach == Offline && policy.NeedsAgent()
}

// WaitsForPause tells whether the install stays as long as its cluster is paused.
func WaitsForPause(i Install, policy v1alpha1.RemovalPolicy, reach Reach) bool {
	return i.Paused && i.Held && !i.Deleting && reach != Gone && policy.NeedsAgent()
}
