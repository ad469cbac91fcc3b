// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// objectStatus is the status that an object reports.
type objectStatus struct {
	// object is the name of the object as in Evidence.
	object     string
	generation int64
	observed   int64
	conditions []metav1.Condition
	// by is the program that writes the status.
	by remedy.Observer
}

// buildEvidence returns the evidence for a condition.
func (r objectStatus) buildEvidence(c metav1.Condition) []Evidence {
	observed := string(c.Status)
	if c.Reason != "" {
		observed += " " + c.Reason
	}
	if c.Message != "" {
		observed += ": " + phrase.OneLine(c.Message)
	}
	return []Evidence{{Object: r.object, Field: "condition " + c.Type, Observed: observed,
		Time: toTime(c.LastTransitionTime)}}
}

// checkOutdated returns a link with the state Progressing, and true, if the status belongs to an older spec. Otherwise
// it returns false.
func (r objectStatus) checkOutdated() (Link, bool) {
	if r.observed >= r.generation {
		return Link{}, false
	}
	text := fmt.Sprintf("the status of %s is about generation %d of the spec, and the spec has generation %d",
		r.object, r.observed, r.generation)
	return Link{State: Progressing, Reason: remedy.StatusOutdated, Text: text,
		Evidence: []Evidence{{Object: r.object, Field: "status.observedGeneration", Observed: fmt.Sprint(r.observed)},
			{Object: r.object, Field: "metadata.generation", Observed: fmt.Sprint(r.generation)}},
		stale: []Stale{{What: "the status of " + r.object, Why: text}}}, true
}

// degradingReasons are reasons of an object that still works.
var degradingReasons = []string{v1alpha1.ReasonDrifted, v1alpha1.ReasonRulesOutdated, v1alpha1.ReasonNoPrometheus,
	v1alpha1.ReasonPrometheusUnreachable, v1alpha1.ReasonProfileInvalid, v1alpha1.ReasonRetentionTooShort}

// failingReasons are reasons of an object that does not work, stalled or not.
var failingReasons = []string{v1alpha1.ReasonScaledToZero, v1alpha1.ReasonPodsUnavailable, v1alpha1.ReasonFailed,
	v1alpha1.ReasonHalted, v1alpha1.ReasonGateFailed, v1alpha1.ReasonCSVFailed, v1alpha1.ReasonObjectsLost,
	v1alpha1.ReasonPlanFailed, v1alpha1.ReasonRulesMissing, v1alpha1.ReasonRulesFailing}

// waitingReasons are reasons of an object that waits for another object or a person.
var waitingReasons = []string{v1alpha1.ReasonPaused, v1alpha1.ReasonClusterPaused, v1alpha1.ReasonGated,
	v1alpha1.ReasonVerifying, v1alpha1.ReasonNotObserved, v1alpha1.ReasonWaiting,
	v1alpha1.ReasonRecovered, v1alpha1.ReasonReportPending,
	v1alpha1.ReasonNotAdmitted, v1alpha1.ReasonDeleting, v1alpha1.ReasonNotUpgradeable, v1alpha1.ReasonSuperseded,
	v1alpha1.ReasonNoClusters, v1alpha1.ReasonTooManyDeferred, v1alpha1.ReasonNeverJoined,
	v1alpha1.ReasonWindowClosed, v1alpha1.ReasonClusterBusy, v1alpha1.ReasonVetoed, v1alpha1.ReasonDependencyNotMet,
	v1alpha1.ReasonPreflightFailed, v1alpha1.ReasonPreflightPending, v1alpha1.ReasonClusterNotWritable,
	v1alpha1.ReasonAccessNotPermitted, v1alpha1.ReasonFrozen,
	v1alpha1.ReasonErrorBudgetSpent, v1alpha1.ReasonErrorBudgetUnknown}

// classifyReason returns the state for a reason.
func classifyReason(reason string) State {
	switch {
	case slices.Contains(degradingReasons, reason):
		return Degraded
	case slices.Contains(failingReasons, reason):
		return Failed
	case slices.Contains(waitingReasons, reason):
		return Waiting
	default:
		return Progressing
	}
}

// summarize returns one link for Ready, Reconciling and Stalled. If the object is Ready, ready is the text of the link,
// and check is its Check. A link below it says that the object cannot be reconciled, if that is the case.
func (r objectStatus) summarize(ready, check string) Link {
	l := r.buildReadyLink(ready, check)
	l.Links = append(l.Links, r.listFailureLinks()...)
	return l
}

// listFailureLinks says that the controller fails to reconcile the object. The other conditions of the object are from
// the last success and might be outdated.
func (r objectStatus) listFailureLinks() []Link {
	failing := conditions.Get(r.conditions, v1alpha1.ConditionReconcileFailing)
	if failing.Status != metav1.ConditionTrue {
		return nil
	}
	l := r.buildLink(failing, Degraded)
	l.Text = r.object + " cannot be reconciled: " + l.Text
	l.stale = []Stale{{What: "the status of " + r.object, Why: "it cannot be reconciled", Since: l.Since}}
	return []Link{l}
}

// buildReadyLink returns the link for Ready, Reconciling and Stalled. If the status or Ready belongs to an older spec,
// it returns the link of checkOutdated.
func (r objectStatus) buildReadyLink(ready, check string) Link {
	if l, isOutdated := r.checkOutdated(); isOutdated {
		return l
	}
	stalled, readyCondition := conditions.Get(r.conditions, v1alpha1.ConditionStalled), conditions.Get(r.conditions,
		v1alpha1.ConditionReady)
	if readyCondition.ObservedGeneration != 0 && readyCondition.ObservedGeneration < r.generation {
		r.observed = readyCondition.ObservedGeneration
		l, _ := r.checkOutdated()
		return l
	}
	switch {
	case stalled.Status == metav1.ConditionTrue:
		// A stalled object has failed, unless its reason is milder.
		return r.buildLink(stalled, cmp.Or(filterState(classifyReason(stalled.Reason), Waiting, Degraded), Failed))
	case readyCondition.Status == metav1.ConditionTrue:
		return Link{State: Healthy, Text: ready, Check: check, Since: toTime(readyCondition.LastTransitionTime),
			Evidence: r.buildEvidence(readyCondition)}
	case readyCondition.Status == "":
		return Link{State: Progressing, Reason: remedy.NotReported, Text: r.object + " has not reported its state yet"}
	default:
		return r.buildLink(readyCondition, classifyReason(readyCondition.Reason))
	}
}

// filterState returns the state if it is allowed. Otherwise it returns "".
func filterState(s State, allowed ...State) State {
	if slices.Contains(allowed, s) {
		return s
	}
	return ""
}

// buildLink returns a link for a condition that reports a problem.
func (r objectStatus) buildLink(c metav1.Condition, state State) Link {
	return Link{State: state, Reason: cmp.Or(c.Reason, remedy.UnknownReason), Since: toTime(c.LastTransitionTime),
		Text: cmp.Or(trimPeriod(c.Message), c.Type+" is "+string(c.Status)), Evidence: r.buildEvidence(c), by: r.by}
}

// clearStates turns links into information without a state, because they were reported before and are not current.
func clearStates(links []Link) []Link {
	out := make([]Link, len(links))
	for i, l := range links {
		l.State, l.Check, l.next, l.remedies = "", "", nil, nil
		l.Links = clearStates(l.Links)
		out[i] = l
	}
	return out
}

// selectWorse returns the worse of two states.
func selectWorse(a, b State) State {
	if severity[a] > severity[b] {
		return a
	}
	return b
}
