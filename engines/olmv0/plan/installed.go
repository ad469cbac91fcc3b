// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxLost limits the number of lost objects in a message, so that the message has room for the advice after them.
const maxLost = 8

// checkInstalled reports why the installed CSV is not the Succeeded target; nil if it is. It also makes OLM continue
// with a CSV that is blocked (unblock).
func (d *decision) checkInstalled(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	if !ok && in.isAsInstalled() {
		sub, _ := in.Cluster.findSubscription()
		return in.reportNotInstalled(sub)
	}
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing,
			message: "Waiting for OLM to create the ClusterServiceVersion.", recheck: recheckProblem}
	}
	if f := d.unblock(in, csv); f != nil {
		return f
	}
	state := fmt.Sprintf("%s is %s", csv.Name, formatPhase(csv.Phase))
	if csv.Reason != "" {
		state += " (" + csv.Reason + "): " + strings.TrimSuffix(csv.Message, ".")
	}
	if f := in.explainLost(); f != nil {
		return f
	}
	switch {
	case len(csv.Missing) > 0 && csv.Phase == string(operatorsv1alpha1.CSVPhasePending):
		return &finding{stalled: in.Now.Sub(csv.Since) >= requirementsGrace, reason: v1alpha1.ReasonRequirementsNotMet,
			recheck: recheckProblem, message: fmt.Sprintf(
				"%s needs what the cluster does not have: %s. Install it, or admit a version that does not need it.",
				csv.Name, strings.Join(csv.Missing, "; "))}
	case csv.Reason == string(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable):
		return &finding{stalled: true, reason: v1alpha1.ReasonNotUpgradeable, recheck: recheckProblem,
			message: formatNotUpgradeable(in.Install.Spec.Admission.Release.TargetNamespace(), csv)}
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed):
		return &finding{stalled: in.Now.Sub(csv.Since) >= csvFailedGrace, reason: v1alpha1.ReasonCSVFailed,
			message: state + ".", recheck: recheckProblem}
	case csv.Phase != string(operatorsv1alpha1.CSVPhaseSucceeded):
		return in.explainInterrupted(state)
	case csv.Name != in.findTarget() && in.isRollback():
		return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon,
			message: fmt.Sprintf("%s is installed; it goes back to %s.", csv.Name, strings.Join(in.Offer.Path, ", "))}
	case csv.Name != in.findTarget():
		return &finding{reason: v1alpha1.ReasonProgressing,
			message: fmt.Sprintf("%s is installed; upgrades to come: %s.", csv.Name,
				strings.Join(in.Offer.Path, ", ")), recheck: recheckSoon}
	}
	return nil
}

// unblock makes OLM continue with a CSV that OLM would not finish by itself, or would finish only after a long time.
// It does not change a CSV that is only adopted.
func (d *decision) unblock(in Input, csv CSV) *finding {
	if in.isAsInstalled() {
		return nil
	}
	if in.hasOldSettings(csv) {
		d.add(Reprocess, KindCSV, csv.Name, csv.Object)
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"%s has been %s since %s without the settings of this admission, so the agent has OLM install it again.",
			csv.Name, csv.Phase, phrase.Time(csv.Since))}
	}
	if in.hasFailedForGroups(csv) {
		d.add(Reprocess, KindCSV, csv.Name, csv.Object)
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"%s failed because of the OperatorGroups of its namespace (%s). There is exactly one now, so the agent "+
				"has OLM install it again.", csv.Name, csv.Reason)}
	}
	if blocker, ok := in.findBlocker(csv); ok {
		d.add(SetReplacing, KindCSV, blocker.Name, blocker.Object)
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"%s waits for %s, which OLM began to install again and cannot: %s. It is marked as being replaced.",
			csv.Name, blocker.Name, strings.Join(blocker.Missing, "; "))}
	}
	return nil
}

// explainLost returns a finding that lists the objects that a release had when it succeeded and that are missing; nil
// if there are none. OLM creates them again only with the ClusterServiceVersion. Missing CustomResourceDefinitions
// and Services were looked up on the cluster, so they are a problem at once. Other objects come from OLM's status,
// which may be outdated, so they are a problem only after requirementsGrace.
func (in Input) explainLost() *finding {
	csv, ok := in.Cluster.Installed()
	if !ok || !in.hasSucceeded() || csv.Name != in.findTarget() || csv.Deleting {
		return nil
	}
	var all []string
	for _, name := range in.Cluster.MissingDefinitions {
		all = append(all, "CustomResourceDefinition "+name+" (deleted, and with it all its custom resources)")
	}
	for _, name := range in.Cluster.MissingServices {
		all = append(all, "Service "+name+" (deleted)")
	}
	if csv.Phase == string(operatorsv1alpha1.CSVPhasePending) {
		for _, requirement := range csv.Lost {
			if !slices.ContainsFunc(in.Cluster.MissingDefinitions, func(name string) bool { // already in the list
				return strings.HasPrefix(requirement, "CustomResourceDefinition "+name+" ")
			}) {
				all = append(all, requirement)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	stalled := len(in.Cluster.MissingDefinitions)+len(in.Cluster.MissingServices) > 0 ||
		in.Now.Sub(csv.Since) >= requirementsGrace
	return &finding{stalled: stalled, reason: v1alpha1.ReasonObjectsLost, recheck: recheckProblem,
		message: fmt.Sprintf("%s has lost what came with it: %s. %s", csv.Name,
			strings.Join(phrase.Limit(all, maxLost), "; "), in.Install.RepairAdvice())}
}

// explainInterrupted returns the finding for a CSV that is neither Succeeded nor Failed. state describes the CSV,
// without a full stop. If the admitted release has already succeeded, the cause is that Deployments are not
// available, and OLM installs the CSV again.
func (in Input) explainInterrupted(state string) *finding {
	if f := in.explainUnhealthy(); f != nil && in.hasSucceeded() {
		f.message += " " + state + "."
		return f
	}
	for _, d := range in.Cluster.Deployments {
		if problem := d.formatFirstProblem(); problem != "" {
			state += "; Deployment " + d.Name + problem
			break
		}
	}
	return &finding{reason: v1alpha1.ReasonProgressing, message: state + ".", recheck: recheckProblem}
}

// hasSucceeded reports whether the admitted release has ever succeeded.
func (in Input) hasSucceeded() bool {
	return in.Install.Status.SucceededHash == in.Install.Spec.Admission.Hash
}

// hasOldSettings reports whether OLM installs the target, or failed to install it, without the settings of this
// admission: OLM began before the admission, or the Deployments do not have the settings. The Subscription must
// already have the settings. OLM applies spec.config when it begins an installation, and not to a running
// installation, which it gives up after five minutes (olm.md, fact 24). An installation that began less than
// reinstallGrace ago is ignored, because the clocks of hub and cluster may differ.
func (in Input) hasOldSettings(csv CSV) bool {
	admission := in.Install.Spec.Admission
	sub, _ := in.Cluster.findSubscription()
	switch operatorsv1alpha1.ClusterServiceVersionPhase(csv.Phase) {
	case operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseFailed:
		old := csv.Since.Before(admission.AdmittedAt.Time) || !areConfigured(in.Cluster.Deployments)
		return old && csv.Name == in.findTarget() && sub.InSync && !csv.Deleting && !csv.Since.IsZero() &&
			in.Now.Sub(csv.Since) >= reinstallGrace
	}
	return false
}

// hasFailedForGroups reports whether OLM failed a CSV because of the OperatorGroups of its namespace. The groups are
// correct now, because ensureOperatorGroup has passed. OLM checks a failed CSV again when its group changes, but not
// when another group is deleted: OLM then waits minutes for its next full resynchronization.
func (in Input) hasFailedForGroups(csv CSV) bool {
	switch operatorsv1alpha1.ConditionReason(csv.Reason) {
	case operatorsv1alpha1.CSVReasonTooManyOperatorGroups, operatorsv1alpha1.CSVReasonNoOperatorGroup:
		return csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed) && !csv.Deleting &&
			in.Now.Sub(csv.Since) >= reinstallGrace
	}
	return false
}

// findBlocker returns the CSV that csv replaces, if OLM cannot finish csv because of it: both are Pending, and the
// replaced CSV lacks requirements. This happens if OLM begins to install the replaced CSV again while it writes the
// CustomResourceDefinitions of csv, which do not meet the requirements of the replaced CSV. Both CSVs would stay
// Pending, because OLM replaces only a CSV that is Succeeded or Failed (olm.md, fact 27).
func (in Input) findBlocker(csv CSV) (CSV, bool) {
	blocker, ok := in.Cluster.findCSV(csv.Replaces)
	pending := string(operatorsv1alpha1.CSVPhasePending)
	isStuck := blocker.Phase == pending && len(blocker.Missing) > 0 && !blocker.Deleting &&
		in.Now.Sub(blocker.Since) >= requirementsGrace
	return blocker, ok && csv.Phase == pending && isStuck
}

// formatNotUpgradeable returns the message for an operator that does not allow an upgrade: the operator's own message
// without OLM's prefixes.
func formatNotUpgradeable(namespace string, csv CSV) string {
	objection := csv.Message
	for _, prefix := range []string{"operator is not upgradeable: ", "the operator is not upgradeable: "} {
		objection = strings.TrimPrefix(objection, prefix)
	}
	return fmt.Sprintf("%s does not allow the upgrade to %s: %s. The upgrade goes on when the operator sets condition "+
		"Upgradeable of OperatorCondition %s/%s to True, or when spec.overrides there does.",
		csv.Replaces, csv.Name, strings.TrimSuffix(objection, "."), namespace, csv.Replaces)
}
