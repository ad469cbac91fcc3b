// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Result is how an admission of an install first ended.
type Result struct {
	// Admission identifies the admission by its hash and revision.
	Admission Admission
	// Outcome is a value of series.Outcome; empty if it has not ended.
	Outcome string
	// Took is the time since the admission; 0 if the clocks disagree.
	Took time.Duration
}

// Admission identifies an admission.
type Admission struct {
	Hash     string
	Revision int64
}

// failures are the reasons that mean a failed installation or upgrade. A stall for another reason, such
// as an unreachable catalog, a block, or an operator that refuses its own upgrade, may still succeed.
var failures = []string{
	v1alpha1.ReasonResolutionFailed, v1alpha1.ReasonUnpackFailed, v1alpha1.ReasonPlanFailed,
	v1alpha1.ReasonRequirementsNotMet, v1alpha1.ReasonObjectsLost, v1alpha1.ReasonCSVFailed,
}

// ReadOutcome reads an install's status. It depends only on the object and always
// gives the same result; the caller must record which admissions were counted.
func ReadOutcome(oi *v1alpha1.OperatorInstall) Result {
	admission := oi.Spec.Admission
	if admission == nil {
		return Result{}
	}
	result := Result{Admission: Admission{Hash: admission.Hash, Revision: admission.Revision}}
	stalled := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionStalled)
	switch {
	case oi.Status.SucceededHash == admission.Hash && oi.Status.SucceededAt != nil:
		result.Outcome, result.Took = series.OutcomeSucceeded, oi.Status.SucceededAt.Sub(admission.AdmittedAt.Time)
	case oi.Status.ObservedRevision == admission.Revision && stalled.ObservedGeneration == oi.Generation &&
		stalled.Status == metav1.ConditionTrue && slices.Contains(failures, stalled.Reason):
		result.Outcome, result.Took = series.OutcomeFailed, stalled.LastTransitionTime.Sub(admission.AdmittedAt.Time)
	}
	result.Took = max(result.Took, 0)
	return result
}

// Counted records the counted results of the existing installs, so that each admission is counted
// once, by its first result. The zero value is ready for use. It is not safe for concurrent use.
type Counted struct {
	results map[string]Result
}

// MarkCounted marks the current result of an install as counted. An agent calls
// it at its start, because the previous agent has already counted these results.
func (l *Counted) MarkCounted(oi *v1alpha1.OperatorInstall) {
	l.store(oi, ReadOutcome(oi))
}

// Update returns the result of an install's admission, and whether it must be counted
// now. A new admission of a release that had already succeeded is not an installation.
func (l *Counted) Update(oi *v1alpha1.OperatorInstall) (Result, bool) {
	current, previous := ReadOutcome(oi), l.results[string(oi.UID)]
	switch {
	case current.Outcome == "": // the admission has not ended
		if previous.Admission != current.Admission {
			l.store(oi, current)
		}
		return current, false
	case previous.Admission == current.Admission && previous.Outcome != "": // already counted
		return current, false
	}
	l.store(oi, current)
	isRepeated := current.Outcome == series.OutcomeSucceeded && previous.Outcome == series.OutcomeSucceeded &&
		previous.Admission.Hash == current.Admission.Hash
	return current, !isRepeated
}

// Forget removes a deleted install.
func (l *Counted) Forget(oi *v1alpha1.OperatorInstall) { delete(l.results, string(oi.UID)) }

// store records the counted result of an install.
func (l *Counted) store(oi *v1alpha1.OperatorInstall, result Result) {
	if l.results == nil {
		l.results = map[string]Result{}
	}
	l.results[string(oi.UID)] = result
}
