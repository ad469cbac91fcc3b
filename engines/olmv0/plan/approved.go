// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// isStale reports whether a plan must be deleted, so that OLM makes another plan. A plan that waits for approval, or
// that failed, is stale if it is outdated. A plan that OLM carries out or has carried out is not stale. A plan that was
// approved before OLM requested the approval never starts, so it is stale after inertAfter (olm.md, fact 4).
func (in Input) isStale(p InstallPlan) bool {
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
		return !p.Approved && in.isOutdated(p)
	default:
		// OLM carries out a failed plan again if it has already created the CSV of the last hop.
		csv, ok := in.Cluster.Installed()
		isPartlyInstalled := ok && in.Offer.Next == "" && slices.Contains(p.CSVs, csv.Name)
		return !isPartlyInstalled && in.isOutdated(p)
	}
}

// isOutdated reports whether a plan that OLM does not carry out must be replaced by another plan, for one of two
// reasons:
//   - The plan has a CSV of another package whose Subscription was deleted.
//   - The plan is not what was admitted, or not what the view serves. Such a plan stays if it also has CSVs of other
//     packages, because it may be needed for the other operators; approvePlan reports it.
func (in Input) isOutdated(p InstallPlan) bool {
	isForNext := func(s StepSource) bool { return s.CSV == in.Offer.Next }
	isWrong := !in.isAdmitted(p) || in.needsRecreation(p) || slices.ContainsFunc(in.listForeignSources(p), isForNext)
	isUnsubscribed := in.hasUnsubscribedCSV(p) && !in.isNew(p)
	return isUnsubscribed || isWrong && len(in.listForeignCSVs(p)) == 0
}

// needsRecreation reports whether a plan must be deleted because its steps differ from what is served, so that OLM
// makes another plan. The first differing plan is deleted once it is compareGrace old. Each later one is deleted once
// it is replanAfter old, because OLM may make several plans from an earlier view. A plan that OLM has begun to
// install stays: OLM makes no other plan for a CSV that exists.
func (in Input) needsRecreation(p InstallPlan) bool {
	minAge := compareGrace
	if p.IsRepeated {
		minAge = replanAfter
	}
	return p.Difference != "" && in.Now.Sub(p.Created) >= minAge && !in.hasBegun(p)
}

// hasBegun reports whether OLM has begun to install what a plan contains: the plan failed and one of its CSVs exists,
// or the plan has the CSV of the next hop and this CSV exists.
func (in Input) hasBegun(p InstallPlan) bool {
	isFailed := p.Phase == string(operatorsv1alpha1.InstallPlanPhaseFailed)
	return slices.ContainsFunc(p.CSVs, func(name string) bool {
		return (isFailed || name == in.Offer.Next) && in.hasCSV(name)
	})
}

// listForeignSources returns the sources of a plan other than the view. Bundles of such a source may have the names of
// admitted bundles and other content. OLM takes dependencies from any CatalogSource, but the next hop only from the
// CatalogSource of the Subscription.
func (in Input) listForeignSources(p InstallPlan) []StepSource {
	return slices.DeleteFunc(slices.Clone(p.Sources), func(s StepSource) bool {
		view := in.Cluster.CatalogSource
		return view != nil && s.Name == view.Name &&
			s.Namespace == in.Install.Spec.Admission.Release.TargetNamespace()
	})
}

// isNew reports whether OLM made a plan so recently that it may not have recorded yet which Subscriptions the plan
// is for.
func (in Input) isNew(p InstallPlan) bool { return in.Now.Sub(p.Created) < subscribeGrace }

// hasUnsubscribedCSV reports whether a plan has a CSV of another package whose Subscription was deleted: no
// Subscription names the CSV, and the plan does not create a Subscription for it.
func (in Input) hasUnsubscribedCSV(p InstallPlan) bool {
	return slices.ContainsFunc(in.listForeignCSVs(p), func(csv string) bool {
		return !slices.Contains(p.Subscribes, csv) &&
			!slices.ContainsFunc(in.Cluster.Subscriptions, func(s Subscription) bool { return s.CurrentCSV == csv })
	})
}

// isAdmitted reports whether a plan has exactly what was admitted: the next hop and its dependencies, and
// nothing else.
func (in Input) isAdmitted(p InstallPlan) bool {
	if in.Offer.Next == "" || !slices.Contains(p.CSVs, in.Offer.Next) {
		return false
	}
	return len(in.listUnadmittedCSVs(p)) == 0
}

// listUnadmittedCSVs returns the CSVs of a plan that were not admitted.
func (in Input) listUnadmittedCSVs(p InstallPlan) []string {
	var names []string
	for _, name := range p.CSVs {
		if !slices.Contains(in.Offer.Admitted, name) {
			names = append(names, name)
		}
	}
	return names
}

// listForeignCSVs returns the CSVs of a plan that belong neither to this package nor to its dependencies.
func (in Input) listForeignCSVs(p InstallPlan) []string {
	return slices.DeleteFunc(in.listUnadmittedCSVs(p), func(name string) bool {
		_, isOfPackage := in.Offer.Versions[name]
		return isOfPackage
	})
}

// approvePlan approves the pending InstallPlan if it has exactly what was admitted and its steps were compared with
// what is served. It makes OLM retry a failed plan. It returns a finding about the plan in any case, and nil only if
// there is no pending plan. A plan that is already approved is not checked for other CSVs and sources, because OLM
// carries it out.
func (d *decision) approvePlan(in Input) *finding {
	p := in.findPendingPlan()
	if p == nil {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	if foreignCSVs := in.listForeignCSVs(*p); len(foreignCSVs) > 0 && !p.Approved {
		if in.isNew(*p) && in.hasUnsubscribedCSV(*p) { // OLM writes the Subscription after the plan
			return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
				"InstallPlan %s/%s, which OLM has just made, also holds %s, and no Subscription asks for that yet. "+
					"The agent waits up to %s for OLM to record which one does.",
				release.TargetNamespace(), p.Name, strings.Join(foreignCSVs, ", "), subscribeGrace)}
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem,
			message: fmt.Sprintf(
				"InstallPlan %s/%s also holds %s, which no rollout admitted; it is not approved. Remove the "+
					"Subscription of that operator, or give it a namespace of its own.",
				release.TargetNamespace(), p.Name, strings.Join(foreignCSVs, ", "))}
	}
	if foreignSources := in.listForeignSources(*p); len(foreignSources) > 0 && !p.Approved {
		return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem,
			message: fmt.Sprintf(
				"InstallPlan %s/%s would install %s from the CatalogSource %s instead of the catalog view; it is not "+
					"approved. Remove that CatalogSource, or what it offers, and delete the InstallPlan.",
				release.TargetNamespace(), p.Name, foreignSources[0].CSV, foreignSources[0])}
	}
	if p.Difference != "" {
		return in.reportDifferingPlan(*p)
	}
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return d.retryFailedPlan(in, *p)
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		if !p.Approved && p.Compared && in.isAdmitted(*p) && in.canApprove(*p) {
			d.add(Approve, KindInstallPlan, p.Name, p.Object)
		}
	}
	message := fmt.Sprintf("InstallPlan %s is %s.", p.Name, formatPhase(p.Phase))
	if p.Message != "" {
		message = fmt.Sprintf("InstallPlan %s is %s: %s.", p.Name, formatPhase(p.Phase),
			strings.TrimSuffix(p.Message, "."))
	}
	return &finding{reason: v1alpha1.ReasonProgressing, message: message, recheck: recheckProblem}
}

// reportDifferingPlan returns the finding for a plan whose content differs from the view. The first differing plan is
// not a problem: it is deleted soon. A repeated difference, an approved plan and a partly installed plan are
// problems.
func (in Input) reportDifferingPlan(p InstallPlan) *finding {
	name := in.Install.Spec.Admission.Release.TargetNamespace() + "/" + p.Name
	isPartlyInstalled := in.hasBegun(p)
	if !p.IsRepeated && !p.Approved && !isPartlyInstalled {
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"InstallPlan %s is not approved: %s. It is deleted, and OLM makes another one of what is served.",
			name, p.Difference)}
	}
	message := fmt.Sprintf("InstallPlan %s does not install what is served, and OLM is not made to carry it out: %s.",
		name, p.Difference)
	if p.Failure != "" {
		message += fmt.Sprintf(" It failed %s.", strings.TrimSuffix(p.Failure, "."))
	}
	message += " Either somebody changes InstallPlans, or OLM makes them of something else than the catalog view."
	switch {
	case isPartlyInstalled:
		message += " What it installs is partly there, so OLM makes no other one: admit another version."
	case len(in.listForeignCSVs(p)) > 0:
		message += " Delete it, and OLM makes another one."
	default:
		message += fmt.Sprintf(" It is deleted about %s after OLM made it, and OLM makes another one.",
			replanAfter)
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem, message: message}
}

// formatPhase returns a phase for a message; "new" if it is empty.
func formatPhase(phase string) string {
	if phase == "" {
		return "new"
	}
	return phase
}

// retryFailedPlan reports the failed step and makes OLM try it again (olm.md, fact 17). It waits after the
// failure as long as the plan took from the admission to the failure, at least retryPlanMin and at most retryPlanMax. A
// plan whose steps were not compared with the catalog view is not tried again. The plan is set back to Installing and
// not deleted: OLM makes no other plan for a CSV that exists, and one of the first steps creates the CSV.
func (d *decision) retryFailedPlan(in Input, p InstallPlan) *finding {
	triedFor := p.FailedAt.Sub(in.Install.Spec.Admission.AdmittedAt.Time)
	retryAfter := min(max(triedFor, retryPlanMin), retryPlanMax)
	remaining := p.FailedAt.Add(retryAfter).Sub(in.Now)
	if !p.Compared {
		return &finding{stalled: true, reason: v1alpha1.ReasonPlanFailed, recheck: recheckProblem, message: fmt.Sprintf(
			"InstallPlan %s failed %s. It is tried again once the catalog can be read.",
			p.Name, strings.TrimSuffix(p.Failure, "."))}
	}
	if remaining <= 0 {
		d.add(Retry, KindInstallPlan, p.Name, p.Object)
		remaining = recheckSoon
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonPlanFailed, recheck: min(remaining, recheckSteady),
		message: fmt.Sprintf(
			"InstallPlan %s failed %s. Correct that, or admit another version. It is tried again %s after it failed.",
			p.Name, strings.TrimSuffix(p.Failure, "."), retryAfter.Round(time.Second))}
}
