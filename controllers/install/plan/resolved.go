// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/conditions"
)

func (d *Decision) subscription(in Input) *finding {
	release := in.Install.Spec.Admission.Release
	for _, s := range in.Cluster.Subscriptions {
		if !s.Ours && s.Package == release.Package {
			return &finding{stalled: true, reason: v1alpha1.ReasonSubscriptionConflict, recheck: recheckProblem, message: fmt.Sprintf(
				"Subscription %s/%s subscribes to the same package. Delete it, and the operator is taken up as it runs; or give the ManagedOperator another namespace.",
				release.TargetNamespace(), s.Name)}
		}
	}
	sub, ok := in.Cluster.subscription()
	if !ok || !sub.InSync {
		d.do(Apply, KindSubscription, "")
	}
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing, message: "The Subscription is being created.", recheck: recheckProblem}
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
		going := csv.Deleting || csv.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) || csv.Phase == string(operatorsv1alpha1.CSVPhaseDeleting)
		if referred[csv.Name] || going || in.replaced(csv.Name) || in.planned(csv.Name) {
			continue
		}
		if in.adoptable(csv) {
			d.do(Adopt, KindCSV, csv.Name)
			return &finding{reason: v1alpha1.ReasonProgressing, message: csv.Name + " was there before; its Subscription takes it up.", recheck: recheckSoon}
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonOrphanCSV, recheck: recheckProblem, message: fmt.Sprintf(
			"ClusterServiceVersion %[1]s/%[2]s belongs to no Subscription and keeps OLM from resolving in this namespace. Delete it: kubectl -n %[1]s delete csv %[2]s.",
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
		return p.Approved && p.Phase != string(operatorsv1alpha1.InstallPlanPhaseFailed) && slices.Contains(p.CSVs, name)
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
		message: fmt.Sprintf("ClusterServiceVersion %s was deleted by somebody; it is installed again.", sub.InstalledCSV)}
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
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting:
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
		return &finding{reason: v1alpha1.ReasonProgressing, message: "An InstallPlan for another version was removed; OLM resolves again.", recheck: recheckSoon}
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
	f := &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem, message: "Waiting for OLM to resolve " + in.Offer.Next + "."}
	switch {
	case in.Offer.Route == v1alpha1.RouteUnpack && sub.UnpackFailed != "":
		f.stalled, f.reason = true, v1alpha1.ReasonUnpackFailed
		f.message = fmt.Sprintf("OLM cannot unpack the bundle image of %s. Check that the cluster can pull it. OLM says: %s", in.Offer.Next, sub.UnpackFailed)
	case in.Offer.Route == v1alpha1.RouteUnpack:
		f.message = fmt.Sprintf("OLM unpacks %s from its image with a Job in namespace %s, because it is too large for an InstallPlan.",
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
	return fmt.Sprintf("OLM cannot resolve %s. Look at the condition ResolutionFailed of Subscription %s/%s. OLM says: %s",
		in.Offer.Next, in.Install.Spec.Admission.Release.TargetNamespace(), sub.Name, sub.ResolutionFailed)
}

// installing tells whether the bundle's CSV is there already.
func (in Input) installing(bundle string) bool {
	_, ok := in.Cluster.csv(bundle)
	return ok
}

// stale tells whether a plan is for another version of this package than the
// one admitted. One that OLM carries out is left to finish; one that was
// approved before OLM asked for it never starts (olm.md, fact 4).
func (in Input) stale(p InstallPlan) bool {
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseInstalling:
		return false
	case operatorsv1alpha1.InstallPlanPhaseNone:
		if p.Approved {
			return in.Now.Sub(p.Created) > inertAfter
		}
		return false
	case operatorsv1alpha1.InstallPlanPhasePlanning:
		return false
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return !p.Approved && in.outdated(p)
	default:
		// One that failed half way has its CSV there and is tried again.
		csv, ok := in.Cluster.Installed()
		halfway := ok && in.Offer.Next == "" && slices.Contains(p.CSVs, csv.Name)
		return !halfway && in.outdated(p)
	}
}

// outdated tells whether OLM would not make this plan again.
func (in Input) outdated(p InstallPlan) bool {
	return in.deserted(p) || !in.admitted(p) && len(in.foreign(p)) == 0
}

// deserted tells whether a plan holds a CSV whose Subscription is gone: nothing
// subscribes to it, nor would the plan make anything subscribe to it.
func (in Input) deserted(p InstallPlan) bool {
	return slices.ContainsFunc(in.foreign(p), func(csv string) bool {
		return !slices.Contains(p.Subscribes, csv) &&
			!slices.ContainsFunc(in.Cluster.Subscriptions, func(s Subscription) bool { return s.CurrentCSV == csv })
	})
}

// admitted tells whether a plan holds exactly what was admitted: the next hop
// and nothing that it does not need.
func (in Input) admitted(p InstallPlan) bool {
	if in.Offer.Next == "" || !slices.Contains(p.CSVs, in.Offer.Next) {
		return false
	}
	return len(in.unadmitted(p)) == 0
}

func (in Input) unadmitted(p InstallPlan) []string {
	var names []string
	for _, name := range p.CSVs {
		if !slices.Contains(in.Offer.Admitted, name) {
			names = append(names, name)
		}
	}
	return names
}

// foreign returns the CSVs of a plan that belong to neither this package nor
// what it depends on.
func (in Input) foreign(p InstallPlan) []string {
	return slices.DeleteFunc(in.unadmitted(p), func(name string) bool {
		_, ours := in.Offer.Versions[name]
		return ours
	})
}

func (d *Decision) planApproved(in Input) *finding {
	p := in.pending()
	if p == nil {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	if others := in.foreign(*p); len(others) > 0 && !p.Approved {
		return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem, message: fmt.Sprintf(
			"InstallPlan %s/%s also holds %s, which no rollout admitted; it is not approved. Remove the Subscription that asks for it, or give that operator a namespace of its own.",
			release.TargetNamespace(), p.Name, strings.Join(others, ", "))}
	}
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return d.planFailed(in, *p)
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		if !p.Approved && in.admitted(*p) {
			d.do(Approve, KindInstallPlan, p.Name)
		}
	}
	message := fmt.Sprintf("InstallPlan %s is %s.", p.Name, phaseName(p.Phase))
	if p.Message != "" {
		message = fmt.Sprintf("InstallPlan %s is %s: %s.", p.Name, phaseName(p.Phase), strings.TrimSuffix(p.Message, "."))
	}
	return &finding{reason: v1alpha1.ReasonProgressing, message: message, recheck: recheckProblem}
}

func phaseName(phase string) string {
	if phase == "" {
		return "new"
	}
	return phase
}

// planFailed reports the step that failed and lets OLM try again (olm.md, fact
// 17), each time after as long as it has been tried for. The plan is set back to
// Installing rather than deleted: OLM makes no other one for a CSV that exists,
// and the CSV is among the first of its steps.
func (d *Decision) planFailed(in Input, p InstallPlan) *finding {
	tried := p.FailedAt.Sub(in.Install.Spec.Admission.AdmittedAt.Time)
	wait := min(max(tried, retryPlanMin), retryPlanMax)
	due := p.FailedAt.Add(wait).Sub(in.Now)
	if due <= 0 {
		d.do(Retry, KindInstallPlan, p.Name)
		due = recheckSoon
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonPlanFailed, recheck: min(due, recheckSteady), message: fmt.Sprintf(
		"InstallPlan %s failed %s. Put that right, or admit another version. It is tried again %s after it failed.", p.Name, strings.TrimSuffix(p.Failure, "."), wait.Round(time.Second))}
}

func (d *Decision) installed(in Input) *finding {
	csv, ok := in.Cluster.Installed()
	if !ok {
		return &finding{reason: v1alpha1.ReasonProgressing, message: "Waiting for OLM to create the ClusterServiceVersion.", recheck: recheckProblem}
	}
	state := fmt.Sprintf("%s is %s", csv.Name, phaseName(csv.Phase))
	if csv.Reason != "" {
		state += " (" + csv.Reason + "): " + strings.TrimSuffix(csv.Message, ".")
	}
	switch {
	case len(csv.Missing) > 0 && csv.Phase == string(operatorsv1alpha1.CSVPhasePending):
		return &finding{stalled: in.Now.Sub(csv.Since) >= requirementsGrace, reason: v1alpha1.ReasonRequirementsNotMet, recheck: recheckProblem, message: fmt.Sprintf(
			"%s waits for what the cluster does not have: %s. Install it, or admit a version that does not need it.", csv.Name, strings.Join(csv.Missing, "; "))}
	case csv.Reason == string(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable):
		return &finding{stalled: true, reason: v1alpha1.ReasonNotUpgradeable, recheck: recheckProblem,
			message: notUpgradeable(in.Install.Spec.Admission.Release.TargetNamespace(), csv)}
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed):
		return &finding{stalled: in.Now.Sub(csv.Since) >= csvFailedGrace, reason: v1alpha1.ReasonCSVFailed, message: state + ".", recheck: recheckProblem}
	case csv.Phase != string(operatorsv1alpha1.CSVPhaseSucceeded):
		return &finding{reason: v1alpha1.ReasonProgressing, message: state + ".", recheck: recheckProblem}
	case csv.Name != in.Install.Spec.Admission.Release.Bundle:
		return &finding{reason: v1alpha1.ReasonProgressing, message: fmt.Sprintf("%s is installed; %d more to %s.", csv.Name, len(in.Offer.Path), in.Install.Spec.Admission.Release.Bundle), recheck: recheckSoon}
	}
	return nil
}

// notUpgradeable words the running operator's objection without the prefixes
// that OLM puts before it.
func notUpgradeable(namespace string, csv CSV) string {
	objection := csv.Message
	for _, prefix := range []string{"operator is not upgradeable: ", "the operator is not upgradeable: "} {
		objection = strings.TrimPrefix(objection, prefix)
	}
	return fmt.Sprintf("%s holds the upgrade to %s back: %s. It goes on when the operator sets Upgradeable in OperatorCondition %s/%s; spec.overrides there overrules it.",
		csv.Replaces, csv.Name, strings.TrimSuffix(objection, "."), namespace, csv.Replaces)
}
