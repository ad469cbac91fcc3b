// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package holds finds what holds back the admission of clusters to a rollout. It
// is pure: hub and command line give it the same objects and get the same answer.
// Which holds count for a rollout is decided by package rollouts.
package holds

import (
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/access"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
	"github.com/bellwether-dev/bellwether/rollouts/windows"
)

// Input is what holds are found in.
type Input struct {
	Now time.Time
	// Operator is the ManagedOperator, and OperatorLabels are empty where it is gone.
	Operator       v1alpha1.OperatorReference
	OperatorLabels map[string]string
	Windows        []v1alpha1.ChangeWindow
	// Access is what FleetAccess objects permit; nil permits everything.
	Access *access.Decision
	// Freezes are all FleetFreezes.
	Freezes []v1alpha1.FleetFreeze
	// Policies may ask for windows.
	Policies *policy.Set
	// Dependencies of the operator.
	Dependencies []Dependency
	// Changes of other operators, and MaxChanges, which is how many operators of a
	// cluster may change at a time; 0 means any number.
	Changes    Changes
	MaxChanges int
	// Requirements of the release; nil where they are not known. Release is its
	// bundle, and Installs are those of the operator.
	Requirements *v1alpha1.ReleaseRequirements
	Release      string
	Installs     []rollouts.Install
	// Resumed is up to which revision people have agreed to go on from what was found on
	// clusters.
	Resumed int64
	// PreflightJob has to succeed first; nil for none.
	PreflightJob *rollouts.PreflightJob
}

// Set sets the holds of each cluster, the one to tell first.
func Set(in Input, clusters []rollouts.Cluster) {
	set := windows.Read(in.Windows, in.Now)
	installs := byCluster(in.Installs)
	recovered := recovery(in)
	for i := range clusters {
		c := &clusters[i]
		c.Holds, c.OpenUntil = nil, time.Time{}
		f := freeze.Of(in.Freezes, c.Name)
		if f != nil {
			c.Freeze(f.CreationTimestamp.Time) // the status may not say it yet
		}
		c.Holds = add(c.Holds, frozen(f, *c), notPermitted(in.Access, *c), recovered,
			unreported(installs, c.Name))
		if veto.Covers(c.Veto, in.Operator) {
			c.Holds = append(c.Holds, rollouts.Hold{
				Reason: v1alpha1.ReasonVetoed, Message: veto.Message(c.Veto), Defers: true,
			})
		}
		c.Holds = add(c.Holds, preflight(in.Requirements, in.Release, *c, installs[c.Name].Bundle))
		state := set.State(windows.Target{
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
		// The Job is last: it runs only where nothing else holds the cluster back.
		c.Holds = add(c.Holds, unmet(in.Dependencies, c.Name), in.Changes.Busy(c.Name, in.Operator, in.MaxChanges),
			preflightJob(in.PreflightJob, installs[c.Name], *c, in.Now))
	}
}

// frozen holds a cluster back while a FleetFreeze is about it, and until its end is recorded: deadlines depend on that.
func frozen(f *v1alpha1.FleetFreeze, c rollouts.Cluster) *rollouts.Hold {
	switch {
	case f != nil:
		return &rollouts.Hold{Reason: v1alpha1.ReasonFrozen, Message: freeze.Message(f)}
	case !c.FrozenSince.IsZero():
		return &rollouts.Hold{Reason: v1alpha1.ReasonFrozen, Message: "a FleetFreeze has just ended there"}
	}
	return nil
}

// notPermitted holds a cluster back for as long as no FleetAccess permits the release
// there.
func notPermitted(decision *access.Decision, c rollouts.Cluster) *rollouts.Hold {
	refusal := decision.Refusal(c.Labels)
	if refusal == "" {
		return nil
	}
	return &rollouts.Hold{Reason: v1alpha1.ReasonAccessNotPermitted, Message: refusal +
		"; change the ManagedOperator to what is permitted, or ask the platform team for a FleetAccess"}
}

// add appends the holds that there are.
func add(holds []rollouts.Hold, more ...*rollouts.Hold) []rollouts.Hold {
	for _, h := range more {
		if h != nil {
			holds = append(holds, *h)
		}
	}
	return holds
}
