// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// decision starts from the status as it was and what is plain to see.
func decision(in Input) *Decision {
	d := &Decision{Status: *in.Install.Status.DeepCopy()}
	d.Status.ObservedGeneration = in.Install.Generation
	d.Status.Path, d.Status.Route, d.Status.Installed = nil, "", nil
	if csv, ok := in.Cluster.Installed(); ok {
		d.Status.Installed = &v1alpha1.InstalledVersion{Bundle: csv.Name, Version: csv.Version, Phase: csv.Phase}
	}
	d.Status.Objects = objects(in)
	return d
}

// objects names what is there for this install.
func objects(in Input) v1alpha1.InstallObjects {
	o := v1alpha1.InstallObjects{ViewAddress: in.View.Address}
	if in.Install.Spec.Admission != nil && in.Cluster.Namespace.Exists {
		o.Namespace = in.Install.Spec.Admission.Release.TargetNamespace()
	}
	if len(in.Cluster.OperatorGroups) == 1 {
		o.OperatorGroup = in.Cluster.OperatorGroups[0].Name
	}
	if in.Cluster.CatalogSource != nil {
		o.CatalogSource = in.Cluster.CatalogSource.Name
	}
	if sub, ok := in.Cluster.subscription(); ok {
		o.Subscription = sub.Name
	}
	if plans := in.Cluster.InstallPlans; len(plans) > 0 {
		newest := slices.MaxFunc(plans, func(a, b InstallPlan) int { return a.Created.Compare(b.Created) })
		o.InstallPlan = newest.Name
	}
	return o
}

func (d *Decision) do(verb Verb, kind, name string) {
	d.Actions = append(d.Actions, Action{Verb: verb, Kind: kind, Name: name})
}

// hold makes sure that the install is not gone before it was removed.
func (d *Decision) hold(in Input) {
	if !slices.Contains(in.Install.Finalizers, v1alpha1.FinalizerAgent) {
		d.do(Hold, "", "")
	}
}

func (d *Decision) set(conditionType string, status bool, reason, message string) {
	conditions.Set(&d.Status.Conditions, d.Status.ObservedGeneration, conditionType, status, reason, message)
}

// waitBehind says of every stage after the given one that it waits for it.
func (d *Decision) waitBehind(conditionType string) {
	behind := false
	for _, s := range stages() {
		if behind {
			d.set(s.condition, false, v1alpha1.ReasonWaiting, "Waits for "+conditionType+".")
		}
		behind = behind || s.condition == conditionType
	}
}

// summarize writes the verdict on an install that is not Ready.
func (d *Decision) summarize(f finding) {
	state := conditions.InProgress
	if f.stalled {
		state = conditions.Stalled
	}
	conditions.Summarize(&d.Status.Conditions, d.Status.ObservedGeneration,
		conditions.Summary{State: state, Reason: f.reason, Message: f.message})
	d.recheck(f.recheck)
}

// recheck keeps the earliest of the times to look again.
func (d *Decision) recheck(after time.Duration) {
	if after > 0 && (d.RecheckAfter == 0 || after < d.RecheckAfter) {
		d.RecheckAfter = after
	}
}
