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

func (d *decision) subscription(in Input) *finding {
	if f := in.foreignSubscription(); f != nil {
		return f
	}
	sub, ok := in.Cluster.subscription()
	if !ok || !sub.InSync {
		d.apply(KindSubscription, "")
	}
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing, message: "The Subscription is being created.",
			recheck: recheckProblem}
	}
	return nil
}

// foreignSubscription refuses to go on beside a Subscription of somebody else, and to write over one.
func (in Input) foreignSubscription() *finding {
	release := in.Install.Spec.Admission.Release
	_, hasOwn := in.Cluster.subscription()
	for _, s := range in.Cluster.Subscriptions {
		message := fmt.Sprintf("Subscription %s/%s", release.TargetNamespace(), s.Name)
		switch {
		case s.Ours:
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

// orphans reports CSVs that no Subscription refers to: they block resolution
// (olm.md, fact 12). Those of a replacement under way are none.
func (d *decision) orphans(in Input) *finding {
	referred := map[string]bool{}
	for _, s := range in.Cluster.Subscriptions {
		referred[s.InstalledCSV], referred[s.CurrentCSV] = true, true
	}
	for _, csv := range in.Cluster.CSVs {
		replaced := csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) || in.isReplaced(csv.Name)
		adoptable := in.isAdoptable(csv)
		if referred[csv.Name] || csv.isEnding() || replaced || in.isPlanned(csv.Name) && !adoptable {
			continue
		}
		if adoptable {
			d.adopt(in, csv.Name)
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

func (d *decision) adopt(in Input, csv string) {
	sub, _ := in.Cluster.subscription()
	d.Actions = append(d.Actions, Action{Verb: Adopt, Kind: KindSubscription, Name: sub.Name, Object: sub.Object,
		Value: csv})
}

// isAdoptable tells whether a CSV without a Subscription is this operator as it
// was installed before, by Bellwether or by others: the Subscription can adopt it,
// which OLM does not do by itself. One that OLM has just installed is left to OLM,
// as long as that does not say that it cannot resolve.
func (in Input) isAdoptable(csv CSV) bool {
	sub, ok := in.Cluster.subscription()
	_, ours := in.Offer.Versions[csv.Name]
	return ok && ours && !in.hasCSV(sub.InstalledCSV) && csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) &&
		(!in.isPlanned(csv.Name) || sub.ResolutionFailed != "")
}

// isReplaced tells whether a CSV that is there replaces the named one.
func (in Input) isReplaced(name string) bool {
	return slices.ContainsFunc(in.Cluster.CSVs, func(c CSV) bool { return c.Replaces == name })
}

// isPlanned tells whether an InstallPlan that has not failed brought the CSV: the
// Subscription's status lags behind it.
func (in Input) isPlanned(name string) bool {
	return slices.ContainsFunc(in.Cluster.InstallPlans, func(p InstallPlan) bool {
		return p.Approved && p.Phase != string(operatorsv1alpha1.InstallPlanPhaseFailed) &&
			slices.Contains(p.CSVs, name)
	})
}

// deletedCSV recovers from the deletion of the installed CSV: OLM does not
// install it again for the same Subscription. A CSV that was replaced is not
// meant: the Subscription names it until OLM names its successor.
func (d *decision) deletedCSV(in Input) *finding {
	sub, ok := in.Cluster.subscription()
	if !ok || sub.InstalledCSV == "" || sub.CurrentCSV != sub.InstalledCSV {
		return nil
	}
	if _, there := in.Cluster.csv(sub.InstalledCSV); there || in.isReplaced(sub.InstalledCSV) || in.pending() != nil {
		return nil
	}
	if csv, ok := in.withoutSuccessor(); ok {
		d.add(Reprocess, KindCSV, csv.Name, csv.Object)
		d.adopt(in, csv.Name)
	} else {
		d.add(Delete, KindSubscription, sub.Name, sub.Object)
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: fmt.Sprintf("ClusterServiceVersion %s was deleted; it is installed again.",
			sub.InstalledCSV)}
}

// withoutSuccessor returns the CSV that a deleted one was about to replace. OLM
// leaves it in phase Replacing, and one of OLM's operators crashes repeatedly
// until that ends.
func (in Input) withoutSuccessor() (CSV, bool) {
	for _, csv := range in.Cluster.CSVs {
		_, ours := in.Offer.Versions[csv.Name]
		replacing := csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing)
		if ours && !csv.Deleting && replacing && !in.isReplaced(csv.Name) {
			return csv, true
		}
	}
	return CSV{}, false
}

// abandon gives up an unfinished CSV of an earlier admission for the release of
// this one; see Cluster.MayAdvance. It comes before the new view is served: OLM
// resolves as soon as it is connected to that, and cannot resolve while the CSV is
// not Failed.
func (d *decision) abandon(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	if !ok || in.Offer.Next == "" || in.Offer.Next == csv.Name {
		return nil
	}
	switch operatorsv1alpha1.ClusterServiceVersionPhase(csv.Phase) {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseReplacing,
		operatorsv1alpha1.CSVPhaseDeleting:
		return nil
	}
	d.add(Abandon, KindCSV, csv.Name, csv.Object)
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
		"The installation of %s did not finish; it is abandoned and replaced with %s.", csv.Name, in.Offer.Next)}
}

// pending returns the newest InstallPlan that is not Complete.
func (in Input) pending() *InstallPlan {
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

// resolved waits for an InstallPlan for the next hop, and deletes those that
// OLM made for another one: OLM never supersedes them (olm.md, fact 5).
func (d *decision) resolved(in Input) *finding {
	var removed *finding
	for _, p := range in.Cluster.InstallPlans {
		if in.isStale(p) {
			d.add(Delete, KindInstallPlan, p.Name, p.Object)
			removed = in.planRemoved(p)
		}
	}
	switch {
	case removed != nil:
		return removed
	case in.Offer.Next == "" || in.pending() != nil || in.hasCSV(in.Offer.Next):
		d.resolveAgain(in)
		return nil
	}
	f := d.unresolved(in)
	sub, _ := in.Cluster.subscription()
	retry := in.resolutionRetry(sub)
	if in.awaitsNothing(sub) || sub.ResolutionFailed != "" && in.Now.Sub(sub.LastUpdated) >= retry {
		d.reset(in, sub)
	}
	f.recheck = min(f.recheck, retry)
	return f
}

// planRemoved reports a plan that is deleted. One after another that differ in their content are a problem.
func (in Input) planRemoved(p InstallPlan) *finding {
	f := &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: "An InstallPlan for another version was deleted; OLM resolves again."}
	switch {
	case p.Repeats:
		f = in.planDiffers(p)
		f.recheck = recheckSoon
	case p.Differs != "":
		f.message = fmt.Sprintf("InstallPlan %s was deleted: %s. OLM makes another one of what is served.", p.Name,
			p.Differs)
	}
	return f
}

// resolveAgain makes OLM resolve again where it could not, although the install
// has all it needs: what was in the way, such as a Subscription of somebody else, is
// gone. OLM does not do so by itself (olm.md, facts 22 and 23). Nor does it name the
// CSV in a Subscription again, whose plan for another one was deleted.
func (d *decision) resolveAgain(in Input) {
	sub, _ := in.Cluster.subscription()
	if sub.ResolutionFailed == "" && (sub.CurrentCSV != "" || in.pending() != nil) || !in.runsTarget() {
		return
	}
	began := in.Now
	if c := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionResolved); c.Status == metav1.ConditionTrue {
		began = c.LastTransitionTime.Time
	}
	retry := retryAfter(sub, began)
	if in.Now.Sub(sub.LastUpdated) >= retry {
		d.adopt(in, in.target())
	}
	d.recheck(retry)
}

func (d *decision) reset(in Input, sub Subscription) {
	current, _ := in.Cluster.Installed()
	d.Actions = append(d.Actions, Action{Verb: Reset, Kind: KindSubscription, Name: sub.Name, Object: sub.Object,
		Value: current.Name})
}

// resolutionRetry is how long after a failed resolution of the view OLM is made to
// resolve again. OLM does not do so by itself, and may have resolved from what its
// caches had at that time (olm.md, facts 22 and 23).
func (in Input) resolutionRetry(sub Subscription) time.Duration {
	served := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionCatalogServed)
	return retryAfter(sub, served.LastTransitionTime.Time)
}

// retryAfter is as long as OLM has been failing to resolve, within bounds.
func retryAfter(sub Subscription, began time.Time) time.Duration {
	return min(max(sub.LastUpdated.Sub(began), retryResolutionMin), retryResolutionMax)
}

// awaitsNothing tells whether OLM waits for an InstallPlan that was deleted, or
// considers the next hop planned although there is no plan. It goes on doing so
// until its resync.
func (in Input) awaitsNothing(sub Subscription) bool {
	if sub.Awaits == "" {
		return sub.CurrentCSV == in.Offer.Next
	}
	return !in.exists(sub.Awaits)
}

// exists tells whether an InstallPlan is there.
func (in Input) exists(name string) bool {
	return slices.ContainsFunc(in.Cluster.InstallPlans, func(p InstallPlan) bool { return p.Name == name })
}

// unresolved says why there is no InstallPlan for the next hop yet.
func (d *decision) unresolved(in Input) *finding {
	sub, _ := in.Cluster.subscription()
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
		f.stalled, f.reason, f.message = true, v1alpha1.ReasonResolutionFailed, d.resolutionMessage(in, sub)
	}
	return f
}

// isSettled tells whether OLM has had the time to resolve from the view that it
// is connected to. Until then a failure may be about the view before.
func (in Input) isSettled() bool {
	served := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionCatalogServed)
	return served.Status == metav1.ConditionTrue && in.Now.Sub(served.LastTransitionTime.Time) >= resolveGrace
}

// resolutionMessage keeps the message of a failure that is already reported:
// OLM words the same failure differently each time (olm.md, fact 18).
func (d *decision) resolutionMessage(in Input, sub Subscription) string {
	before := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionResolved)
	if before.Reason == v1alpha1.ReasonResolutionFailed && before.ObservedGeneration == in.Install.Generation {
		return before.Message
	}
	return fmt.Sprintf("OLM cannot resolve %s. See the condition ResolutionFailed of Subscription %s/%s. OLM "+
		"reports: %s",
		in.Offer.Next, in.Install.Spec.Admission.Release.TargetNamespace(), sub.Name, sub.ResolutionFailed)
}

// blocked stops before a version that is blocked. A version that OLM has begun to
// install is finished.
func (d *decision) blocked(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	begun := ok && csv.Name == in.target() && !in.runsTarget()
	if in.Offer.Blocked == "" || begun {
		return nil
	}
	return blocked(in)
}

// hasCSV tells whether the bundle's CSV is there already.
func (in Input) hasCSV(bundle string) bool {
	_, ok := in.Cluster.csv(bundle)
	return ok
}
