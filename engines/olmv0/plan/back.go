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

// goesBack tells whether the admission asks to go back to an older version.
func (in Input) goesBack() bool {
	admission := in.Install.Spec.Admission
	return admission != nil && admission.Rollback != nil
}

// isLeaving tells whether OLM carries out an upgrade of the installed CSV that an
// earlier admission began, and that this one takes back.
func (in Input) isLeaving(installed CSV) bool {
	if !in.goesBack() {
		return false
	}
	p := in.pending()
	begun := p != nil && p.Approved && !slices.Contains(p.CSVs, installed.Name) && len(in.ofOtherPackages(*p)) == 0
	return begun || in.isReplaced(installed.Name)
}

// withdraw takes an unfinished upgrade back, where the version before it is still
// there: OLM makes no plan for a CSV that exists. What the two have in common is given
// back, the new CSV is deleted, and the one before it processed again, which is as it
// was or is made so. Definitions of custom resources stay as they are.
func (d *decision) withdraw(in Input) *finding {
	if !in.goesBack() {
		return nil
	}
	if before, csv, ok := in.unfinishedUpgrade(); ok {
		for _, p := range in.Cluster.InstallPlans {
			if p.Phase != string(operatorsv1alpha1.InstallPlanPhaseComplete) && slices.Contains(p.CSVs, csv.Name) {
				d.add(Delete, KindInstallPlan, p.Name, p.Object)
			}
		}
		if f := d.giveBack(in, before, csv); f != nil {
			return f
		}
		if !csv.Deleting {
			d.add(Delete, KindCSV, csv.Name, csv.Object)
		}
		return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon, message: fmt.Sprintf(
			"The upgrade to %s did not finish; it is withdrawn, and %s stays.", csv.Name, before.Name)}
	}
	before, ok := in.survivor()
	if !ok {
		return nil
	}
	if before.Phase == string(operatorsv1alpha1.CSVPhaseReplacing) {
		d.add(Reprocess, KindCSV, before.Name, before.Object)
	}
	d.adopt(in, before.Name)
	return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon,
		message: fmt.Sprintf("The upgrade of %s was withdrawn, so the agent has OLM resume that version.", before.Name)}
}

// giveBack has OLM make what the CSV before brought as that had it, and give it to that CSV. The plan of the upgrade
// gave what both bring to the new CSV alone, with which it would be deleted (olm.md, fact 26). It returns nil when that
// is done, or cannot be: the upgrade is withdrawn in any case.
func (d *decision) giveBack(in Input, before, csv CSV) *finding {
	p := in.Cluster.CarriedOut(before.Name)
	if p == nil || csv.Deleting {
		return nil
	}
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		if p.Completed.After(in.taken(csv)) {
			return nil
		}
		// OLM may be carrying out a plan of the upgrade that is deleted first.
		if !slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Verb == Delete }) {
			d.Actions = append(d.Actions, Action{Verb: Redo, Kind: KindInstallPlan, Name: p.Name, Object: p.Object,
				Value: before.Name})
		}
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		if p.Started.IsZero() || in.Now.Sub(p.Started) < redoPatience {
			break
		}
		fallthrough
	default:
		d.add(Delete, KindInstallPlan, p.Name, p.Object)
		return nil
	}
	return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon, message: fmt.Sprintf(
		"The upgrade to %s did not finish. Before it is withdrawn, OLM carries out InstallPlan %s again, so that the "+
			"Services and other objects of %s stay.", csv.Name, p.Name, before.Name)}
}

// CarriedOut returns the newest plan for a CSV that OLM has carried out, or does so or failed to; nil where there is
// none.
func (c Cluster) CarriedOut(csv string) *InstallPlan {
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

// taken returns when OLM last gave objects to a CSV, as far as that is known. All these times are OLM's and the API
// server's, in whole seconds.
func (in Input) taken(csv CSV) time.Time {
	last := csv.Created
	for _, p := range in.Cluster.InstallPlans {
		if slices.Contains(p.CSVs, csv.Name) && p.Completed.After(last) {
			last = p.Completed
		}
	}
	return last
}

// survivor returns the CSV that is left after an upgrade of it was withdrawn, until
// the Subscription names nothing else.
func (in Input) survivor() (CSV, bool) {
	sub, ok := in.Cluster.subscription()
	if !ok || in.pending() != nil {
		return CSV{}, false
	}
	if csv, ok := in.withoutSuccessor(); ok {
		return csv, true
	}
	if !in.namesNothing(sub) {
		return CSV{}, false
	}
	for _, csv := range in.Cluster.CSVs {
		_, ours := in.Offer.Versions[csv.Name]
		if ours && !csv.isEnding() && !in.isReplaced(csv.Name) {
			return csv, true
		}
	}
	return CSV{}, false
}

// namesNothing tells whether a Subscription names no CSV that is there. OLM resolves
// nothing then while a CSV of the package is there, which it takes for somebody
// else's (olm.md, fact 12).
func (in Input) namesNothing(sub Subscription) bool {
	named := cmp.Or(sub.CurrentCSV, sub.InstalledCSV)
	return !in.hasCSV(named) && (named != "" || sub.ResolutionFailed != "")
}

// unfinishedUpgrade returns a CSV of the package that OLM has not finished to
// install in the place of another one, and that one.
func (in Input) unfinishedUpgrade() (before, csv CSV, ok bool) {
	target := in.target()
	for _, csv := range in.Cluster.CSVs {
		_, ours := in.Offer.Versions[csv.Name]
		before, there := in.Cluster.csv(csv.Replaces)
		if ours && there && csv.Name != target && !csv.isFinished() {
			return before, csv, true
		}
	}
	return CSV{}, CSV{}, false
}

// detach removes spec.replaces of the installed CSV before OLM may see that the CSV
// is replaced by the very one that it names: the two would stay in Replacing for
// ever (olm.md, facts 6 and 7). It comes before the new view is served. An old CSV
// of the name that is still there goes first.
func (d *decision) detach(in Input) *finding {
	installed, ok := in.Cluster.Installed()
	if !ok || in.Offer.Next == "" || installed.Name == in.Offer.Next {
		return nil
	}
	next, there := in.Cluster.csv(in.Offer.Next)
	switch {
	case there && next.Replaces == installed.Name:
		return nil // OLM installs it
	case there && in.goesBack():
		return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckProblem, message: fmt.Sprintf(
			"Waiting for OLM to remove %s, which %s replaced, before it is installed again.", next.Name,
			installed.Name)}
	case there || installed.Replaces != in.Offer.Next:
		return nil
	}
	d.add(Detach, KindCSV, installed.Name, installed.Object)
	return &finding{reason: v1alpha1.ReasonRollingBack, recheck: recheckSoon, message: fmt.Sprintf(
		"spec.replaces of %s is removed, so that %s can be installed in its place.", installed.Name, in.Offer.Next)}
}

// mayApprove tells whether a plan is the one that OLM waits for now. A way back
// reuses the name of a CSV, and there may be old plans for that name.
func (in Input) mayApprove(p InstallPlan) bool {
	return !in.goesBack() || slices.ContainsFunc(in.Cluster.Subscriptions,
		func(s Subscription) bool { return s.Ours && s.Plan == p.UID })
}
