// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// isRollback reports whether the admission is for a rollback to an older version.
func (in Input) isRollback() bool {
	admission := in.Install.Spec.Admission
	return admission != nil && admission.Rollback != nil
}

// isUpgradeWithdrawn reports whether this admission is a rollback and OLM still carries out an upgrade of the installed
// CSV: an approved plan for a newer CSV is not Complete, or the newer CSV exists.
func (in Input) isUpgradeWithdrawn(installed CSV) bool {
	if !in.isRollback() {
		return false
	}
	p := in.findPendingPlan()
	isBegun := p != nil && p.Approved && !slices.Contains(p.CSVs, installed.Name) && len(in.listForeignCSVs(*p)) == 0
	return isBegun || in.isReplaced(installed.Name)
}

// withdraw stops an unfinished upgrade for a rollback, while the previous CSV still exists: OLM makes no plan for a
// CSV that exists, so OLM cannot install the previous CSV again. In one or more passes, it deletes the plans of the
// upgrade, gives shared objects back to the previous CSV, and deletes the new CSV. Then it makes OLM process the
// previous CSV again. CustomResourceDefinitions are not changed. It returns nil if there is no such upgrade.
func (d *decision) withdraw(in Input) *finding {
	if !in.isRollback() {
		return nil
	}
	if previous, csv, ok := in.findUnfinishedUpgrade(); ok {
		for _, p := range in.Cluster.InstallPlans {
			if p.Phase != string(operatorsv1alpha1.InstallPlanPhaseComplete) && slices.Contains(p.CSVs, csv.Name) {
				d.add(Delete, KindInstallPlan, p.Name, p.Object)
			}
		}
		if f := d.restoreOwnership(in, previous, csv); f != nil {
			return f
		}
		if !csv.Deleting {
			d.add(Delete, KindCSV, csv.Name, csv.Object)
		}
		return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon, message: fmt.Sprintf(
			"The upgrade to %s did not finish; it is withdrawn, and %s stays.", csv.Name, previous.Name)}
	}
	previous, ok := in.findSurvivor()
	if !ok {
		return nil
	}
	if previous.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) {
		d.add(Reprocess, KindCSV, previous.Name, previous.Object)
	}
	d.planAdoption(in, previous.Name)
	return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon,
		message: fmt.Sprintf("The upgrade of %s was withdrawn, so the agent has OLM resume that version.",
			previous.Name)}
}

// restoreOwnership makes OLM carry out the plan of the previous CSV again, so that the objects of the previous CSV
// belong to it. The plan of the upgrade gave the shared objects to the new CSV only, so OLM would delete them with
// the new CSV (olm.md, fact 26). It returns a finding while OLM works, and nil when OLM is done or cannot do it: the
// plan is missing, has failed, or runs for longer than redoPatience. The upgrade is withdrawn in any case.
func (d *decision) restoreOwnership(in Input, previous, csv CSV) *finding {
	p := in.Cluster.FindExecutedPlan(previous.Name)
	if p == nil || csv.Deleting {
		return nil
	}
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		if p.Completed.After(in.findLastAssignment(csv)) {
			return nil // OLM has already carried out the plan again
		}
		// Wait while plans are deleted: OLM may still be carrying out a plan of the upgrade.
		if !slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Verb == Delete }) {
			d.Actions = append(d.Actions, Action{Verb: Redo, Kind: KindInstallPlan, Name: p.Name, Object: p.Object,
				Value: previous.Name})
		}
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		if p.Started.IsZero() || in.Now.Sub(p.Started) < redoPatience {
			break
		}
		fallthrough
	default: // failed, or OLM does not finish
		d.add(Delete, KindInstallPlan, p.Name, p.Object)
		return nil
	}
	return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon, message: fmt.Sprintf(
		"The upgrade to %s did not finish. Before it is withdrawn, OLM carries out InstallPlan %s again, so that the "+
			"Services and other objects of %s stay.", csv.Name, p.Name, previous.Name)}
}

// FindExecutedPlan returns the newest plan for a CSV that OLM has carried out, is carrying out, or failed to carry out;
// nil if there is none.
func (c Cluster) FindExecutedPlan(csv string) *InstallPlan {
	var newest *InstallPlan
	for i, p := range c.InstallPlans {
		switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
		case operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseInstalling,
			operatorsv1alpha1.InstallPlanPhaseFailed:
			if slices.Contains(p.CSVs, csv) && (newest == nil || p.Created.After(newest.Created)) {
				newest = &c.InstallPlans[i]
			}
		}
	}
	return newest
}

// findLastAssignment returns when OLM last gave objects to a CSV, or when the CSV was created if that is later. All
// these times are OLM's and the API server's, in whole seconds.
func (in Input) findLastAssignment(csv CSV) time.Time {
	last := csv.Created
	for _, p := range in.Cluster.InstallPlans {
		if slices.Contains(p.CSVs, csv.Name) && p.Completed.After(last) {
			last = p.Completed
		}
	}
	return last
}

// findSurvivor returns the previous CSV after an upgrade was withdrawn; false if there is none, if a plan is pending,
// or if the Subscription already names an existing CSV.
func (in Input) findSurvivor() (CSV, bool) {
	sub, ok := in.Cluster.findSubscription()
	if !ok || in.findPendingPlan() != nil {
		return CSV{}, false
	}
	if csv, ok := in.findCSVWithoutSuccessor(); ok {
		return csv, true
	}
	if !in.hasNoNamedCSV(sub) {
		return CSV{}, false
	}
	for _, csv := range in.Cluster.CSVs {
		_, isOfPackage := in.Offer.Versions[csv.Name]
		if isOfPackage && !csv.isEnding() && !in.isReplaced(csv.Name) {
			return csv, true
		}
	}
	return CSV{}, false
}

// hasNoNamedCSV reports whether the CSV that a Subscription names does not exist, or whether the Subscription names
// no CSV and OLM cannot resolve. OLM then resolves nothing while a CSV of the package exists, because it treats this
// CSV as a CSV without a Subscription (olm.md, fact 12).
func (in Input) hasNoNamedCSV(sub Subscription) bool {
	named := cmp.Or(sub.CurrentCSV, sub.InstalledCSV)
	return !in.hasCSV(named) && (named != "" || sub.ResolutionFailed != "")
}

// findUnfinishedUpgrade returns a CSV of the package that OLM has not finished to install (csv), and the existing CSV
// that it replaces (previous); false if there is none. The hop to the admitted release is not an unfinished upgrade.
func (in Input) findUnfinishedUpgrade() (previous, csv CSV, ok bool) {
	target := in.findTarget()
	for _, csv := range in.Cluster.CSVs {
		_, isOfPackage := in.Offer.Versions[csv.Name]
		previous, exists := in.Cluster.findCSV(csv.Replaces)
		if isOfPackage && exists && csv.Name != target && !csv.isFinished() {
			return previous, csv, true
		}
	}
	return CSV{}, CSV{}, false
}

// detach removes spec.replaces of the installed CSV if the next hop goes back to the bundle in this field. Otherwise
// both CSVs would stay in Replacing forever (olm.md, facts 6 and 7). It must run before the new view is served.
// During a rollback, it returns a finding until OLM has removed an old CSV with the name of the next hop.
func (d *decision) detach(in Input) *finding {
	installed, ok := in.Cluster.Installed()
	if !ok || in.Offer.Next == "" || installed.Name == in.Offer.Next {
		return nil
	}
	next, exists := in.Cluster.findCSV(in.Offer.Next)
	switch {
	case exists && next.Replaces == installed.Name:
		return nil // OLM is installing the next hop
	case exists && in.isRollback():
		return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckProblem, message: fmt.Sprintf(
			"Waiting for OLM to remove %s, which %s replaced, before it is installed again.", next.Name,
			installed.Name)}
	case exists || installed.Replaces != in.Offer.Next:
		return nil // OLM has already created the next CSV, or the next hop does not go back
	}
	d.add(Detach, KindCSV, installed.Name, installed.Object)
	return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon, message: fmt.Sprintf(
		"spec.replaces of %s is removed, so that %s can be installed in its place.", installed.Name, in.Offer.Next)}
}

// canApprove reports whether a plan may be approved. For a rollback, the operator's Subscription must refer to the
// plan: a rollback uses the name of an earlier CSV again, so there may be old plans for that name.
func (in Input) canApprove(p InstallPlan) bool {
	return !in.isRollback() || slices.ContainsFunc(in.Cluster.Subscriptions,
		func(s Subscription) bool { return s.IsOwn && s.Plan == p.UID })
}
