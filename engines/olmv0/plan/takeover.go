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
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/engines/claim"
)

// target is the bundle that the install is to run: the admitted one or, where what others installed is adopted and no
// more, the one that is there. It is empty where that is none.
func (in Input) target() string {
	if !in.isAsInstalled() {
		return in.Install.Spec.Admission.Release.Bundle
	}
	csv, _ := in.Cluster.InstalledOrAdoptable(in.Install.Spec.Admission.Release.Package)
	return csv.Name
}

// isAsInstalled tells whether the release is to adopt what is there, and goes no further.
func (in Input) isAsInstalled() bool {
	a := in.Install.Spec.Admission
	return a != nil && a.Release.AsInstalled
}

// accepts tells whether a person accepts a finding about what is adopted.
func (in Input) accepts(reason v1alpha1.AcceptedFinding) bool {
	adopt := in.Install.Spec.Admission.Release.Adopt
	return adopt != nil && slices.Contains(adopt.Accept, reason)
}

// InstalledOrAdoptable returns the installed CSV or, where no Subscription of the operator names one, the CSV of the
// package that somebody else has installed.
func (c Cluster) InstalledOrAdoptable(pkg string) (CSV, bool) {
	if csv, ok := c.Installed(); ok {
		return csv, true
	}
	referred := map[string]bool{}
	for _, s := range c.Subscriptions {
		if csv, ok := c.csv(cmp.Or(s.InstalledCSV, s.CurrentCSV)); ok && !s.Ours && s.Package == pkg {
			return csv, true
		}
		referred[s.InstalledCSV], referred[s.CurrentCSV] = true, true
	}
	for _, csv := range c.CSVs {
		if csv.Ours && !referred[csv.Name] && !csv.isEnding() {
			return csv, true
		}
	}
	return CSV{}, false
}

// foundOperator returns the operator that is to be adopted, among everything that OLM has on the cluster: the one that
// subscribes to the package, or one whose CSV is a version of it; nil where there is none.
func (in Input) foundOperator() *v1alpha1.FoundOperator {
	if in.Cluster.Found == nil || in.Offer.Package == nil {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	var version *v1alpha1.FoundOperator
	for i := range in.Cluster.Found.Operators {
		o := &in.Cluster.Found.Operators[i]
		switch {
		case o.Namespace != release.TargetNamespace():
		case o.Subscription != nil && o.Subscription.Package == release.Package:
			return o
		case o.CSV != nil && in.Offer.Package.Has(o.CSV.Name):
			version = o
		}
	}
	return version
}

// hasNothing tells whether the release is to adopt what is there, and there is nothing.
func (in Input) hasNothing() bool {
	_, isThere := in.Cluster.InstalledOrAdoptable(in.Install.Spec.Admission.Release.Package)
	_, isOurs := in.Cluster.subscription()
	return in.isAsInstalled() && in.Cluster.OLM && in.Cluster.Found != nil && in.Offer.Package != nil && !isOurs &&
		!isThere && in.foundOperator() == nil && len(in.Cluster.Elsewhere) == 0
}

// takeOver adopts an operator that somebody else installed, if the release permits that and nothing is against it. It
// takes these steps, so that OLM does nothing meanwhile that was not asked for:
//
//	Subscription taken over ──▶ OLM has finished ──▶ view served ──▶ Subscription applied
//	 approval Manual             no InstallPlan       CatalogSource   its source is the
//	 what it was is recorded     runs, the CSV        READY           view from now on
//	                             is Succeeded
//
// The last two are those of any install. A CSV without a Subscription gets one, as after a Subscription was deleted.
func (d *decision) takeOver(in Input) *finding {
	release := in.Install.Spec.Admission.Release
	if sub, ok := in.Cluster.subscription(); ok {
		return in.settling(sub)
	}
	found := in.foundOperator()
	if found == nil {
		return nil
	}
	if f := in.judge(found); f != nil {
		return f
	}
	if in.Offer.Problem != nil || found.Subscription == nil {
		return nil
	}
	if in.Offer.Blocked != "" && !in.isAsInstalled() {
		return blocked(in)
	}
	i := slices.IndexFunc(in.Cluster.Subscriptions, func(s Subscription) bool {
		return s.Name == found.Subscription.Name
	})
	if i < 0 {
		return adoptionPending("The agent is about to read Subscription %s again.", found.Subscription.Name)
	}
	d.add(TakeOver, KindSubscription, in.Cluster.Subscriptions[i].Name, in.Cluster.Subscriptions[i].Object)
	return adoptionPending("Subscription %s/%s is being taken over. What it was is recorded in it.",
		release.TargetNamespace(), found.Subscription.Name)
}

func adoptionPending(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonAdoptionPending, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}

// judge says what stands in the way of an adoption; nil where that is nothing.
func (in Input) judge(found *v1alpha1.FoundOperator) *finding {
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
			Claim: claim.Claim{Key: key, Package: release.Package, Namespace: release.TargetNamespace(),
				AllNamespaces: release.Install.Mode != v1alpha1.InstallOwnNamespace}}}}})
	var accept []v1alpha1.AcceptedFinding
	if release.Adopt != nil {
		accept = release.Adopt.Accept
	}
	blocking := adoption.Blocking(verdict, accept)
	if len(blocking) == 0 {
		return nil
	}
	first := blocking[0]
	f := &finding{stalled: true, reason: v1alpha1.ReasonNotAdoptable, message: first.Message, recheck: recheckProblem}
	if first.Class == adoption.Unknown {
		f.stalled, f.reason = false, v1alpha1.ReasonAdoptionPending
	}
	if len(first.Choices) > 0 {
		f.message += " " + first.Choices[0]
	}
	const field = "spec.adopt.accept"
	if first.IsAcceptable() && !strings.Contains(f.message, field) {
		f.message += fmt.Sprintf(" Or add %s to %s of the ManagedOperator, to take it over as it is.", first.Reason,
			field)
	}
	return f
}

// settling waits, after a Subscription was taken over and before anything else of it changes, until OLM has finished
// what it had begun.
func (in Input) settling(sub Subscription) *finding {
	if sub.Adopted == nil || !sub.AwaitsView {
		return nil
	}
	const taken = "Subscription %s is taken over, and is given the catalog view once "
	if left := settleAfter - in.Now.Sub(sub.Adopted.Since.Time); left > 0 {
		f := adoptionPending(taken+"OLM has noticed that.", sub.Name)
		f.recheck = min(left, settleAfter)
		return f
	}
	if p := in.underWay(); p != nil {
		f := adoptionPending(taken+"InstallPlan %s has ended, which was approved before: it is %s.", sub.Name, p.Name,
			phaseName(p.Phase))
		f.recheck = recheckProblem
		return f
	}
	csv, ok := in.Cluster.Installed()
	switch {
	case !ok:
		return in.notInstalled(sub)
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) && !csv.Deleting:
		return nil
	case csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed) && in.Now.Sub(csv.Since) >= csvFailedGrace:
		return &finding{stalled: true, reason: v1alpha1.ReasonCSVFailed, recheck: recheckProblem, message: fmt.Sprintf(
			taken+"%s is Succeeded, and that has failed: %s", sub.Name, csv.Name, csv.Message)}
	}
	f := adoptionPending(taken+"%s is Succeeded: it is %s.", sub.Name, csv.Name, phaseName(csv.Phase))
	f.recheck = recheckProblem
	return f
}

// notInstalled is about a Subscription of the operator without a CSV, where nothing is to be installed.
func (in Input) notInstalled(sub Subscription) *finding {
	return &finding{stalled: true, reason: v1alpha1.ReasonNotAdoptable, recheck: recheckProblem, message: fmt.Sprintf(
		"Subscription %s/%s has no ClusterServiceVersion (status.installedCSV is %q), and nothing is installed by an "+
			"adoption. Delete the Subscription, and a ManagedOperator without spec.adopt installs the operator.",
		in.Install.Spec.Admission.Release.TargetNamespace(), sub.Name, sub.InstalledCSV)}
}

// underWay returns an InstallPlan of the namespace that OLM carries out, or is about to; nil where there is none.
func (in Input) underWay() *InstallPlan {
	for i, p := range in.Cluster.InstallPlans {
		switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
		case operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseFailed:
			continue
		case operatorsv1alpha1.InstallPlanPhaseNone:
			if in.Now.Sub(p.Created) >= inertAfter { // it never starts (olm.md, fact 4)
				continue
			}
		}
		if p.Approved {
			return &in.Cluster.InstallPlans[i]
		}
	}
	return nil
}

// planUnderWay reports an InstallPlan that OLM carries out while nothing but an adoption is admitted. Others made it,
// as the view has nothing new. Those that nobody approved stay.
func (d *decision) planUnderWay(in Input) *finding {
	p := in.underWay()
	if p == nil {
		return nil
	}
	return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckProblem, message: fmt.Sprintf(
		"InstallPlan %s, which somebody approved, is %s.", p.Name, phaseName(p.Phase))}
}

// restore gives an adopted Subscription back as it was. InstallPlans that OLM made of the view go first: OLM would go
// on waiting for them. Then the whole spec is written in one step, so that OLM never sees the approval of before with
// the view, and last the CatalogSource goes. It returns nil when that is done.
func (d *decision) restore(in Input) *finding {
	if ns := in.Cluster.Namespace; !in.Cluster.OLM || !ns.Exists || ns.Terminating {
		return nil
	}
	source := in.Cluster.CatalogSource
	sub, ok := in.Cluster.subscription()
	switch {
	case ok && sub.Adopted == nil:
		return nil // others did not install it
	case !ok:
		if source != nil && source.Managed {
			d.add(Delete, KindCatalogSource, source.Name, source.Object)
		}
		return nil
	}
	if p := in.underWay(); p != nil {
		f := restoring("Subscription %s is given back once InstallPlan %s has ended.", sub.Name, p.Name)
		f.recheck = recheckProblem
		return f
	}
	for _, p := range in.Cluster.InstallPlans {
		if in.isOfView(p) {
			d.add(Delete, KindInstallPlan, p.Name, p.Object)
		}
	}
	switch {
	case len(d.Actions) > 0:
		return restoring("InstallPlans of the catalog view are being deleted.")
	case sub.Awaits != "" && !in.exists(sub.Awaits):
		d.reset(in, sub)
		return restoring("Subscription %s waits for an InstallPlan that was deleted; it is made to forget that.",
			sub.Name)
	}
	d.add(GiveBack, KindSubscription, sub.Name, sub.Object)
	return restoring("Subscription %s is being given back as it was.", sub.Name)
}

// isOfView tells whether OLM made a plan of the view and has not carried it out.
func (in Input) isOfView(p InstallPlan) bool {
	if p.Phase == string(operatorsv1alpha1.InstallPlanPhaseComplete) || in.Cluster.CatalogSource == nil {
		return false
	}
	return len(in.foreignSources(p)) < len(p.Sources)
}

func restoring(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonRestoring, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}
