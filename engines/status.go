// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/workload"
	"github.com/bellwether-dev/bellwether/phrase"
)

// StatusOfRefused returns the status of an install that Refuse returned a
// finding for. What was observed before stays, because nothing was observed but what
// the cluster keeps that the hub does not know of.
func StatusOfRefused(install *v1alpha1.OperatorInstall, unknown *Kept, finding Finding) v1alpha1.OperatorInstallStatus {
	status := *install.Status.DeepCopy()
	status.ObservedGeneration, status.Kept = install.Generation, nil
	if unknown != nil {
		status.Kept, status.Installed = unknown.DeepCopy(), unknown.Installed
		status.ObservedRevision = unknown.Admission.Revision
	}
	summarize(&status, finding)
	return status
}

// Status returns the status of an install after a report that was made for this
// generation and admission of it.
func Status(install *v1alpha1.OperatorInstall, report Report, now time.Time) v1alpha1.OperatorInstallStatus {
	status := *install.Status.DeepCopy()
	status.ObservedGeneration, status.Kept = install.Generation, nil
	status.Installed, status.OLM, status.Adopted = report.Installed, report.OLM, report.Adopted
	status.Path = cut(report.Path, maxPath, maxBundleName)
	status.Problems = report.Problems[:min(len(report.Problems), workload.MaxProblems)]
	for _, stage := range report.Stages {
		conditions.Set(&status.Conditions, install.Generation, stage.Condition, stage.Passed, stage.Reason,
			stage.Message)
	}
	if !isAdmitted(install) {
		if report.Progress != nil {
			summarize(&status, *report.Progress)
		}
		setTransitions(install.Status.Conditions, status.Conditions, now)
		return status
	}
	recordSuccess(&status, install.Spec.Admission, report.Complete, now)
	setDrifted(&status, report.Drift)
	status.Correction = report.Correction
	conclude(&status, install.Spec.Admission.Release, report)
	setTransitions(install.Status.Conditions, status.Conditions, now)
	return status
}

// maxPath bounds how many bundles of the path a status names, and maxBundleName how long
// each name is: as the API does.
const (
	maxPath       = 100
	maxBundleName = 253
)

// cut returns the first texts, none of them longer than permitted.
func cut(texts []string, most, longest int) []string {
	var out []string
	for _, text := range texts[:min(len(texts), most)] {
		out = append(out, phrase.Truncate(text, longest))
	}
	return out
}

// setTransitions sets since when conditions are as they are, where that changed: by
// the clock that engines compare it with, which may not be the system's.
func setTransitions(before, after []metav1.Condition, now time.Time) {
	for i := range after {
		if was := meta.FindStatusCondition(before, after[i].Type); was == nil || was.Status != after[i].Status {
			after[i].LastTransitionTime = metav1.NewTime(now)
		}
	}
}

// recordSuccess records when the admitted release succeeded first. An earlier
// success of another release is forgotten: if that is admitted again, it has to
// succeed again.
func recordSuccess(status *v1alpha1.OperatorInstallStatus, admission *v1alpha1.Admission, complete bool,
	now time.Time) {
	status.ObservedRevision = admission.Revision
	if status.SucceededHash != admission.Hash {
		status.SucceededHash, status.SucceededAt = "", nil
	}
	if complete && status.SucceededHash == "" {
		status.SucceededHash, status.SucceededAt = admission.Hash, timeOf(now)
	}
}

// conclude sets Ready, Reconciling and Stalled. An install that is Complete and
// healthy is Ready even if its engine cannot work, because the operator does not
// depend on that; the message tells of it.
func conclude(status *v1alpha1.OperatorInstallStatus, release v1alpha1.Release, report Report) {
	switch {
	case !report.Complete && report.Progress != nil:
		summarize(status, *report.Progress)
	case !report.Complete:
		summarize(status, Finding{Reason: v1alpha1.ReasonProgressing,
			Message: fmt.Sprintf("%s is being installed.", release.Bundle)})
	case report.Health != nil:
		summarize(status, *report.Health)
	default:
		message := runs(release, report)
		if report.Progress != nil && report.Progress.Problem {
			message += " " + report.Progress.Message
		}
		conditions.Summarize(&status.Conditions, status.ObservedGeneration,
			conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: message})
	}
}

// runs says what an install that is Complete runs. What was adopted may be of any version.
func runs(release v1alpha1.Release, report Report) string {
	switch {
	case !release.AsInstalled:
		return fmt.Sprintf("%s runs.", release.Bundle)
	case report.Installed == nil:
		return fmt.Sprintf("Nothing of package %s is installed in namespace %s, so there is nothing to adopt.",
			release.Package, release.TargetNamespace())
	}
	return fmt.Sprintf("%s runs, as it was installed by others.", report.Installed.Bundle)
}

// maxFields bounds how many fields the message of Drifted names.
const maxFields = 10

func setDrifted(status *v1alpha1.OperatorInstallStatus, drift *Drift) {
	switch {
	case drift == nil:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionDrifted)
	case drift.Later:
	case drift.Unknown != "":
		conditions.SetUnknown(&status.Conditions, status.ObservedGeneration, v1alpha1.ConditionDrifted,
			v1alpha1.ReasonNotCompared, drift.Unknown)
	case len(drift.Fields) == 0:
		conditions.Set(&status.Conditions, status.ObservedGeneration, v1alpha1.ConditionDrifted, false,
			v1alpha1.ReasonInSync, "What is installed is the admitted release as configured.")
	default:
		conditions.Set(&status.Conditions, status.ObservedGeneration, v1alpha1.ConditionDrifted, true,
			driftReason(drift.Correction), driftMessage(*drift))
	}
}

func driftReason(c Correction) string {
	switch c {
	case CorrectionDue, CorrectionWaits:
		return v1alpha1.ReasonCorrecting
	case CorrectionStopped:
		return v1alpha1.ReasonCorrectionStopped
	default:
		return v1alpha1.ReasonDrifted
	}
}

func driftMessage(drift Drift) string {
	message := fmt.Sprintf("What is installed differs from the admitted release in %s. ",
		phrase.First(drift.Fields, maxFields))
	switch drift.Correction {
	case CorrectionDue, CorrectionWaits:
		return message + "The agent puts that back."
	case CorrectionStopped:
		return message + fmt.Sprintf("The agent put fields back %d times within an hour and they were changed again, "+
			"so it has stopped until the hour is over. Find out what changes them, and stop that, or put the change "+
			"into the bundle or spec.install of the ManagedOperator.", MaxCorrections)
	default:
		return message + "Set the fields back, or change the bundle or spec.install of the ManagedOperator."
	}
}

func summarize(status *v1alpha1.OperatorInstallStatus, f Finding) {
	state := conditions.InProgress
	if f.Problem {
		state = conditions.Stalled
	}
	conditions.Summarize(&status.Conditions, status.ObservedGeneration,
		conditions.Summary{State: state, Reason: f.Reason, Message: f.Message})
}

func staleAdmission(admitted, observed int64) *Finding {
	return &Finding{Problem: true, Reason: v1alpha1.ReasonStaleAdmission, Message: fmt.Sprintf(
		"The admission has revision %d, but the agent has already acted on revision %d. The admission is ignored "+
			"until a newer rollout replaces it.", admitted, observed)}
}
