// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ensureSubscription applies the Subscription if it is missing or out of sync, and returns a finding until it exists.
// If another owner has a Subscription for the same package or name, it only reports that Subscription.
func (d *decision) ensureSubscription(in Input) *finding {
	if f := in.checkForeignSubscriptions(); f != nil {
		return f
	}
	sub, ok := in.Cluster.findSubscription()
	if !ok || !sub.InSync {
		d.planApply(KindSubscription, "")
	}
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing, message: "The Subscription is being created.",
			recheck: recheckProblem}
	}
	return nil
}

// checkForeignSubscriptions returns a finding if another owner has a Subscription for the same package, or a
// Subscription that the agent would overwrite.
func (in Input) checkForeignSubscriptions() *finding {
	release := in.Install.Spec.Admission.Release
	_, hasOwn := in.Cluster.findSubscription()
	for _, s := range in.Cluster.Subscriptions {
		message := fmt.Sprintf("Subscription %s/%s", release.TargetNamespace(), s.Name)
		switch {
		case s.IsOwn:
			continue
		case s.Package == release.Package && hasOwn:
			message += " subscribes to the same package as the one that Bellwether manages. Delete it: what is " +
				"installed stays."
		case s.Package == release.Package:
			message += " subscribes to the same package, and Bellwether does not manage it. Set spec.adopt of the " +
				"ManagedOperator to take over what it installed as it runs. Or delete it, and Bellwether manages the " +
				"operator that it installed; or set another spec.install.namespace."
		case s.Name == release.Package && !hasOwn:
			message += fmt.Sprintf(" has the name that Bellwether's would have, and is for package %s. Delete it, or "+
				"set another spec.install.namespace.", s.Package)
		default:
			continue
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonSubscriptionConflict, recheck: recheckProblem,
			message: message}
	}
	return nil
}

// checkOrphans adopts or reports the first CSV that no Subscription refers to, because such a CSV blocks resolution
// (olm.md, fact 12). The CSVs of a running upgrade are not orphans: OLM has not yet written them into the Subscription.
func (d *decision) checkOrphans(in Input) *finding {
	isReferenced := map[string]bool{}
	for _, s := range in.Cluster.Subscriptions {
		isReferenced[s.InstalledCSV], isReferenced[s.CurrentCSV] = true, true
	}
	for _, csv := range in.Cluster.CSVs {
		isReplacing := csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) || in.isReplaced(csv.Name)
		isAdoptable := in.isAdoptable(csv)
		isBeingInstalled := in.isPlanned(csv.Name) && !isAdoptable
		if isReferenced[csv.Name] || csv.isEnding() || isReplacing || isBeingInstalled {
			continue
		}
		if isAdoptable {
			d.planAdoption(in, csv.Name)
			return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
				message: csv.Name + " is installed already; the new Subscription adopts it."}
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonOrphanCSV, recheck: recheckProblem, message: fmt.Sprintf(
			"ClusterServiceVersion %[1]s/%[2]s belongs to no Subscription, so OLM cannot resolve in this "+
				"namespace. Delete it: kubectl -n %[1]s delete csv %[2]s.",
			in.Install.Spec.Admission.Release.TargetNamespace(), csv.Name)}
	}
	return nil
}

// planAdoption plans to set a CSV as the installed CSV of the Subscription.
func (d *decision) planAdoption(in Input, csv string) {
	sub, _ := in.Cluster.findSubscription()
	d.Actions = append(d.Actions, Action{Verb: Adopt, Kind: KindSubscription, Name: sub.Name, Object: sub.Object,
		Value: csv})
}

// isAdoptable reports whether the Subscription can adopt a CSV that has no Subscription: the CSV is a version of the
// package and Succeeded, and the Subscription has no other installed CSV. OLM does not adopt such a CSV by itself. A
// CSV that an InstallPlan has just installed is not adoptable, unless OLM reports that it cannot resolve.
func (in Input) isAdoptable(csv CSV) bool {
	sub, ok := in.Cluster.findSubscription()
	_, isOfPackage := in.Offer.Versions[csv.Name]
	return ok && isOfPackage && !in.hasCSV(sub.InstalledCSV) &&
		csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) &&
		(!in.isPlanned(csv.Name) || sub.ResolutionFailed != "")
}

// isReplaced reports whether another CSV on the cluster replaces the named CSV.
func (in Input) isReplaced(name string) bool {
	return slices.ContainsFunc(in.Cluster.CSVs, func(c CSV) bool { return c.Replaces == name })
}

// isPlanned reports whether an approved InstallPlan that has not failed contains the CSV. The Subscription's status
// may name the CSV later than the plan.
func (in Input) isPlanned(name string) bool {
	return slices.ContainsFunc(in.Cluster.InstallPlans, func(p InstallPlan) bool {
		return p.Approved && p.Phase != string(operatorsv1alpha1.InstallPlanPhaseFailed) &&
			slices.Contains(p.CSVs, name)
	})
}

// recoverDeletedCSV makes OLM install a deleted CSV again. OLM does not install it again for the same Subscription, so
// the Subscription is deleted, and the next pass creates it. If the CSV was deleted during an upgrade and its
// predecessor still exists, the Subscription adopts the predecessor instead, and OLM repeats the upgrade. A CSV that
// was replaced is ignored: the Subscription names it until OLM names its successor.
func (d *decision) recoverDeletedCSV(in Input) *finding {
	sub, ok := in.Cluster.findSubscription()
	if !ok || sub.InstalledCSV == "" || sub.CurrentCSV != sub.InstalledCSV {
		return nil // nothing was installed, or OLM is installing another CSV
	}
	if _, exists := in.Cluster.findCSV(sub.InstalledCSV); exists || in.isReplaced(sub.InstalledCSV) ||
		in.findPendingPlan() != nil {
		return nil
	}
	if csv, ok := in.findCSVWithoutSuccessor(); ok {
		d.add(Reprocess, KindCSV, csv.Name, csv.Object)
		d.planAdoption(in, csv.Name)
	} else {
		d.add(Delete, KindSubscription, sub.Name, sub.Object)
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: fmt.Sprintf("ClusterServiceVersion %s was deleted; it is installed again.",
			sub.InstalledCSV)}
}

// findCSVWithoutSuccessor returns the CSV in phase Replacing whose successor was deleted. OLM does not change its
// phase, and one of OLM's operators crashes repeatedly until the phase changes.
func (in Input) findCSVWithoutSuccessor() (CSV, bool) {
	for _, csv := range in.Cluster.CSVs {
		_, isOfPackage := in.Offer.Versions[csv.Name]
		replacing := csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing)
		if isOfPackage && !csv.Deleting && replacing && !in.isReplaced(csv.Name) {
			return csv, true
		}
	}
	return CSV{}, false
}

// abandon makes OLM fail the unfinished CSV of an earlier admission, so that this admission's release can replace it.
// The offer has a next hop only if the unfinished CSV may be abandoned (Cluster.MayAdvance). abandon must run before
// the new view is served: OLM resolves as soon as it is connected to the view, and resolution fails until the CSV is
// Failed.
func (d *decision) abandon(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	if !ok || in.Offer.Next == "" || in.Offer.Next == csv.Name {
		return nil
	}
	switch operatorsv1alpha1.ClusterServiceVersionPhase(csv.Phase) {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseReplacing,
		operatorsv1alpha1.CSVPhaseDeleting:
		return nil // OLM can replace the CSV, or is already removing it
	}
	d.add(Abandon, KindCSV, csv.Name, csv.Object)
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
		"The installation of %s did not finish; it is abandoned and replaced with %s.", csv.Name, in.Offer.Next)}
}

// findPendingPlan returns the newest InstallPlan that is not Complete, which may also have failed; nil if there is
// none.
func (in Input) findPendingPlan() *InstallPlan {
	var newest *InstallPlan
	for i, p := range in.Cluster.InstallPlans {
		if p.Phase == string(operatorsv1alpha1.InstallPlanPhaseComplete) {
			continue
		}
		if newest == nil || p.Created.After(newest.Created) {
			newest = &in.Cluster.InstallPlans[i]
		}
	}
	return newest
}

// awaitResolution returns a finding until OLM has made an InstallPlan for the next hop. It deletes the plans that OLM
// made for another version, because OLM never replaces them (olm.md, fact 5), and makes OLM resolve again if a
// resolution failed or OLM waits for a plan that does not exist.
func (d *decision) awaitResolution(in Input) *finding {
	var removal *finding
	for _, p := range in.Cluster.InstallPlans {
		if in.isStale(p) {
			d.add(Delete, KindInstallPlan, p.Name, p.Object)
			removal = in.reportRemovedPlan(p)
		}
	}
	switch {
	case removal != nil:
		return removal
	case in.Offer.Next == "" || in.findPendingPlan() != nil || in.hasCSV(in.Offer.Next): // no plan is missing
		d.resolveAgain(in)
		return nil
	}
	f := d.explainUnresolved(in)
	sub, _ := in.Cluster.findSubscription()
	retryAfter := in.computeResolutionRetry(sub)
	isRetryDue := sub.ResolutionFailed != "" && in.Now.Sub(sub.LastUpdated) >= retryAfter
	if in.awaitsMissingPlan(sub) || isRetryDue {
		d.planReset(in, sub)
	}
	f.recheck = min(f.recheck, retryAfter)
	return f
}

// reportRemovedPlan returns the finding for a plan that is deleted. The finding is a problem if another plan already
// differed from the same view.
func (in Input) reportRemovedPlan(p InstallPlan) *finding {
	f := &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: "An InstallPlan for another version was deleted; OLM resolves again."}
	switch {
	case p.IsRepeated:
		f = in.reportDifferingPlan(p)
		f.recheck = recheckSoon
	case p.Difference != "":
		f.message = fmt.Sprintf("InstallPlan %s was deleted: %s. OLM makes another one of what is served.", p.Name,
			p.Difference)
	}
	return f
}

// resolveAgain makes OLM resolve again if the install runs its target, and either OLM failed to resolve or the
// Subscription has lost its current CSV. The cause of a failure, such as a Subscription of another owner, may have
// disappeared, and OLM does not try again by itself (olm.md, facts 22 and 23). OLM also does not set the current CSV
// again after the deletion of a plan for another CSV. The agent writes the target as the installed CSV, and this change
// makes OLM resolve.
func (d *decision) resolveAgain(in Input) {
	sub, _ := in.Cluster.findSubscription()
	hasLostCSV := sub.CurrentCSV == "" && in.findPendingPlan() == nil
	if sub.ResolutionFailed == "" && !hasLostCSV || !in.isTargetRunning() {
		return
	}
	// Without a time since which the condition is True, computeRetry returns the minimum.
	since := in.Now
	if c := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionResolved); c.Status == metav1.ConditionTrue {
		since = c.LastTransitionTime.Time
	}
	retryAfter := computeRetry(sub, since)
	if in.Now.Sub(sub.LastUpdated) >= retryAfter {
		d.planAdoption(in, in.findTarget())
	}
	d.scheduleRecheck(retryAfter)
}

// planReset plans to remove OLM's plan from the status of the Subscription.
func (d *decision) planReset(in Input, sub Subscription) {
	current, _ := in.Cluster.Installed()
	d.Actions = append(d.Actions, Action{Verb: Reset, Kind: KindSubscription, Name: sub.Name, Object: sub.Object,
		Value: current.Name})
}

// computeResolutionRetry returns how long after a failed resolution the agent makes OLM resolve again. OLM does not
// resolve again by itself, and may have resolved from outdated caches (olm.md, facts 22 and 23). A resolution can
// succeed only after OLM is connected to the catalog, so the failure is counted from that time.
func (in Input) computeResolutionRetry(sub Subscription) time.Duration {
	served := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionCatalogServed)
	return computeRetry(sub, served.LastTransitionTime.Time)
}

// computeRetry returns the delay between OLM's last update of a Subscription and the next retry: the time for which OLM
// has failed to resolve, within limits. The delay about doubles with each retry. since is when resolution could first
// succeed.
func computeRetry(sub Subscription, since time.Time) time.Duration {
	return min(max(sub.LastUpdated.Sub(since), retryResolutionMin), retryResolutionMax)
}

// awaitsMissingPlan reports whether OLM waits for an InstallPlan that was deleted, or treats the next hop as planned
// although there is no plan. OLM stays in this state until its periodic resynchronization.
func (in Input) awaitsMissingPlan(sub Subscription) bool {
	if sub.Awaits == "" { // OLM waits for no plan, and does not resolve a CSV that it has already named
		return sub.CurrentCSV == in.Offer.Next
	}
	return !in.hasPlan(sub.Awaits)
}

// hasPlan reports whether an InstallPlan exists.
func (in Input) hasPlan(name string) bool {
	return slices.ContainsFunc(in.Cluster.InstallPlans, func(p InstallPlan) bool { return p.Name == name })
}

// explainUnresolved returns why there is no InstallPlan for the next hop yet: OLM unpacks the bundle's image, or
// failed to unpack it or to resolve. A failure is reported only after OLM has had time to resolve from the current
// view.
func (d *decision) explainUnresolved(in Input) *finding {
	sub, _ := in.Cluster.findSubscription()
	f := &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem, message: "Waiting for OLM to resolve " +
		in.Offer.Next + "."}
	switch {
	case in.Offer.Route == v1alpha1.RouteUnpack && sub.UnpackFailed != "":
		f.stalled, f.reason = true, v1alpha1.ReasonUnpackFailed
		f.message = fmt.Sprintf("OLM cannot unpack the bundle image of %s. Check that the cluster can pull it. "+
			"OLM reports: %s", in.Offer.Next, sub.UnpackFailed)
	case in.Offer.Route == v1alpha1.RouteUnpack:
		f.message = fmt.Sprintf("OLM unpacks %s from its image with a Job in namespace %s, because it is too large "+
			"for an InstallPlan.",
			in.Offer.Next, in.Install.Spec.Admission.Release.TargetNamespace())
	case sub.ResolutionFailed != "" && in.isSettled():
		f.stalled, f.reason, f.message = true, v1alpha1.ReasonResolutionFailed, d.formatResolutionMessage(in, sub)
	}
	return f
}

// isSettled reports whether OLM has had enough time to resolve from the current view. Until then, a failure may be
// about the previous view.
func (in Input) isSettled() bool {
	served := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionCatalogServed)
	return served.Status == metav1.ConditionTrue && in.Now.Sub(served.LastTransitionTime.Time) >= resolveGrace
}

// formatResolutionMessage returns the message for a failed resolution. It keeps a message that is already reported,
// because OLM's text for the same failure differs each time (olm.md, fact 18).
func (d *decision) formatResolutionMessage(in Input, sub Subscription) string {
	reported := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionResolved)
	if reported.Reason == v1alpha1.ReasonResolutionFailed && reported.ObservedGeneration == in.Install.Generation {
		return reported.Message
	}
	return fmt.Sprintf("OLM cannot resolve %s. See the condition ResolutionFailed of Subscription %s/%s. OLM "+
		"reports: %s",
		in.Offer.Next, in.Install.Spec.Admission.Release.TargetNamespace(), sub.Name, sub.ResolutionFailed)
}

// checkBlocked reports a blocked version. It does not report the version while OLM installs it, because that
// installation continues.
func (d *decision) checkBlocked(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	isBegun := ok && csv.Name == in.findTarget() && !in.isTargetRunning()
	if in.Offer.Blocked == "" || isBegun {
		return nil
	}
	return reportBlocked(in)
}

// hasCSV reports whether the CSV of the bundle exists.
func (in Input) hasCSV(bundle string) bool {
	_, ok := in.Cluster.findCSV(bundle)
	return ok
}
