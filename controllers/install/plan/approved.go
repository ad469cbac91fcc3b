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
		return &finding{stalled: true, reason: v1alpha1.ReasonUnadmittedPlan, recheck: recheckProblem,
			message: fmt.Sprintf(
				"InstallPlan %s/%s also holds %s, which no rollout admitted; it is not approved. Remove the "+
					"Subscription "+
					"that asks for it, or give that operator a namespace of its own.",
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
		message = fmt.Sprintf("InstallPlan %s is %s: %s.", p.Name, phaseName(p.Phase),
			strings.TrimSuffix(p.Message, "."))
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
	return &finding{stalled: true, reason: v1alpha1.ReasonPlanFailed, recheck: min(due, recheckSteady),
		message: fmt.Sprintf(
			"InstallPlan %s failed %s. Put that right, or admit another version. It is tried again %s after it failed.",
			p.Name, strings.TrimSuffix(p.Failure, "."), wait.Round(time.Second))}
}
