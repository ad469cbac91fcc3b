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
	"github.com/bellwether-dev/bellwether/phrase"
)

// reported is what an object says of itself.
type reported struct {
	// object as Evidence names it.
	object     string
	generation int64
	observed   int64
	conditions []metav1.Condition
	// by is who writes the status.
	by remedy.Observer
}

// evidence of a condition.
func (r reported) evidence(c metav1.Condition) []Evidence {
	observed := string(c.Status)
	if c.Reason != "" {
		observed += " " + c.Reason
	}
	if c.Message != "" {
		observed += ": " + phrase.OneLine(c.Message)
	}
	return []Evidence{{Object: r.object, Field: "condition " + c.Type, Observed: observed,
		Time: timeOf(c.LastTransitionTime)}}
}

// outdated says that the status is about an older spec; ok is false where it
// is not.
func (r reported) outdated() (Link, bool) {
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

// degrading are reasons of an object that still does what it is for.
var degrading = []string{v1alpha1.ReasonDrifted, v1alpha1.ReasonRulesOutdated, v1alpha1.ReasonNoPrometheus,
	v1alpha1.ReasonPrometheusUnreachable, v1alpha1.ReasonProfileInvalid, v1alpha1.ReasonRetentionTooShort}

// failing are reasons of an object that does not work, stalled or not.
var failing = []string{v1alpha1.ReasonScaledToZero, v1alpha1.ReasonPodsUnavailable, v1alpha1.ReasonFailed,
	v1alpha1.ReasonHalted, v1alpha1.ReasonGateFailed, v1alpha1.ReasonCSVFailed, v1alpha1.ReasonObjectsLost,
	v1alpha1.ReasonPlanFailed, v1alpha1.ReasonRulesMissing, v1alpha1.ReasonRulesFailing}

// waiting are reasons of an object that goes on only when something else came.
var waiting = []string{v1alpha1.ReasonPaused, v1alpha1.ReasonClusterPaused, v1alpha1.ReasonGated,
	v1alpha1.ReasonVerifying, v1alpha1.ReasonNotObserved, v1alpha1.ReasonWaiting,
	v1alpha1.ReasonRecovered, v1alpha1.ReasonReportPending,
	v1alpha1.ReasonNotAdmitted, v1alpha1.ReasonDeleting, v1alpha1.ReasonNotUpgradeable, v1alpha1.ReasonSuperseded,
	v1alpha1.ReasonNoClusters, v1alpha1.ReasonTooManyDeferred, v1alpha1.ReasonNeverJoined,
	v1alpha1.ReasonWindowClosed, v1alpha1.ReasonClusterBusy, v1alpha1.ReasonVetoed, v1alpha1.ReasonDependencyNotMet,
	v1alpha1.ReasonPreflightFailed, v1alpha1.ReasonPreflightPending, v1alpha1.ReasonClusterNotWritable,
	v1alpha1.ReasonAccessNotPermitted, v1alpha1.ReasonFrozen,
	v1alpha1.ReasonErrorBudgetSpent, v1alpha1.ReasonErrorBudgetUnknown}

func stateOf(reason string) State {
	switch {
	case slices.Contains(degrading, reason):
		return Degraded
	case slices.Contains(failing, reason):
		return Failed
	case slices.Contains(waiting, reason):
		return Waiting
	default:
		return Progressing
	}
}

// summary is the link for Ready, Reconciling and Stalled together. ready is the
// text, and the check, if the object is Ready. Below it is whether the object can be reconciled.
func (r reported) summary(ready, check string) Link {
	l := r.readiness(ready, check)
	l.Links = append(l.Links, r.failureLinks()...)
	return l
}

// failureLinks say that the controller fails to reconcile the object: its other conditions are those of the last
// success, and may not hold any more.
func (r reported) failureLinks() []Link {
	failing := conditions.Get(r.conditions, v1alpha1.ConditionReconcileFailing)
	if failing.Status != metav1.ConditionTrue {
		return nil
	}
	l := r.link(failing, Degraded)
	l.Text = r.object + " cannot be reconciled: " + l.Text
	l.stale = []Stale{{What: "the status of " + r.object, Why: "it cannot be reconciled", Since: l.Since}}
	return []Link{l}
}

func (r reported) readiness(ready, check string) Link {
	if l, old := r.outdated(); old {
		return l
	}
	stalled, is := conditions.Get(r.conditions, v1alpha1.ConditionStalled), conditions.Get(r.conditions,
		v1alpha1.ConditionReady)
	if is.ObservedGeneration != 0 && is.ObservedGeneration < r.generation {
		r.observed = is.ObservedGeneration
		l, _ := r.outdated()
		return l
	}
	switch {
	case stalled.Status == metav1.ConditionTrue:
		return r.link(stalled, cmp.Or(onlyFor(stateOf(stalled.Reason), Waiting, Degraded), Failed))
	case is.Status == metav1.ConditionTrue:
		return Link{State: Healthy, Text: ready, Check: check, Since: timeOf(is.LastTransitionTime),
			Evidence: r.evidence(is)}
	case is.Status == "":
		return Link{State: Progressing, Reason: remedy.NotReported, Text: r.object + " has not reported its state yet"}
	default:
		return r.link(is, stateOf(is.Reason))
	}
}

// onlyFor is the state if it is one of those given, and empty if not.
func onlyFor(s State, of ...State) State {
	if slices.Contains(of, s) {
		return s
	}
	return ""
}

// link is a condition that is not as it should be.
func (r reported) link(c metav1.Condition, state State) Link {
	return Link{State: state, Reason: cmp.Or(c.Reason, remedy.UnknownReason), Since: timeOf(c.LastTransitionTime),
		Text: cmp.Or(withoutStop(c.Message), c.Type+" is "+string(c.Status)), Evidence: r.evidence(c), by: r.by}
}

// asOfThen turns links into information: they were reported, and are not
// current.
func asOfThen(links []Link) []Link {
	out := make([]Link, len(links))
	for i, l := range links {
		l.State, l.Check, l.next, l.remedies = "", "", nil, nil
		l.Links = asOfThen(l.Links)
		out[i] = l
	}
	return out
}

// atLeast is the worse of two states.
func atLeast(a, b State) State {
	if severity[a] > severity[b] {
		return a
	}
	return b
}
