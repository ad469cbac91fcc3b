// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// decision collects the actions and the report of a plan.
type decision struct {
	engines.Plan[Action]
}

// newDecision returns a decision with the parts of the report that need no check.
func newDecision(in Input) *decision {
	d := &decision{}
	if csv, ok := in.Cluster.Installed(); ok {
		d.Report.Installed = &v1alpha1.InstalledVersion{Bundle: csv.Name, Version: csv.Version}
	}
	for _, deployment := range in.Cluster.Deployments {
		d.Report.Problems = append(d.Report.Problems, deployment.Problems...)
	}
	if sub, ok := in.Cluster.findSubscription(); ok {
		d.Report.Adopted = sub.Adopted
	}
	d.Report.OLM, d.Report.Correction = newOLMStatus(in), in.Install.Status.Correction
	return d
}

// newOLMStatus returns the names of OLM's objects for this install, and how OLM gets the bundle. While the catalog is
// being read, the offer has no route, so the status keeps the reported route.
func newOLMStatus(in Input) *v1alpha1.OLMStatus {
	o := &v1alpha1.OLMStatus{ViewAddress: in.View.Address, Route: in.Offer.Route}
	if previous := in.Install.Status.OLM; previous != nil && in.Offer.Pending != "" {
		o.Route = previous.Route
	}
	if in.Cluster.CatalogSource != nil {
		o.CatalogSource = in.Cluster.CatalogSource.Name
	}
	if sub, ok := in.Cluster.findSubscription(); ok {
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

// add plans an action on an observed object, or on an object that is to be created.
func (d *decision) add(verb Verb, kind, name string, object Object) {
	d.Actions = append(d.Actions, Action{Verb: verb, Kind: kind, Name: name, Object: object})
}

// planApply plans to apply the object that is rendered from the template of a kind.
func (d *decision) planApply(kind, name string) { d.add(Apply, kind, name, Object{}) }

// passStage reports that a stage passes.
func (d *decision) passStage(condition, message string) {
	d.Report.Stages = append(d.Report.Stages, engines.Stage{Condition: condition, Passed: true,
		Reason: v1alpha1.ReasonSucceeded, Message: message})
}

// failStage reports that a stage does not pass.
func (d *decision) failStage(condition, reason, message string) {
	d.Report.Stages = append(d.Report.Stages, engines.Stage{Condition: condition, Reason: reason, Message: message})
}

// failLaterStages reports for every stage after the given stage that it waits for the given stage.
func (d *decision) failLaterStages(condition string) {
	isLater := false
	for _, s := range listAllStages() {
		if isLater {
			d.failStage(s.condition, v1alpha1.ReasonWaiting, "Waiting for condition "+condition+".")
		}
		isLater = isLater || s.condition == condition
	}
}

// scheduleRecheck schedules a reconcile after the given time, unless an earlier reconcile is already scheduled. 0
// changes nothing.
func (d *decision) scheduleRecheck(after time.Duration) {
	if after > 0 && (d.RecheckAfter == 0 || after < d.RecheckAfter) {
		d.RecheckAfter = after
	}
}
