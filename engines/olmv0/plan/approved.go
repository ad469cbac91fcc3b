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

// isStale tells whether a plan is for another version of this package than the
// admitted one. A plan that OLM carries out is left to finish; a plan that was
// approved before OLM required it never starts (olm.md, fact 4).
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
		// One that failed half way has its CSV there and is tried again.
		csv, ok := in.Cluster.Installed()
		halfway := ok && in.Offer.Next == "" && slices.Contains(p.CSVs, csv.Name)
		return !halfway && in.isOutdated(p)
	}
}

// isOutdated tells whether OLM would not make this plan again.
func (in Input) isOutdated(p InstallPlan) bool {
	ofNext := func(s StepSource) bool { return s.CSV == in.Offer.Next }
	isWrong := !in.isAdmitted(p) || in.isToBeMadeAgain(p) || slices.ContainsFunc(in.foreignSources(p), ofNext)
	return in.hasUnsubscribed(p) && !in.isNew(p) || isWrong && len(in.ofOtherPackages(p)) == 0
}

// isToBeMadeAgain tells whether a plan is to be deleted because it differs from what is served. OLM may have made it
// from an earlier view, and may do so again for a while. It makes none for a CSV that exists.
func (in Input) isToBeMadeAgain(p InstallPlan) bool {
	after := subscribeGrace // OLM may have read a view that the agent does not know yet
	if p.Repeats {
		after = replanAfter
	}
	return p.Differs != "" && in.Now.Sub(p.Created) >= after && !in.hasBegun(p)
}

// hasBegun tells whether a plan that failed has installed a CSV before, or another one the next hop.
func (in Input) hasBegun(p InstallPlan) bool {
	isFailed := p.Phase == string(operatorsv1alpha1.InstallPlanPhaseFailed)
	return slices.ContainsFunc(p.CSVs, func(name string) bool {
		return (isFailed || name == in.Offer.Next) && in.hasCSV(name)
	})
}

// foreignSources returns the steps of a plan that do not come from the view. What they install may have the names of
// what was admitted, and any content. OLM takes dependencies from any CatalogSource, but the next hop from that of
// the Subscription only.
func (in Input) foreignSources(p InstallPlan) []StepSource {
	return slices.DeleteFunc(slices.Clone(p.Sources), func(s StepSource) bool {
		view := in.Cluster.CatalogSource
		return view != nil && s.Name == view.Name &&
			s.Namespace == in.Install.Spec.Admission.Release.TargetNamespace()
	})
}

// isNew tells whether OLM made a plan so recently that it may not have recorded yet which Subscriptions it is for.
func (in Input) isNew(p InstallPlan) bool { return in.Now.Sub(p.Created) < subscribeGrace }

// hasUnsubscribed tells whether a plan holds a CSV whose Subscription is gone:
// nothing subscribes to it, and the plan does not create a Subscription for it.
func (in Input) hasUnsubscribed(p InstallPlan) bool {
	return slices.ContainsFunc(in.ofOtherPackages(p), func(csv string) bool {
		return !slices.Contains(p.Subscribes, csv) &&
			!slices.ContainsFunc(in.Cluster.Subscriptions, func(s Subscription) bool { return s.CurrentCSV == csv })
	})
}

// isAdmitted tells whether a plan holds exactly what was admitted: the next hop
// and nothing that it does not need.
func (in Input) isAdmitted(p InstallPlan) bool {
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

// ofOtherPackages returns the CSVs of a plan that belong to neither this package nor
// what it depends on.
func (in Input) ofOtherPackages(p InstallPlan) []string {
	return slices.DeleteFunc(in.unadmitted(p), func(name string) bool {
		_, ours := in.Offer.Versions[name]
		return ours
	})
}

func (d *decision) planApproved(in Input) *finding {
	p := in.pending()
	if p == nil {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	if others := in.ofOtherPackages(*p); len(others) > 0 && !p.Approved {
		if in.isNew(*p) && in.hasUnsubscribed(*p) {
			return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
				"InstallPlan %s/%s, which OLM has just made, also holds %s, and no Subscription asks for that yet. "+
					"The agent waits up to %s for OLM to record which one does.",
				release.TargetNamespace(), p.Name, strings.Join(others, ", "), subscribeGrace)}
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem,
			message: fmt.Sprintf(
				"InstallPlan %s/%s also holds %s, which no rollout admitted; it is not approved. Remove the "+
					"Subscription of that operator, or give it a namespace of its own.",
				release.TargetNamespace(), p.Name, strings.Join(others, ", "))}
	}
	if foreign := in.foreignSources(*p); len(foreign) > 0 && !p.Approved {
		return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem,
			message: fmt.Sprintf(
				"InstallPlan %s/%s would install %s from the CatalogSource %s instead of the catalog view; it is not "+
					"approved. Remove that CatalogSource, or what it offers, and delete the InstallPlan.",
				release.TargetNamespace(), p.Name, foreign[0].CSV, foreign[0])}
	}
	if p.Differs != "" {
		return in.planDiffers(*p)
	}
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return d.planFailed(in, *p)
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		if !p.Approved && p.Compared && in.isAdmitted(*p) && in.mayApprove(*p) {
			d.add(Approve, KindInstallPlan, p.Name, p.Object)
		}
	}
	message := fmt.Sprintf("InstallPlan %s is %s.", p.Name, phaseName(p.Phase))
	if p.Message != "" {
		message = fmt.Sprintf("InstallPlan %s is %s: %s.", p.Name, phaseName(p.Phase),
			strings.TrimSuffix(p.Message, "."))
	}
	return &finding{reason: v1alpha1.ReasonProgressing, message: message, recheck: recheckProblem}
}

// planDiffers reports a plan that would install something else than the view serves.
func (in Input) planDiffers(p InstallPlan) *finding {
	name := in.Install.Spec.Admission.Release.TargetNamespace() + "/" + p.Name
	isThere := in.hasBegun(p)
	if !p.Repeats && !p.Approved && !isThere {
		return &finding{reason: v1alpha1.ReasonProgressing, recheck: recheckSoon, message: fmt.Sprintf(
			"InstallPlan %s is not approved: %s. It is deleted, and OLM makes another one of what is served.",
			name, p.Differs)}
	}
	message := fmt.Sprintf("InstallPlan %s does not install what is served, and OLM is not made to carry it out: %s.",
		name, p.Differs)
	if p.Failure != "" {
		message += fmt.Sprintf(" It failed %s.", strings.TrimSuffix(p.Failure, "."))
	}
	message += " Either somebody changes InstallPlans, or OLM makes them of something else than the catalog view."
	switch {
	case isThere:
		message += " What it installs is partly there, so OLM makes no other one: admit another version."
	case len(in.ofOtherPackages(p)) > 0:
		message += " Delete it, and OLM makes another one."
	default:
		message += fmt.Sprintf(" It is deleted about %s after OLM made it, and OLM makes another one.",
			replanAfter)
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem, message: message}
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
func (d *decision) planFailed(in Input, p InstallPlan) *finding {
	tried := p.FailedAt.Sub(in.Install.Spec.Admission.AdmittedAt.Time)
	wait := min(max(tried, retryPlanMin), retryPlanMax)
	due := p.FailedAt.Add(wait).Sub(in.Now)
	if !p.Compared {
		return &finding{stalled: true, reason: v1alpha1.ReasonPlanFailed, recheck: recheckProblem, message: fmt.Sprintf(
			"InstallPlan %s failed %s. It is tried again once the catalog can be read.",
			p.Name, strings.TrimSuffix(p.Failure, "."))}
	}
	if due <= 0 {
		d.add(Retry, KindInstallPlan, p.Name, p.Object)
		due = recheckSoon
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonPlanFailed, recheck: min(due, recheckSteady),
		message: fmt.Sprintf(
			"InstallPlan %s failed %s. Correct that, or admit another version. It is tried again %s after it failed.",
			p.Name, strings.TrimSuffix(p.Failure, "."), wait.Round(time.Second))}
}
