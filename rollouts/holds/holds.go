// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package holds finds the reasons that block the admission of clusters to a rollout: windows, freezes, vetoes of
// clusters' owners, access, other rollouts. It is pure: the hub, agents and the command line get the same result for
// the same objects. The time is an argument. Package rollouts decides which holds apply to a rollout.
//
// The agent's report of its owner's veto is not trusted: only a limited part of it is kept.
package holds

import (
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// Input has the data that holds are derived from.
type Input struct {
	Now time.Time
	// Operator is the ManagedOperator. OperatorLabels are empty if it was deleted.
	Operator       v1alpha1.OperatorReference
	OperatorLabels map[string]string
	Windows        []v1alpha1.ChangeWindow
	// Access is what FleetAccess objects permit; nil permits everything.
	Access *AccessDecision
	// Freezes are all FleetFreezes.
	Freezes []v1alpha1.FleetFreeze
	// Policies can require windows.
	Policies *policy.Set
	// Dependencies are the dependencies of the operator.
	Dependencies []Dependency
	// Changes are the changes of other operators. MaxChanges is how many operators of a cluster may change at the same
	// time; 0 means any number.
	Changes    Changes
	MaxChanges int
	// Requirements are the requirements of the release; nil if they are not known. Release is the release's bundle.
	// Installs are the installs of the operator.
	Requirements *v1alpha1.ReleaseRequirements
	Release      string
	Installs     []rollouts.Install
	// Resumed is the highest revision that a person agreed to continue from after it was found on clusters.
	Resumed int64
	// PreflightJob is the Job that must succeed first; nil if there is none.
	PreflightJob *rollouts.PreflightJob
}

// SetHolds sets Holds of each cluster, the most important hold first, and OpenUntil. It also records a FleetFreeze that
// the cluster's status does not have yet.
func SetHolds(in Input, clusters []rollouts.Cluster) {
	set := ReadWindows(in.Windows, in.Now)
	installs := indexByCluster(in.Installs)
	recovered := findRecoveryHold(in)
	for i := range clusters {
		c := &clusters[i]
		c.Holds, c.OpenUntil = nil, time.Time{}
		f := FreezeOf(in.Freezes, c.Name)
		if f != nil {
			c.Freeze(f.CreationTimestamp.Time) // the status might not have the freeze yet
		}
		c.Holds = appendHolds(c.Holds, findFreezeHold(f, *c), findAccessHold(in.Access, *c), recovered,
			findUnreportedHold(installs, c.Name))
		if VetoCovers(c.Veto, in.Operator) {
			c.Holds = append(c.Holds, rollouts.Hold{
				Reason: v1alpha1.ReasonVetoed, Message: VetoMessage(c.Veto), Defers: true,
			})
		}
		c.Holds = appendHolds(c.Holds, findPreflightHold(in.Requirements, in.Release, *c, installs[c.Name].Bundle))
		state := set.State(WindowTarget{
			Namespace: in.Operator.Namespace, OperatorLabels: in.OperatorLabels,
			ClusterLabels: c.Labels, TimeZone: c.TimeZone, Required: in.Policies.Windows(c.Labels),
		})
		if state.Open {
			c.OpenUntil = state.Until
		} else {
			c.Holds = append(c.Holds, rollouts.Hold{
				Reason: v1alpha1.ReasonWindowClosed, Message: state.Message, Until: state.Until,
			})
		}
		// The Job is last: it runs only if the cluster has no other hold.
		c.Holds = appendHolds(c.Holds, findUnmetDependency(in.Dependencies, c.Name),
			in.Changes.FindBusyHold(c.Name, in.Operator, in.MaxChanges),
			findJobHold(in.PreflightJob, installs[c.Name], *c, in.Now))
	}
}

// findFreezeHold returns the hold of a cluster under a FleetFreeze, and also of a cluster whose freeze has ended until
// the end is recorded, because deadlines depend on it. It returns nil otherwise.
func findFreezeHold(f *v1alpha1.FleetFreeze, c rollouts.Cluster) *rollouts.Hold {
	switch {
	case f != nil:
		return &rollouts.Hold{Reason: v1alpha1.ReasonFrozen, Message: FreezeMessage(f)}
	case !c.FrozenSince.IsZero():
		return &rollouts.Hold{Reason: v1alpha1.ReasonFrozen, Message: "a FleetFreeze has just ended there"}
	}
	return nil
}

// findAccessHold returns the hold of a cluster on which no FleetAccess permits the release. It returns nil otherwise.
func findAccessHold(decision *AccessDecision, c rollouts.Cluster) *rollouts.Hold {
	refusal := decision.Refusal(c.Labels)
	if refusal == "" {
		return nil
	}
	return &rollouts.Hold{Reason: v1alpha1.ReasonAccessNotPermitted, Message: refusal +
		"; change the ManagedOperator to what is permitted, or ask the platform team for a FleetAccess"}
}

// appendHolds appends the holds that are not nil.
func appendHolds(holds []rollouts.Hold, more ...*rollouts.Hold) []rollouts.Hold {
	for _, h := range more {
		if h != nil {
			holds = append(holds, *h)
		}
	}
	return holds
}
