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

// Next decides the next actions for an install. An admitted install goes through four stages, each with a condition.
// A stage that does not pass stops the stages after it:
//
//	CatalogServed ──▶ Resolved ──▶ PlanApproved ──▶ Installed
//	  OLM exists        OLM's plan    the plan has     the CSV
//	  view served       is for the    exactly what     Succeeded
//	  namespace, group  next hop      was admitted
//	  CatalogSource
//
// An install with several hops goes through the stages once for each hop. An install that runs its target stays
// Installed even if its catalog cannot be read.
func Next(in Input) engines.Plan[Action] {
	d := newDecision(in)
	if !in.Install.DeletionTimestamp.IsZero() {
		d.planRemoval(in)
	} else {
		d.planInstallation(in)
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

// toFinding converts a finding to the type that all engines report.
func (f *finding) toFinding() *engines.Finding {
	return &engines.Finding{Problem: f.stalled, Reason: f.reason, Message: f.message}
}

// stage is a condition and the checks that must pass for it, in order.
type stage struct {
	condition     string
	checks        []func(*decision, Input) *finding
	passedMessage string
}

// listStages returns the stages for an install. A release that only adopts an existing operator as it is has fewer
// checks, because it neither upgrades nor repairs the operator.
func (in Input) listStages() []stage {
	all := listAllStages()
	if !in.isAsInstalled() {
		return all
	}
	// The indexes are those of listAllStages: CatalogServed, Resolved, PlanApproved.
	all[0].checks = []func(*decision, Input) *finding{
		(*decision).checkOLM, (*decision).checkOtherNamespaces, (*decision).takeOver,
		(*decision).checkCatalog, (*decision).serveView,
		(*decision).ensureNamespace, (*decision).ensureOperatorGroup, (*decision).ensureCatalogSource,
	}
	all[1].checks = []func(*decision, Input) *finding{(*decision).ensureSubscription, (*decision).checkOrphans}
	all[2].checks = []func(*decision, Input) *finding{(*decision).checkRunningPlan}
	return all
}

// listAllStages returns the stages of an install that may upgrade, with all checks.
func listAllStages() []stage {
	return []stage{{
		condition: v1alpha1.ConditionCatalogServed,
		checks: []func(*decision, Input) *finding{
			(*decision).checkOLM, (*decision).checkOtherNamespaces, (*decision).takeOver, (*decision).checkCatalog,
			(*decision).withdraw, (*decision).abandon, (*decision).detach, (*decision).serveView,
			(*decision).ensureNamespace,
			(*decision).ensureOperatorGroup, (*decision).ensureCatalogSource,
		},
		passedMessage: "OLM is connected to the catalog view.",
	}, {
		condition: v1alpha1.ConditionResolved,
		checks: []func(*decision, Input) *finding{(*decision).ensureSubscription, (*decision).checkOrphans,
			(*decision).recoverDeletedCSV,
			(*decision).awaitResolution, (*decision).checkBlocked},
		passedMessage: "OLM resolved the Subscription to what was admitted.",
	}, {
		condition:     v1alpha1.ConditionPlanApproved,
		checks:        []func(*decision, Input) *finding{(*decision).awaitBackup, (*decision).approvePlan},
		passedMessage: "The InstallPlan held exactly what was admitted.",
	}, {
		condition: v1alpha1.ConditionInstalled,
		checks:    []func(*decision, Input) *finding{(*decision).checkInstalled},
	}}
}

// planInstallation plans the next actions for an install that is not being deleted, and reports its state. While the
// catalog is being read, it runs no stage.
func (d *decision) planInstallation(in Input) {
	d.Report.Path = in.Offer.Path
	d.Report.Deleted = in.listDeleted()
	d.Report.Complete = in.isTargetRunning() && in.findForeignImage() == ""
	if in.hasNothingToAdopt() {
		d.Report.Complete = true
		d.scheduleRecheck(recheckSteady)
		return
	}
	// The record of the admission is outdated. A Subscription that is also out of sync is not applied here, because
	// ensureSubscription applies the Subscription with the record.
	if sub, ok := in.Cluster.findSubscription(); ok && sub.InSync && sub.Outdated {
		d.planApply(KindSubscription, "")
	}
	var firstFinding *finding
	if in.Offer.Pending != "" {
		firstFinding = &finding{reason: v1alpha1.ReasonProgressing, message: in.Offer.Pending, recheck: recheckProblem}
	} else {
		firstFinding = d.runStages(in)
	}
	d.reportProgress(in, firstFinding)
}

// runStages runs the stages in order, reports each of them, and returns the first finding; nil if all stages pass. At
// the first stage that fails, it reports that the later stages wait. If the install already runs its target
// (Report.Complete), it runs the later stages too, because a running operator does not depend on the earlier stages.
func (d *decision) runStages(in Input) *finding {
	var firstFinding *finding
	for _, s := range in.listStages() {
		f, message := d.runChecks(in, s), s.passedMessage
		if s.condition == v1alpha1.ConditionInstalled {
			message = in.findTarget() + " is Succeeded."
		}
		if f == nil {
			d.passStage(s.condition, message)
			continue
		}
		d.failStage(s.condition, f.reason, f.message)
		if firstFinding == nil {
			firstFinding = f
		}
		if !d.Report.Complete {
			d.failLaterStages(s.condition)
			break
		}
	}
	return firstFinding
}

// runChecks runs a stage's checks and returns the first finding.
func (d *decision) runChecks(in Input, s stage) *finding {
	for _, c := range s.checks {
		if f := c(d, in); f != nil {
			return f
		}
	}
	return nil
}

// reportProgress reports drift, why the install is not Complete and why a Complete install is not healthy, and
// schedules the next reconcile. f is the first finding of the stages; nil if all stages passed.
func (d *decision) reportProgress(in Input, f *finding) {
	d.reportDrift(in)
	if !d.Report.Complete && f == nil {
		f = in.explainUnfinished()
	}
	if f != nil {
		d.Report.Progress = d.describeFinding(f)
		d.scheduleRecheck(f.recheck)
	}
	if !d.Report.Complete {
		return
	}
	if f := in.explainUnhealthy(); f != nil {
		d.Report.Health = d.describeFinding(f)
		d.scheduleRecheck(f.recheck)
	}
	d.scheduleRecheck(recheckSteady)
}

// describeFinding converts a finding for the report. A finding that the agent is about to correct is not a problem,
// because no person needs to act.
func (d *decision) describeFinding(f *finding) *engines.Finding {
	report := f.toFinding()
	if (f.reason == v1alpha1.ReasonScaledToZero || f.reason == v1alpha1.ReasonDrifted) && d.Report.IsCorrecting() {
		report.Problem = false
		report.Message += " The agent is restoring what the bundle asks for."
	}
	return report
}

// isTargetRunning reports whether the admitted bundle is Succeeded, and its Subscription and Deployments have the
// admitted settings. It reports false while the CSV is being deleted, or while an upgrade of it is being withdrawn. The
// result does not depend on whether the catalog can be read.
func (in Input) isTargetRunning() bool {
	csv, ok := in.Cluster.Installed()
	sub, _ := in.Cluster.findSubscription()
	return ok && csv.Name == in.findTarget() && !csv.Deleting && !in.isUpgradeWithdrawn(csv) &&
		csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) && sub.InSync && areConfigured(in.Cluster.Deployments)
}

// explainUnfinished returns why an install does not run its target yet although all its stages passed.
func (in Input) explainUnfinished() *finding {
	if field := in.findForeignImage(); field != "" {
		return &finding{stalled: true, reason: v1alpha1.ReasonDrifted, recheck: recheckProblem, message: fmt.Sprintf(
			"%s was changed to run another image (%s), so this is not the admitted release. Set the image back, or "+
				"change the bundle.", in.findTarget(), field)}
	}
	if !areConfigured(in.Cluster.Deployments) {
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem,
			message: "Waiting for OLM to apply spec.config of the Subscription to the operator's Deployments."}
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: in.findTarget() + " is being installed."}
}

// findForeignImage returns the path of a field of the installed CSV that names another image than the bundle; empty
// if there is no such field, or if the CSV was not compared with the bundle. OLM makes the Deployments from the CSV, so
// such a CSV does not run the admitted release. A release that only adopts an operator accepts any image: the result is
// empty.
func (in Input) findForeignImage() string {
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

// areConfigured reports whether all Deployments have the configuration of the install settings.
func areConfigured(deployments []Deployment) bool {
	for _, deployment := range deployments {
		if !deployment.Configured {
			return false
		}
	}
	return true
}

// explainUnhealthy returns what the installed CSV has lost, or which of its Deployments is scaled to zero, lacks pods
// or does not exist; nil if the install is healthy.
func (in Input) explainUnhealthy() *finding {
	if f := in.explainLost(); f != nil {
		return f
	}
	namespace := in.Install.Spec.Admission.Release.TargetNamespace()
	for _, d := range in.Cluster.Deployments {
		expected := in.countExpectedReplicas(d.Name)
		isZeroAccepted := in.isAsInstalled() && in.isAccepted(adoption.ScaledToZero)
		if d.Replicas == 0 && expected > 0 && !isZeroAccepted {
			return &finding{stalled: true, reason: v1alpha1.ReasonScaledToZero, recheck: recheckProblem,
				message: fmt.Sprintf("Deployment %s/%s is scaled to 0 replicas, and the bundle asks for %d, so the "+
					"operator does not run. Scale it up; if it was scaled down in the ClusterServiceVersion, "+
					"do it there.",
					namespace, d.Name, expected)}
		}
		if d.Unavailable > 0 {
			return &finding{reason: v1alpha1.ReasonPodsUnavailable, recheck: recheckProblem, message: fmt.Sprintf(
				"%d of %d replicas of Deployment %s/%s are not available%s.", d.Unavailable, d.Replicas,
				namespace, d.Name, d.formatFirstProblem())}
		}
	}
	if !in.hasExpected() {
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

// formatFirstProblem returns the first problem of a Deployment's pods with a leading ": "; empty if there is
// no problem.
func (d Deployment) formatFirstProblem() string {
	if len(d.Problems) == 0 {
		return ""
	}
	return ": " + workload.FormatProblem(d.Problems[0])
}

// countExpectedReplicas returns how many replicas the bundle sets for a Deployment; 1 if the content of the bundle is
// not known.
func (in Input) countExpectedReplicas(deployment string) int32 {
	if !in.hasExpected() {
		return 1
	}
	return in.Offer.Expected.Replicas[deployment]
}

// hasExpected reports whether the offer has the settings of the installed bundle. During an upgrade, the offer has the
// settings of the next bundle.
func (in Input) hasExpected() bool {
	csv, ok := in.Cluster.Installed()
	return ok && in.Offer.Expected != nil && in.Offer.Expected.Bundle == csv.Name
}
