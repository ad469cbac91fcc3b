// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// maxLost bounds how many lost objects a message names, so that the advice that follows has room.
const maxLost = 8

func (d *decision) installed(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	if !ok && in.isAsInstalled() {
		sub, _ := in.Cluster.subscription()
		return in.notInstalled(sub)
	}
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing,
			message: "Waiting for OLM to create the ClusterServiceVersion.", recheck: recheckProblem}
	}
	if f := d.unblock(in, csv); f != nil {
		return f
	}
	state := fmt.Sprintf("%s is %s", csv.Name, phaseName(csv.Phase))
	if csv.Reason != "" {
		state += " (" + csv.Reason + "): " + strings.TrimSuffix(csv.Message, ".")
	}
	if f := in.lost(); f != nil {
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
			message: notUpgradeable(in.Install.Spec.Admission.Release.TargetNamespace(), csv)}
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed):
		return &finding{stalled: in.Now.Sub(csv.Since) >= csvFailedGrace, reason: v1alpha1.ReasonCSVFailed,
			message: state + ".", recheck: recheckProblem}
	case csv.Phase != string(operatorsv1alpha1.CSVPhaseSucceeded):
		return in.interrupted(state)
	case csv.Name != in.target() && in.goesBack():
		return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon,
			message: fmt.Sprintf("%s is installed; it goes back to %s.", csv.Name, strings.Join(in.Offer.Path, ", "))}
	case csv.Name != in.target():
		return &finding{reason: v1alpha1.ReasonProgressing,
			message: fmt.Sprintf("%s is installed; upgrades to come: %s.", csv.Name,
				strings.Join(in.Offer.Path, ", ")), recheck: recheckSoon}
	}
	return nil
}

// unblock has OLM go on with a CSV that it would not finish by itself, or not for long. One that is adopted as it is
// stays so.
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
	if in.failedByOtherGroups(csv) {
		d.add(Reprocess, KindCSV, csv.Name, csv.Object)
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"%s failed because of the OperatorGroups of its namespace (%s). There is exactly one now, so the agent "+
				"has OLM install it again.", csv.Name, csv.Reason)}
	}
	if before, ok := in.findBlocker(csv); ok {
		d.add(SetReplacing, KindCSV, before.Name, before.Object)
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"%s waits for %s, which OLM began to install again and cannot: %s. It is marked as being replaced.",
			csv.Name, before.Name, strings.Join(before.Missing, "; "))}
	}
	return nil
}

// lost says what a release that has succeeded had then and has no longer; nil where that is nothing. OLM
// makes it again only with the ClusterServiceVersion. Definitions and Services were looked up on the cluster; of
// everything else OLM says so, which may be about a moment ago.
func (in Input) lost() *finding {
	csv, ok := in.Cluster.Installed()
	if !ok || !in.hasSucceeded() || csv.Name != in.target() || csv.Deleting {
		return nil
	}
	var all []string
	for _, name := range in.Cluster.Undefined {
		all = append(all, "CustomResourceDefinition "+name+" (deleted, and with it all its custom resources)")
	}
	for _, name := range in.Cluster.Unserved {
		all = append(all, "Service "+name+" (deleted)")
	}
	if csv.Phase == string(operatorsv1alpha1.CSVPhasePending) {
		for _, what := range csv.Lost {
			if !slices.ContainsFunc(in.Cluster.Undefined, func(name string) bool {
				return strings.HasPrefix(what, "CustomResourceDefinition "+name+" ")
			}) {
				all = append(all, what)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	stalled := len(in.Cluster.Undefined)+len(in.Cluster.Unserved) > 0 || in.Now.Sub(csv.Since) >= requirementsGrace
	return &finding{stalled: stalled, reason: v1alpha1.ReasonObjectsLost, recheck: recheckProblem,
		message: fmt.Sprintf("%s has lost what came with it: %s. %s", csv.Name,
			strings.Join(phrase.Limit(all, maxLost), "; "), in.Install.RepairAdvice())}
}

// interrupted explains a CSV that is neither Succeeded nor Failed. If the admitted
// release has succeeded before, that is no progress: OLM installs it again because
// its Deployments are not available.
func (in Input) interrupted(state string) *finding {
	if f := in.unhealthy(); f != nil && in.hasSucceeded() {
		f.message += " " + state + "."
		return f
	}
	for _, d := range in.Cluster.Deployments {
		if why := d.why(); why != "" {
			state += "; Deployment " + d.Name + why
			break
		}
	}
	return &finding{reason: v1alpha1.ReasonProgressing, message: state + ".", recheck: recheckProblem}
}

// hasSucceeded tells whether the admitted release has succeeded, now or before.
func (in Input) hasSucceeded() bool {
	return in.Install.Status.SucceededHash == in.Install.Spec.Admission.Hash
}

// hasOldSettings tells whether OLM began to install a CSV without the settings of
// this admission: before the admission, or before OLM had seen the Subscription's
// status. OLM applies spec.config when it begins an installation, and not to one
// that it waits for, which it gives up after five minutes (olm.md, fact 24). The
// clocks of hub and cluster may differ, so what has just begun is left alone.
func (in Input) hasOldSettings(csv CSV) bool {
	admission := in.Install.Spec.Admission
	sub, _ := in.Cluster.subscription()
	switch operatorsv1alpha1.ClusterServiceVersionPhase(csv.Phase) {
	case operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseFailed:
		old := csv.Since.Before(admission.AdmittedAt.Time) || !areConfigured(in.Cluster.Deployments)
		return old && csv.Name == in.target() && sub.InSync && !csv.Deleting && !csv.Since.IsZero() &&
			in.Now.Sub(csv.Since) >= reinstallGrace
	}
	return false
}

// failedByOtherGroups tells whether OLM failed a CSV for OperatorGroups that are no longer so: the stages before this
// one have found the one that there is to be. OLM looks at a failed CSV again when that changes, and not when another
// OperatorGroup is deleted, which leaves it to the next full resynchronization, after minutes.
func (in Input) failedByOtherGroups(csv CSV) bool {
	switch operatorsv1alpha1.ConditionReason(csv.Reason) {
	case operatorsv1alpha1.CSVReasonTooManyOperatorGroups, operatorsv1alpha1.CSVReasonNoOperatorGroup:
		return csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed) && !csv.Deleting &&
			in.Now.Sub(csv.Since) >= reinstallGrace
	}
	return false
}

// findBlocker returns the CSV that csv replaces, if OLM cannot go on because of it: OLM began to install it again while
// the definitions of its successor were written, and it misses what those do not have. Both would stay Pending, since
// OLM replaces only what is Succeeded or Failed (olm.md, fact 27).
func (in Input) findBlocker(csv CSV) (CSV, bool) {
	before, ok := in.Cluster.csv(csv.Replaces)
	pending := string(operatorsv1alpha1.CSVPhasePending)
	isStuck := before.Phase == pending && len(before.Missing) > 0 && !before.Deleting &&
		in.Now.Sub(before.Since) >= requirementsGrace
	return before, ok && csv.Phase == pending && isStuck
}

// notUpgradeable gives the operator's own message, without the prefixes that OLM
// puts before it.
func notUpgradeable(namespace string, csv CSV) string {
	objection := csv.Message
	for _, prefix := range []string{"operator is not upgradeable: ", "the operator is not upgradeable: "} {
		objection = strings.TrimPrefix(objection, prefix)
	}
	return fmt.Sprintf("%s does not allow the upgrade to %s: %s. The upgrade goes on when the operator sets condition "+
		"Upgradeable of OperatorCondition %s/%s to True, or when spec.overrides there does.",
		csv.Replaces, csv.Name, strings.TrimSuffix(objection, "."), namespace, csv.Replaces)
}
