// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package removal decides how an OperatorInstall is removed from the hub: the removal policy is written first, then
// the object is deleted, then its agent carries out the policy and removes its finalizer. It is pure.
//
// Exactly one controller decides on each install at any time: the fleet controller for all installs of a
// FleetCluster that is being deleted, by its spec.offboarding, and the operator controller for all other installs,
// by the ManagedOperator's spec.removalPolicy. Two controllers with different policies would overwrite each other
// without end.
package removal

import (
	"cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Reach says whether an agent can carry out a removal policy.
type Reach int

const (
	// Online clusters have an agent that acts.
	Online Reach = iota
	// Offline clusters have an agent that might come back.
	Offline
	// Gone clusters have no agent that can act: it has lost its access.
	Gone
)

// Install is the data of an OperatorInstall that must be removed.
type Install struct {
	Namespace string
	Name      string
	Cluster   string
	Policy    v1alpha1.RemovalPolicy
	// Deleting is true if the object was deleted.
	Deleting bool
	// Held is true if the agent's finalizer is on the object.
	Held bool
	// Paused is true if the cluster must not be changed: see rollouts.Cluster.IsChangeForbidden.
	Paused bool
}

// Observe returns the data of an OperatorInstall that a removal needs.
func Observe(o *v1alpha1.OperatorInstall) Install {
	isHeld := false
	for _, finalizer := range o.Finalizers {
		isHeld = isHeld || finalizer == v1alpha1.FinalizerAgent
	}
	return Install{
		Namespace: o.Namespace, Name: o.Name, Cluster: o.Spec.Cluster, Policy: o.Spec.RemovalPolicy,
		Deleting: o.DeletionTimestamp != nil, Held: isHeld,
	}
}

// Step has the changes of one OperatorInstall, in the order of the fields.
type Step struct {
	Namespace string
	Name      string
	// SetPolicy writes the removal policy; empty does not change the policy.
	SetPolicy v1alpha1.RemovalPolicy
	// Delete deletes the object.
	Delete bool
	// Release removes the agent's finalizer, because no agent would remove it.
	Release bool
}

// Next returns the next step, and whether there is one. Without a step, the removal waits for the agent.
//
// The removal does not wait for an offline cluster if the policy changes nothing there (Orphan). For Uninstall and
// Restore it waits, because otherwise the operator would stay on the cluster. A paused cluster is not changed either,
// unless the removal began before the pause.
func Next(i Install, policy v1alpha1.RemovalPolicy, reach Reach) (Step, bool) {
	policy = cmp.Or(policy, v1alpha1.RemovalOrphan)
	step := Step{Namespace: i.Namespace, Name: i.Name}
	if cmp.Or(i.Policy, v1alpha1.RemovalOrphan) != policy {
		step.SetPolicy = policy
	}
	step.Delete = !i.Deleting && !IsWaitingForPause(i, policy, reach)
	step.Release = i.Held && (reach == Gone || reach == Offline && !policy.NeedsAgent())
	return step, step.SetPolicy != "" || step.Delete || step.Release
}

// IsBlocked reports whether the install waits for an offline cluster.
func IsBlocked(i Install, policy v1alpha1.RemovalPolicy, reach Reach) bool {
	return i.Held && reach == Offline && policy.NeedsAgent()
}

// IsWaitingForPause reports whether the install stays until the pause of its cluster ends.
func IsWaitingForPause(i Install, policy v1alpha1.RemovalPolicy, reach Reach) bool {
	return i.Paused && i.Held && !i.Deleting && reach != Gone && policy.NeedsAgent()
}
