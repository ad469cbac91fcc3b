// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/engines/workload"
)

// Next decides one pass. An admitted install goes through four stages, each
// with a condition. A stage that cannot pass holds those after it:
//
//	CatalogServed ──▶ Resolved ──▶ PlanApproved ──▶ Installed
//	  OLM is there      OLM's plan    it holds         the CSV
//	  view served       is for the    exactly what     Succeeded
//	  namespace, group  next hop      was admitted
//	  CatalogSource
//
// With several hops it goes round once for each. An install that runs its
// target stays Installed even when its catalog cannot be read.
func Next(in Input) engines.Plan[Action] {
	d := newDecision(in)
	if !in.Install.DeletionTimestamp.IsZero() {
		d.remove(in)
	} else {
		d.install(in)
	}
	return d.Plan
}

// finding is why a stage does not pass.
type finding struct {
	stalled bool
	reason  string
	message string
	recheck time.Duration
}

func (f *finding) report() *engines.Finding {
	return &engines.Finding{Problem: f.stalled, Reason: f.reason, Message: f.message}
}

// stage is a condition and what must hold for it, in order.
type stage struct {
	condition string
	checks    []func(*decision, Input) *finding
	passed    string
}

// stagesOf returns what is checked for an install. A release that adopts what is there as it is, and no more, neither
// upgrades nor repairs anything.
func (in Input) stagesOf() []stage {
	all := stages()
	if !in.isAsInstalled() {
		return all
	}
	all[0].checks = []func(*decision, Input) *finding{
		(*decision).olm, (*decision).otherNamespaces, (*decision).takeOver, (*decision).catalog, (*decision).serve,
		(*decision).namespace, (*decision).operatorGroup, (*decision).catalogSource,
	}
	all[1].checks = []func(*decision, Input) *finding{(*decision).subscription, (*decision).orphans}
	all[2].checks = []func(*decision, Input) *finding{(*decision).planUnderWay}
	return all
}

func stages() []stage {
	return []stage{{
		condition: v1alpha1.ConditionCatalogServed,
		checks: []func(*decision, Input) *finding{
			(*decision).olm, (*decision).otherNamespaces, (*decision).takeOver, (*decision).catalog,
			(*decision).withdraw, (*decision).abandon, (*decision).detach, (*decision).serve, (*decision).namespace,
			(*decision).operatorGroup, (*decision).catalogSource,
		},
		passed: "OLM is connected to the catalog view.",
	}, {
		condition: v1alpha1.ConditionResolved,
		checks: []func(*decision, Input) *finding{(*decision).subscription, (*decision).orphans, (*decision).deletedCSV,
			(*decision).resolved, (*decision).blocked},
		passed: "OLM resolved the Subscription to what was admitted.",
	}, {
		condition: v1alpha1.ConditionPlanApproved,
		checks:    []func(*decision, Input) *finding{(*decision).backedUp, (*decision).planApproved},
		passed:    "The InstallPlan held exactly what was admitted.",
	}, {
		condition: v1alpha1.ConditionInstalled,
		checks:    []func(*decision, Input) *finding{(*decision).installed},
	}}
}

func (d *decision) install(in Input) {
	d.Report.Path = in.Offer.Path
	d.Report.Deleted = in.deleted()
	d.Report.Complete = in.runsTarget() && in.foreignImage() == ""
	if in.hasNothing() {
		d.Report.Complete = true
		d.recheck(recheckSteady)
		return
	}
	// Where the Subscription is to be applied anyway, the record goes with it.
	if sub, ok := in.Cluster.subscription(); ok && sub.InSync && sub.Outdated {
		d.apply(KindSubscription, "")
	}
	var first *finding
	if in.Offer.Pending != "" {
		first = &finding{reason: v1alpha1.ReasonProgressing, message: in.Offer.Pending, recheck: recheckProblem}
	} else {
		first = d.runStages(in)
	}
	d.conclude(in, first)
}

// runStages goes through the stages and returns the first finding. A stage that
// fails stops those after it, except that an install that runs its target has
// every stage checked.
func (d *decision) runStages(in Input) *finding {
	var first *finding
	for _, s := range in.stagesOf() {
		f, message := d.check(in, s), s.passed
		if s.condition == v1alpha1.ConditionInstalled {
			message = in.target() + " is Succeeded."
		}
		if f == nil {
			d.pass(s.condition, message)
			continue
		}
		d.fail(s.condition, f.reason, f.message)
		if first == nil {
			first = f
		}
		if !d.Report.Complete {
			d.failAfter(s.condition)
			break
		}
	}
	return first
}

// check runs a stage's checks and returns the first finding.
func (d *decision) check(in Input, s stage) *finding {
	for _, c := range s.checks {
		if f := c(d, in); f != nil {
			return f
		}
	}
	return nil
}

// conclude reports what keeps the install from being ready.
func (d *decision) conclude(in Input, f *finding) {
	d.compare(in)
	if !d.Report.Complete && f == nil {
		f = in.unfinished()
	}
	if f != nil {
		d.Report.Progress = d.describe(f)
		d.recheck(f.recheck)
	}
	if !d.Report.Complete {
		return
	}
	if f := in.unhealthy(); f != nil {
		d.Report.Health = d.describe(f)
		d.recheck(f.recheck)
	}
	d.recheck(recheckSteady)
}

// describe reports a finding. What the agent puts back asks for no person meanwhile.
func (d *decision) describe(f *finding) *engines.Finding {
	report := f.report()
	if (f.reason == v1alpha1.ReasonScaledToZero || f.reason == v1alpha1.ReasonDrifted) && d.Report.IsCorrecting() {
		report.Problem = false
		report.Message += " The agent is restoring what the bundle asks for."
	}
	return report
}

// runsTarget tells whether the admitted bundle is Succeeded, under a
// Subscription and with Deployments that have the admitted settings. It does
// not depend on the catalog.
func (in Input) runsTarget() bool {
	csv, ok := in.Cluster.Installed()
	sub, _ := in.Cluster.subscription()
	return ok && csv.Name == in.target() && !csv.Deleting && !in.isLeaving(csv) &&
		csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) && sub.InSync && areConfigured(in.Cluster.Deployments)
}

// unfinished explains an install whose stages all passed and that does not run
// its target yet.
func (in Input) unfinished() *finding {
	if field := in.foreignImage(); field != "" {
		return &finding{stalled: true, reason: v1alpha1.ReasonDrifted, recheck: recheckProblem, message: fmt.Sprintf(
			"%s was changed to run another image (%s), so this is not the admitted release. Set the image back, or "+
				"change the bundle.", in.target(), field)}
	}
	if !areConfigured(in.Cluster.Deployments) {
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem,
			message: "Waiting for OLM to apply spec.config of the Subscription to the operator's Deployments."}
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: in.target() + " is being installed."}
}

// foreignImage is the field of the installed CSV that names another image than the bundle; empty where none
// does. OLM makes the Deployments from it.
func (in Input) foreignImage() string {
	if !in.Cluster.Compared || in.isAsInstalled() {
		return ""
	}
	for _, f := range in.Cluster.Drifted {
		if f.Kind == KindCSV && strings.HasSuffix(f.Path, ".image") {
			return f.Path
		}
	}
	return ""
}

func areConfigured(deployments []Deployment) bool {
	for _, deployment := range deployments {
		if !deployment.Configured {
			return false
		}
	}
	return true
}

// unhealthy says what the installed CSV has lost, or which of its Deployments lacks pods; nil where
// nothing is wrong.
func (in Input) unhealthy() *finding {
	if f := in.lost(); f != nil {
		return f
	}
	namespace := in.Install.Spec.Admission.Release.TargetNamespace()
	for _, d := range in.Cluster.Deployments {
		if expected := in.expectedReplicas(d.Name); d.Replicas == 0 && expected > 0 &&
			(!in.isAsInstalled() || !in.accepts(adoption.ScaledToZero)) {
			return &finding{stalled: true, reason: v1alpha1.ReasonScaledToZero, recheck: recheckProblem,
				message: fmt.Sprintf("Deployment %s/%s is scaled to 0 replicas, and the bundle asks for %d, so the "+
					"operator does not run. Scale it up; if it was scaled down in the ClusterServiceVersion, "+
					"do it there.",
					namespace, d.Name, expected)}
		}
		if d.Unavailable > 0 {
			return &finding{reason: v1alpha1.ReasonPodsUnavailable, recheck: recheckProblem, message: fmt.Sprintf(
				"%d of %d replicas of Deployment %s/%s are not available%s.", d.Unavailable, d.Replicas,
				namespace, d.Name, d.why())}
		}
	}
	if !in.isExpected() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(in.Offer.Expected.Replicas)) {
		if !slices.ContainsFunc(in.Cluster.Deployments, func(d Deployment) bool { return d.Name == name }) {
			return &finding{reason: v1alpha1.ReasonPodsUnavailable, recheck: recheckProblem,
				message: fmt.Sprintf("Deployment %s/%s of the operator does not exist.", namespace, name)}
		}
	}
	return nil
}

// why is the first problem of a Deployment's pods, to follow a clause.
func (d Deployment) why() string {
	if len(d.Problems) == 0 {
		return ""
	}
	return ": " + workload.Text(d.Problems[0])
}

// expectedReplicas are those that the bundle asks for: one where that is not
// known.
func (in Input) expectedReplicas(deployment string) int32 {
	if !in.isExpected() {
		return 1
	}
	return in.Offer.Expected.Replicas[deployment]
}

// isExpected tells whether it is known what the installed bundle sets.
func (in Input) isExpected() bool {
	csv, ok := in.Cluster.Installed()
	return ok && in.Offer.Expected != nil && in.Offer.Expected.Bundle == csv.Name
}
