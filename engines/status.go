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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// RefusedStatus returns the status of an install for which Refuse returned a finding. Earlier observations stay
// in the status, because only the record on the cluster was read. unknown is the record that the hub does not have,
// or nil.
func RefusedStatus(install *v1alpha1.OperatorInstall, unknown *Kept, finding Finding) v1alpha1.OperatorInstallStatus {
	status := *install.Status.DeepCopy()
	status.ObservedGeneration, status.Kept = install.Generation, nil
	if unknown != nil {
		status.Kept, status.Installed = unknown.DeepCopy(), unknown.Installed
		status.ObservedRevision = unknown.Admission.Revision
	}
	summarize(&status, finding)
	return status
}

// Status returns the new status of an install. The report must be for the current generation and admission of the
// install. For an install without an admission, or under deletion, the status says only how far the work is; it records
// no success and no drift.
func Status(install *v1alpha1.OperatorInstall, report Report, now time.Time) v1alpha1.OperatorInstallStatus {
	status := *install.Status.DeepCopy()
	status.ObservedGeneration, status.Kept = install.Generation, nil
	status.Installed, status.OLM, status.Adopted = report.Installed, report.OLM, report.Adopted
	status.Path = truncateTexts(report.Path, maxPath, maxBundleName)
	status.Problems = report.Problems[:min(len(report.Problems), workload.MaxProblems)]
	for _, stage := range report.Stages {
		conditions.Set(&status.Conditions, install.Generation, stage.Condition, stage.Passed, stage.Reason,
			stage.Message)
	}
	if !isAdmitted(install) {
		if report.Progress != nil {
			summarize(&status, *report.Progress)
		}
		setTransitionTimes(install.Status.Conditions, status.Conditions, now)
		return status
	}
	recordSuccess(&status, install.Spec.Admission, report.Complete, now)
	setDrifted(&status, report.Drift)
	status.Correction = report.Correction
	setReadiness(&status, install.Spec.Admission.Release, report)
	setTransitionTimes(install.Status.Conditions, status.Conditions, now)
	return status
}

// maxPath limits the number of bundles in the path of a status, and maxBundleName the length of each name. The API
// has the same limits.
const (
	maxPath       = 100
	maxBundleName = 253
)

// truncateTexts returns at most maxCount texts, each truncated to maxLength.
func truncateTexts(texts []string, maxCount, maxLength int) []string {
	var out []string
	for _, text := range texts[:min(len(texts), maxCount)] {
		out = append(out, phrase.Truncate(text, maxLength))
	}
	return out
}

// setTransitionTimes sets the last transition time of conditions whose status changed to now. Engines compare these
// times with their own clock, which might differ from the system's clock.
func setTransitionTimes(before, after []metav1.Condition, now time.Time) {
	for i := range after {
		if prior := meta.FindStatusCondition(before, after[i].Type); prior == nil || prior.Status != after[i].Status {
			after[i].LastTransitionTime = metav1.NewTime(now)
		}
	}
}

// recordSuccess records the revision of the admission and the first success of the admitted release. It clears the
// success of another release, which must succeed again if it is admitted again.
func recordSuccess(status *v1alpha1.OperatorInstallStatus, admission *v1alpha1.Admission, complete bool,
	now time.Time) {
	status.ObservedRevision = admission.Revision
	if status.SucceededHash != admission.Hash {
		status.SucceededHash, status.SucceededAt = "", nil
	}
	if complete && status.SucceededHash == "" {
		status.SucceededHash, status.SucceededAt = admission.Hash, toMetaTime(now)
	}
}

// setReadiness sets the conditions Ready, Reconciling and Stalled. An install that is Complete and healthy is Ready
// even if its engine cannot work, because the operator does not depend on the engine. The message then includes the
// engine's problem.
func setReadiness(status *v1alpha1.OperatorInstallStatus, release v1alpha1.Release, report Report) {
	switch {
	case !report.Complete && report.Progress != nil:
		summarize(status, *report.Progress)
	case !report.Complete:
		summarize(status, Finding{Reason: v1alpha1.ReasonProgressing,
			Message: fmt.Sprintf("%s is being installed.", release.Bundle)})
	case report.Health != nil:
		summarize(status, *report.Health)
	default:
		message := describeRunning(release, report)
		if report.Progress != nil && report.Progress.Problem {
			message += " " + report.Progress.Message
		}
		conditions.Summarize(&status.Conditions, status.ObservedGeneration,
			conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: message})
	}
}

// describeRunning returns the message for an install that is Complete. An adopted operator may have any version.
func describeRunning(release v1alpha1.Release, report Report) string {
	switch {
	case !release.AsInstalled:
		return fmt.Sprintf("%s runs.", release.Bundle)
	case report.Installed == nil:
		return fmt.Sprintf("Nothing of package %s is installed in namespace %s, so there is nothing to adopt.",
			release.Package, release.TargetNamespace())
	}
	return fmt.Sprintf("%s runs, as it was installed by others.", report.Installed.Bundle)
}

// maxFields limits the number of fields in the message of Drifted.
const maxFields = 10

// setDrifted sets the condition Drifted, or removes it if drift is nil.
func setDrifted(status *v1alpha1.OperatorInstallStatus, drift *Drift) {
	switch {
	case drift == nil:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionDrifted)
	case drift.Pending:
		// the condition keeps its value until the comparison
	case drift.Unknown != "":
		conditions.SetUnknown(&status.Conditions, status.ObservedGeneration, v1alpha1.ConditionDrifted,
			v1alpha1.ReasonNotCompared, drift.Unknown)
	case len(drift.Fields) == 0:
		conditions.Set(&status.Conditions, status.ObservedGeneration, v1alpha1.ConditionDrifted, false,
			v1alpha1.ReasonInSync, "What is installed is the admitted release as configured.")
	default:
		conditions.Set(&status.Conditions, status.ObservedGeneration, v1alpha1.ConditionDrifted, true,
			selectDriftReason(drift.Correction), formatDriftMessage(*drift))
	}
}

// selectDriftReason returns the reason of the condition Drifted.
func selectDriftReason(c Correction) string {
	switch c {
	case CorrectionDue, CorrectionWaits:
		return v1alpha1.ReasonCorrecting
	case CorrectionStopped:
		return v1alpha1.ReasonCorrectionStopped
	default:
		return v1alpha1.ReasonDrifted
	}
}

// formatDriftMessage returns the message of the condition Drifted: the differing fields and what happens next.
func formatDriftMessage(drift Drift) string {
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

// summarize sets the summary conditions to Stalled for a problem and to Reconciling otherwise.
func summarize(status *v1alpha1.OperatorInstallStatus, f Finding) {
	state := conditions.InProgress
	if f.Problem {
		state = conditions.Stalled
	}
	conditions.Summarize(&status.Conditions, status.ObservedGeneration,
		conditions.Summary{State: state, Reason: f.Reason, Message: f.Message})
}

// reportStaleAdmission returns the finding for an admission that is older than an admission that was already
// acted on.
func reportStaleAdmission(admitted, observed int64) *Finding {
	return &Finding{Problem: true, Reason: v1alpha1.ReasonStaleAdmission, Message: fmt.Sprintf(
		"The admission has revision %d, but the agent has already acted on revision %d. The admission is ignored "+
			"until a newer rollout replaces it.", admitted, observed)}
}
