// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// decision collects what is planned.
type decision struct {
	engines.Plan[Action]
}

// newDecision reports what is plain to see.
func newDecision(in Input) *decision {
	d := &decision{}
	if csv, ok := in.Cluster.Installed(); ok {
		d.Report.Installed = &v1alpha1.InstalledVersion{Bundle: csv.Name, Version: csv.Version}
	}
	for _, deployment := range in.Cluster.Deployments {
		d.Report.Problems = append(d.Report.Problems, deployment.Problems...)
	}
	if sub, ok := in.Cluster.subscription(); ok {
		d.Report.Adopted = sub.Adopted
	}
	d.Report.OLM, d.Report.Correction = details(in), in.Install.Status.Correction
	return d
}

// details names the objects that are there for this install.
func details(in Input) *v1alpha1.OLMStatus {
	o := &v1alpha1.OLMStatus{ViewAddress: in.View.Address, Route: in.Offer.Route}
	if before := in.Install.Status.OLM; before != nil && in.Offer.Pending != "" {
		o.Route = before.Route
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
	if csv, ok := in.Cluster.Installed(); ok {
		o.CSVPhase = csv.Phase
	}
	return o
}

// add plans an action on an object that was observed, or that is to be created.
func (d *decision) add(verb Verb, kind, name string, object Object) {
	d.Actions = append(d.Actions, Action{Verb: verb, Kind: kind, Name: name, Object: object})
}

// apply plans to apply the object of a kind.
func (d *decision) apply(kind, name string) { d.add(Apply, kind, name, Object{}) }

func (d *decision) pass(condition, message string) {
	d.Report.Stages = append(d.Report.Stages, engines.Stage{Condition: condition, Passed: true,
		Reason: v1alpha1.ReasonSucceeded, Message: message})
}

func (d *decision) fail(condition, reason, message string) {
	d.Report.Stages = append(d.Report.Stages, engines.Stage{Condition: condition, Reason: reason, Message: message})
}

// failAfter says of every stage after the given one that it waits for it.
func (d *decision) failAfter(condition string) {
	after := false
	for _, s := range stages() {
		if after {
			d.fail(s.condition, v1alpha1.ReasonWaiting, "Waiting for condition "+condition+".")
		}
		after = after || s.condition == condition
	}
}

// recheck keeps the earliest of the times to reconcile again.
func (d *decision) recheck(after time.Duration) {
	if after > 0 && (d.RecheckAfter == 0 || after < d.RecheckAfter) {
		d.RecheckAfter = after
	}
}
