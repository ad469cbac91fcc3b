// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// setSelected sets the status of a probe with a selector. Success is
// False while one of the targets fails, or too few objects match.
func setSelected(status *v1alpha1.EndpointProbeStatus, generation int64, selected Selected,
	verdicts map[string]Verdict) {
	status.URL = ""
	conditions.Summarize(&status.Conditions, generation, summarize(selected))
	targets, succeeded := countTargets(status.Selected, selected, verdicts)
	status.Selected = targets
	whole := verdicts[""]
	switch {
	case selected.TooFew != nil && whole.Failure != nil:
		setFailed(status, generation, whole)
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, false, selected.TooFew.Reason,
			selected.TooFew.Message) // the number of matching objects may have changed since the run
	case targets.Failing > 0:
		setTargetsFailed(status, generation, selected)
	// The run that reports too few objects, or the first run of a target, has not ended yet.
	case selected.TooFew != nil || succeeded == 0 && selected.Matching > 0:
		setWaiting(status, generation)
	default:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, true, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("%d of %s answer as expected, and none fails", succeeded,
				selected.Kind.formatCount(selected.Matching)))
	}
}

// summarize returns Stalled if more objects match than a probe may have, and otherwise Current.
func summarize(selected Selected) conditions.Summary {
	if selected.Matching <= v1alpha1.MaxSelectedTargets {
		return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded,
			Message: "the probe is run"}
	}
	return conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonTooManyTargets, Message: fmt.Sprintf(
		"the selector matches %s, and only the first %d by name are probed: divide them among several EndpointProbes",
		selected.Kind.formatCount(selected.Matching), v1alpha1.MaxSelectedTargets)}
}

// countTargets returns the numbers and the first failing targets, and how many targets succeeded. A target
// that fails for the same reason as in the previous status keeps its time and message, so that the status
// is written only on changes. Targets that have not run yet count as neither failing nor succeeded.
func countTargets(previous *v1alpha1.SelectedTargets, selected Selected, verdicts map[string]Verdict) (
	targets *v1alpha1.SelectedTargets, succeeded int) {
	targets = &v1alpha1.SelectedTargets{Matching: int32(min(selected.Matching, 1<<30))}
	for _, name := range selected.Names {
		verdict := verdicts[name]
		switch {
		case verdict.At.IsZero():
			continue
		case verdict.Failure == nil:
			succeeded++
			continue
		}
		targets.Failing++
		if len(targets.FirstFailing) < v1alpha1.MaxFailingTargets {
			targets.FirstFailing = append(targets.FirstFailing, newFailingTarget(previous, name, verdict))
		}
	}
	return targets, succeeded
}

// newFailingTarget returns the previous entry of a target if it fails for the same reason, or else a new entry.
func newFailingTarget(previous *v1alpha1.SelectedTargets, name string, v Verdict) v1alpha1.FailingTarget {
	if previous != nil {
		index := slices.IndexFunc(previous.FirstFailing, func(t v1alpha1.FailingTarget) bool {
			return t.Name == name && t.Reason == v.Failure.Reason
		})
		if index >= 0 {
			return previous.FirstFailing[index]
		}
	}
	return v1alpha1.FailingTarget{Name: name, ProbeFailure: v1alpha1.ProbeFailure{Time: metav1.NewTime(v.At),
		Reason: v.Failure.Reason, Message: phrase.Truncate(v.Failure.Message, maxMessage)}}
}

// maxNamedTargets is how many failing targets the condition's message names. The status lists more of them.
const maxNamedTargets = 3

// setTargetsFailed reports failing targets. The reason is the reason of the first failing
// target. It also sets the last failure of the probe if a target failed later.
func setTargetsFailed(status *v1alpha1.EndpointProbeStatus, generation int64, selected Selected) {
	failing := status.Selected.FirstFailing
	var named []string
	for _, target := range failing[:min(maxNamedTargets, len(failing))] {
		named = append(named, target.Name+": "+target.Message)
	}
	if more := int(status.Selected.Failing) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, false, failing[0].Reason,
		fmt.Sprintf("%d of %s fail: %s", status.Selected.Failing, selected.Kind.formatCount(selected.Matching),
			strings.Join(named, "; ")))
	for _, target := range failing {
		if last := status.LastFailure; last == nil || last.Time.Before(&target.Time) {
			status.LastFailure = &v1alpha1.ProbeFailure{Time: target.Time, Reason: target.Reason,
				Message: phrase.Truncate(target.Name+": "+target.Message, maxMessage)}
		}
	}
}
