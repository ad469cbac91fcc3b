// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func (d *Decision) subscription(in Input) *finding {
	release := in.Install.Spec.Admission.Release
	for _, s := range in.Cluster.Subscriptions {
		if !s.Ours && s.Package == release.Package {
			return &finding{stalled: true, reason: v1alpha1.ReasonSubscriptionConflict, recheck: recheckProblem,
				message: fmt.Sprintf(
					"Subscription %s/%s subscribes to the same package. Delete it, and the operator is taken up as it "+
						"runs; or give the ManagedOperator another namespace.",
					release.TargetNamespace(), s.Name)}
		}
	}
	sub, ok := in.Cluster.subscription()
	if !ok || !sub.InSync {
		d.do(Apply, KindSubscription, "")
	}
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing, message: "The Subscription is being created.",
			recheck: recheckProblem}
	}
	return nil
}

// orphans reports CSVs that no Subscription refers to: they block resolution
// (olm.md, fact 12). Those of a replacement under way are none.
func (d *Decision) orphans(in Input) *finding {
	referred := map[string]bool{}
	for _, s := range in.Cluster.Subscriptions {
		referred[s.InstalledCSV], referred[s.CurrentCSV] = true, true
	}
	for _, csv := range in.Cluster.CSVs {
		going := csv.Deleting || csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) ||
			csv.Phase == string(operatorsv1alpha1.CSVPhaseDeleting)
		if referred[csv.Name] || going || in.replaced(csv.Name) || in.planned(csv.Name) {
			continue
		}
		if in.adoptable(csv) {
			d.do(Adopt, KindCSV, csv.Name)
			return &finding{reason: v1alpha1.ReasonProgressing, message: csv.Name +
				" was there before; its Subscription takes it up.", recheck: recheckSoon}
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonOrphanCSV, recheck: recheckProblem, message: fmt.Sprintf(
			"ClusterServiceVersion %[1]s/%[2]s belongs to no Subscription and keeps OLM from resolving in this "+
				"namespace. Delete it: kubectl -n %[1]s delete csv %[2]s.",
			in.Install.Spec.Admission.Release.TargetNamespace(), csv.Name)}
	}
	return nil
}

// adoptable tells whether a CSV without a Subscription is this operator as it
// was installed before, by Bellwether or by others: the new Subscription can
// take it up as it runs, which OLM does not do by itself.
func (in Input) adoptable(csv CSV) bool {
	sub, ok := in.Cluster.subscription()
	_, ours := in.Offer.Versions[csv.Name]
	return ok && ours && sub.InstalledCSV == "" && csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded)
}

// replaced tells whether a CSV that is there replaces the named one.
func (in Input) replaced(name string) bool {
	return slices.ContainsFunc(in.Cluster.CSVs, func(c CSV) bool { return c.Replaces == name })
}

// planned tells whether an InstallPlan that has not failed brought the CSV: the
// Subscription's status lags behind it.
func (in Input) planned(name string) bool {
	return slices.ContainsFunc(in.Cluster.InstallPlans, func(p InstallPlan) bool {
		return p.Approved && p.Phase != string(operatorsv1alpha1.InstallPlanPhaseFailed) &&
			slices.Contains(p.CSVs, name)
	})
}

// lostCSV heals a Subscription whose CSV somebody deleted: OLM does not install
// it again for the same Subscription. A CSV that was replaced is not lost: the
// Subscription names it until OLM gets round to naming the one after it.
func (d *Decision) lostCSV(in Input) *finding {
	sub, ok := in.Cluster.subscription()
	if !ok || sub.InstalledCSV == "" || sub.CurrentCSV != sub.InstalledCSV {
		return nil
	}
	if _, there := in.Cluster.csv(sub.InstalledCSV); there || in.replaced(sub.InstalledCSV) || in.pending() != nil {
		return nil
	}
	if left, ok := in.left(); ok {
		d.do(Revive, KindCSV, left)
		d.do(Adopt, KindCSV, left)
	} else {
		d.do(Delete, KindSubscription, sub.Name)
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon,
		message: fmt.Sprintf("ClusterServiceVersion %s was deleted by somebody; it is installed again.",
			sub.InstalledCSV)}
}

// left returns the CSV that a deleted one was about to replace. OLM leaves it
// in Replacing, and one of its operators crashes over and over until that ends.
func (in Input) left() (string, bool) {
	for _, csv := range in.Cluster.CSVs {
		_, ours := in.Offer.Versions[csv.Name]
		if ours && !csv.Deleting && csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) && !in.replaced(csv.Name) {
			return csv.Name, true
		}
	}
	return "", false
}

// abandon clears the way for a newer release where what an earlier admission
// brought never came up; see Cluster.MayAdvance.
func (d *Decision) abandon(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	if !ok || in.Offer.Next == "" || in.Offer.Next == csv.Name {
		return nil
	}
	switch operatorsv1alpha1.ClusterServiceVersionPhase(csv.Phase) {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseReplacing,
		operatorsv1alpha1.CSVPhaseDeleting:
		return nil
	}
	d.do(Abandon, KindCSV, csv.Name)
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
		"%s never came up; it is given up for %s.", csv.Name, in.Offer.Next)}
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

// resolved waits for an InstallPlan for the next hop, and removes those that
// OLM made for another one: it never supersedes them itself (olm.md, fact 5).
func (d *Decision) resolved(in Input) *finding {
	removed := false
	for _, p := range in.Cluster.InstallPlans {
		if in.stale(p) {
			d.do(Delete, KindInstallPlan, p.Name)
			removed = true
		}
	}
	switch {
	case removed:
		return &finding{reason: v1alpha1.ReasonProgressing,
			message: "An InstallPlan for another version was removed; OLM resolves again.", recheck: recheckSoon}
	case in.Offer.Next == "" || in.pending() != nil || in.installing(in.Offer.Next):
		return nil
	}
	if sub, _ := in.Cluster.subscription(); in.awaitsNothing(sub) {
		d.do(Reset, KindSubscription, sub.Name)
	}
	return d.unresolved(in)
}

// awaitsNothing tells whether OLM waits for an InstallPlan that was deleted, or
// takes the next hop for planned although there is no plan. It goes on doing so
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
func (d *Decision) unresolved(in Input) *finding {
	sub, _ := in.Cluster.subscription()
	f := &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem, message: "Waiting for OLM to resolve " +
		in.Offer.Next + "."}
	switch {
	case in.Offer.Route == v1alpha1.RouteUnpack && sub.UnpackFailed != "":
		f.stalled, f.reason = true, v1alpha1.ReasonUnpackFailed
		f.message = fmt.Sprintf("OLM cannot unpack the bundle image of %s. Check that the cluster can pull it. OLM "+
			"says: %s", in.Offer.Next, sub.UnpackFailed)
	case in.Offer.Route == v1alpha1.RouteUnpack:
		f.message = fmt.Sprintf("OLM unpacks %s from its image with a Job in namespace %s, because it is too large "+
			"for an InstallPlan.",
			in.Offer.Next, in.Install.Spec.Admission.Release.TargetNamespace())
	case sub.ResolutionFailed != "" && in.settled():
		f.stalled, f.reason, f.message = true, v1alpha1.ReasonResolutionFailed, d.resolutionMessage(in, sub)
	}
	return f
}

// settled tells whether OLM has had the time to resolve from the view that it
// is connected to: until then a failure may be about the view before.
func (in Input) settled() bool {
	served := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionCatalogServed)
	return served.Status == metav1.ConditionTrue && in.Now.Sub(served.LastTransitionTime.Time) >= resolveGrace
}

// resolutionMessage keeps the message of a failure that is already reported:
// OLM words the same failure differently each time (olm.md, fact 18).
func (d *Decision) resolutionMessage(in Input, sub Subscription) string {
	before := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionResolved)
	if before.Reason == v1alpha1.ReasonResolutionFailed && before.ObservedGeneration == in.Install.Generation {
		return before.Message
	}
	return fmt.Sprintf("OLM cannot resolve %s. Look at the condition ResolutionFailed of Subscription %s/%s. OLM "+
		"says: %s",
		in.Offer.Next, in.Install.Spec.Admission.Release.TargetNamespace(), sub.Name, sub.ResolutionFailed)
}

// blocked stops before a version that is blocked. One that OLM has begun with
// finishes.
func (d *Decision) blocked(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	begun := ok && csv.Name == in.Install.Spec.Admission.Release.Bundle && !runsTarget(in)
	if in.Offer.Blocked == "" || begun {
		return nil
	}
	return blocked(in)
}

// installing tells whether the bundle's CSV is there already.
func (in Input) installing(bundle string) bool {
	_, ok := in.Cluster.csv(bundle)
	return ok
}
