// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// findTarget returns the bundle that the install must run: the admitted bundle, or the installed bundle if the
// release only adopts an existing operator. It returns "" if there is no operator to adopt.
func (in Input) findTarget() string {
	if !in.isAsInstalled() {
		return in.Install.Spec.Admission.Release.Bundle
	}
	csv, _ := in.Cluster.InstalledOrAdoptable(in.Install.Spec.Admission.Release.Package)
	return csv.Name
}

// isAsInstalled reports whether the release only adopts an existing operator and changes nothing.
func (in Input) isAsInstalled() bool {
	a := in.Install.Spec.Admission
	return a != nil && a.Release.AsInstalled
}

// isAccepted reports whether a person accepts a finding about the operator that is adopted.
func (in Input) isAccepted(reason v1alpha1.AcceptedFinding) bool {
	adopt := in.Install.Spec.Admission.Release.Adopt
	return adopt != nil && slices.Contains(adopt.Accept, reason)
}

// InstalledOrAdoptable returns the installed CSV. If the operator's Subscription has no CSV, it returns the CSV of
// another owner's Subscription to the package, or else a CSV of the package that no Subscription names; false if
// there is none.
func (c Cluster) InstalledOrAdoptable(pkg string) (CSV, bool) {
	if csv, ok := c.Installed(); ok {
		return csv, true
	}
	isReferenced := map[string]bool{}
	for _, s := range c.Subscriptions {
		if csv, ok := c.findCSV(cmp.Or(s.InstalledCSV, s.CurrentCSV)); ok && !s.IsOwn && s.Package == pkg {
			return csv, true
		}
		isReferenced[s.InstalledCSV], isReferenced[s.CurrentCSV] = true, true
	}
	for _, csv := range c.CSVs {
		if csv.IsOfPackage && !isReferenced[csv.Name] && !csv.isEnding() {
			return csv, true
		}
	}
	return CSV{}, false
}

// findOperator returns the operator that is to be adopted, from everything that OLM has on the cluster: the operator
// that subscribes to the package, or else an operator whose CSV is a version of the package; nil if there is none.
func (in Input) findOperator() *v1alpha1.FoundOperator {
	if in.Cluster.Found == nil || in.Offer.Package == nil {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	var byCSV *v1alpha1.FoundOperator
	for i := range in.Cluster.Found.Operators {
		o := &in.Cluster.Found.Operators[i]
		switch {
		case o.Namespace != release.TargetNamespace():
			// an operator in another namespace is not adopted
		case o.Subscription != nil && o.Subscription.Package == release.Package:
			return o
		case o.CSV != nil && in.Offer.Package.Has(o.CSV.Name):
			byCSV = o
		}
	}
	return byCSV
}

// hasNothingToAdopt reports whether the release only adopts an existing operator, and there is none in any namespace.
// It reports false until the cluster and the catalog were read.
func (in Input) hasNothingToAdopt() bool {
	_, isInstalled := in.Cluster.InstalledOrAdoptable(in.Install.Spec.Admission.Release.Package)
	_, hasOwn := in.Cluster.findSubscription()
	return in.isAsInstalled() && in.Cluster.OLM && in.Cluster.Found != nil && in.Offer.Package != nil && !hasOwn &&
		!isInstalled && in.findOperator() == nil && len(in.Cluster.OtherNamespaces) == 0
}

// takeOver adopts an operator that another owner installed, if the release permits the adoption and no finding
// prevents it. The order of the steps makes sure that OLM changes nothing meanwhile:
//
//	Subscription taken over  ──▶ OLM has finished ──▶ view served ──▶ Subscription applied
//	 approval Manual              no InstallPlan       CatalogSource   its source is the
//	 previous state recorded      runs, the CSV        READY           view
//	                              is Succeeded
//
// The last two steps are the same for any install. A CSV without a Subscription gets a Subscription, as after the
// deletion of a Subscription.
func (d *decision) takeOver(in Input) *finding {
	release := in.Install.Spec.Admission.Release
	if sub, ok := in.Cluster.findSubscription(); ok {
		return in.awaitSettled(sub)
	}
	found := in.findOperator()
	if found == nil {
		return nil
	}
	if f := in.judgeAdoption(found); f != nil {
		return f
	}
	if in.Offer.Problem != nil || found.Subscription == nil {
		return nil // checkCatalog reports the problem; a CSV without a Subscription gets one in ensureSubscription
	}
	if in.Offer.Blocked != "" && !in.isAsInstalled() {
		return reportBlocked(in)
	}
	i := slices.IndexFunc(in.Cluster.Subscriptions, func(s Subscription) bool {
		return s.Name == found.Subscription.Name
	})
	if i < 0 {
		return reportAdoptionPending("The agent is about to read Subscription %s again.", found.Subscription.Name)
	}
	d.add(TakeOver, KindSubscription, in.Cluster.Subscriptions[i].Name, in.Cluster.Subscriptions[i].Object)
	return reportAdoptionPending("Subscription %s/%s is being taken over. What it was is recorded in it.",
		release.TargetNamespace(), found.Subscription.Name)
}

// reportAdoptionPending returns a finding for an adoption that continues soon.
func reportAdoptionPending(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonAdoptionPending, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}

// judgeAdoption returns why an operator cannot be adopted, from the most severe blocking finding of package adoption;
// nil if it can be adopted. An operator that cannot be judged now is not a problem, because the state passes.
func (in Input) judgeAdoption(found *v1alpha1.FoundOperator) *finding {
	operator, release := in.Install.Spec.Operator, in.Install.Spec.Admission.Release
	if found.Managed && found.Operator != nil && *found.Operator != operator {
		return &finding{stalled: true, reason: v1alpha1.ReasonNotAdoptable, recheck: recheckProblem,
			message: fmt.Sprintf("Bellwether manages the operator for ManagedOperator %s/%s. Let that leave the "+
				"cluster first, with the removal policy Orphan.", found.Operator.Namespace, found.Operator.Name)}
	}
	key := types.NamespacedName{Namespace: operator.Namespace, Name: operator.Name}
	verdict := adoption.Judge(adoption.Input{Found: found, Scan: in.Cluster.Found, Known: adoption.Known{
		Packages: []adoption.Package{*in.Offer.Package}, All: []types.NamespacedName{key},
		Operators: []adoption.Operator{{Catalog: in.Offer.Package.Catalog, Config: release.Install.Config,
			Claim: engines.Claim{Key: key, Package: release.Package, Namespace: release.TargetNamespace(),
				AllNamespaces: release.Install.Mode != v1alpha1.InstallOwnNamespace}}}}})
	var accept []v1alpha1.AcceptedFinding
	if release.Adopt != nil {
		accept = release.Adopt.Accept
	}
	blocking := adoption.ListBlocking(verdict, accept)
	if len(blocking) == 0 {
		return nil
	}
	worst := blocking[0]
	f := &finding{stalled: true, reason: v1alpha1.ReasonNotAdoptable, message: worst.Message, recheck: recheckProblem}
	if worst.Class == adoption.Unknown {
		f.stalled, f.reason = false, v1alpha1.ReasonAdoptionPending
	}
	if len(worst.Choices) > 0 {
		f.message += " " + worst.Choices[0]
	}
	const field = "spec.adopt.accept"
	if worst.IsAcceptable() && !strings.Contains(f.message, field) {
		f.message += fmt.Sprintf(" Or add %s to %s of the ManagedOperator, to take it over as it is.", worst.Reason,
			field)
	}
	return f
}

// awaitSettled returns a finding until OLM has finished what it began before the Subscription was taken over. Until
// then, nothing else of the Subscription changes. It returns nil for a Subscription that was not adopted, or that
// already uses the view.
func (in Input) awaitSettled(sub Subscription) *finding {
	if sub.Adopted == nil || !sub.AwaitsView {
		return nil
	}
	const prefix = "Subscription %s is taken over, and is given the catalog view once "
	if remaining := settleAfter - in.Now.Sub(sub.Adopted.Since.Time); remaining > 0 {
		f := reportAdoptionPending(prefix+"OLM has noticed that.", sub.Name)
		f.recheck = min(remaining, settleAfter)
		return f
	}
	if p := in.findRunningPlan(); p != nil {
		f := reportAdoptionPending(prefix+"InstallPlan %s has ended, which was approved before: it is %s.", sub.Name,
			p.Name,
			formatPhase(p.Phase))
		f.recheck = recheckProblem
		return f
	}
	csv, ok := in.Cluster.Installed()
	switch {
	case !ok:
		return in.reportNotInstalled(sub)
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) && !csv.Deleting:
		return nil
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed) && in.Now.Sub(csv.Since) >= csvFailedGrace:
		return &finding{stalled: true, reason: v1alpha1.ReasonCSVFailed, recheck: recheckProblem, message: fmt.Sprintf(
			prefix+"%s is Succeeded, and that has failed: %s", sub.Name, csv.Name, csv.Message)}
	}
	f := reportAdoptionPending(prefix+"%s is Succeeded: it is %s.", sub.Name, csv.Name, formatPhase(csv.Phase))
	f.recheck = recheckProblem
	return f
}

// reportNotInstalled returns the finding for an adopted Subscription without a CSV.
func (in Input) reportNotInstalled(sub Subscription) *finding {
	return &finding{stalled: true, reason: v1alpha1.ReasonNotAdoptable, recheck: recheckProblem, message: fmt.Sprintf(
		"Subscription %s/%s has no ClusterServiceVersion (status.installedCSV is %q), and nothing is installed by an "+
			"adoption. Delete the Subscription, and a ManagedOperator without spec.adopt installs the operator.",
		in.Install.Spec.Admission.Release.TargetNamespace(), sub.Name, sub.InstalledCSV)}
}

// findRunningPlan returns an approved InstallPlan of the namespace that OLM carries out, or will soon carry out; nil
// if there is none. A plan that stays without a phase never starts, so it does not count after inertAfter.
func (in Input) findRunningPlan() *InstallPlan {
	for i, p := range in.Cluster.InstallPlans {
		switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
		case operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseFailed:
			continue
		case operatorsv1alpha1.InstallPlanPhaseNone:
			if in.Now.Sub(p.Created) >= inertAfter { // olm.md, fact 4
				continue
			}
		}
		if p.Approved {
			return &in.Cluster.InstallPlans[i]
		}
	}
	return nil
}

// checkRunningPlan reports an InstallPlan that OLM carries out while only an adoption is admitted. Such a plan comes
// from another source, because the view has nothing new. Plans without an approval stay.
func (d *decision) checkRunningPlan(in Input) *finding {
	p := in.findRunningPlan()
	if p == nil {
		return nil
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem, message: fmt.Sprintf(
		"InstallPlan %s, which somebody approved, is %s.", p.Name, formatPhase(p.Phase))}
}

// restore plans to give an adopted Subscription back in its previous state. It plans one step in each pass, and
// returns a finding until all steps are done:
//  1. Wait for an InstallPlan that OLM carries out.
//  2. Delete the InstallPlans that OLM made from the view, because OLM would keep waiting for them.
//  3. Write the whole spec at once, so that OLM never combines the previous approval with the view.
//  4. Delete the CatalogSource. The Subscription is then not the operator's own Subscription.
//
// It returns nil at once for a Subscription that Bellwether installed.
func (d *decision) restore(in Input) *finding {
	if ns := in.Cluster.Namespace; !in.Cluster.OLM || !ns.Exists || ns.Terminating {
		return nil
	}
	source := in.Cluster.CatalogSource
	sub, ok := in.Cluster.findSubscription()
	switch {
	case ok && sub.Adopted == nil:
		return nil // Bellwether installed it
	case !ok:
		if source != nil && source.Managed {
			d.add(Delete, KindCatalogSource, source.Name, source.Object)
		}
		return nil
	}
	if p := in.findRunningPlan(); p != nil {
		f := reportRestoring("Subscription %s is given back once InstallPlan %s has ended.", sub.Name, p.Name)
		f.recheck = recheckProblem
		return f
	}
	for _, p := range in.Cluster.InstallPlans {
		if in.isFromView(p) {
			d.add(Delete, KindInstallPlan, p.Name, p.Object)
		}
	}
	switch {
	case len(d.Actions) > 0:
		return reportRestoring("InstallPlans of the catalog view are being deleted.")
	case sub.Awaits != "" && !in.hasPlan(sub.Awaits):
		d.planReset(in, sub)
		return reportRestoring("Subscription %s waits for an InstallPlan that was deleted; it is made to forget that.",
			sub.Name)
	}
	d.add(GiveBack, KindSubscription, sub.Name, sub.Object)
	return reportRestoring("Subscription %s is being given back as it was.", sub.Name)
}

// isFromView reports whether at least one source of a plan is the view, and OLM has not completed the plan.
func (in Input) isFromView(p InstallPlan) bool {
	if p.Phase == string(operatorsv1alpha1.InstallPlanPhaseComplete) || in.Cluster.CatalogSource == nil {
		return false
	}
	return len(in.listForeignSources(p)) < len(p.Sources)
}

// reportRestoring returns a finding for a restore that continues soon.
func reportRestoring(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonRestoring, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}
