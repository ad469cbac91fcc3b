// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// failures are the reasons that mean a failed installation or upgrade. A stall
// for another reason, such as an unreachable catalog, a block, or an operator
// that refuses its own upgrade, may still end well.
var failures = []string{
	v1alpha1.ReasonResolutionFailed, v1alpha1.ReasonUnpackFailed, v1alpha1.ReasonPlanFailed,
	v1alpha1.ReasonRequirementsNotMet, v1alpha1.ReasonObjectsLost, v1alpha1.ReasonCSVFailed,
}

// OutcomeOf reads an install's status. It depends on the object only and gives
// the same result each time; the caller has to remember which admissions were
// counted.
func OutcomeOf(oi *v1alpha1.OperatorInstall) Result {
	admission := oi.Spec.Admission
	if admission == nil {
		return Result{}
	}
	e := Result{Admission: Admission{Hash: admission.Hash, Revision: admission.Revision}}
	stalled := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionStalled)
	switch {
	case oi.Status.SucceededHash == admission.Hash && oi.Status.SucceededAt != nil:
		e.Outcome, e.Took = series.OutcomeSucceeded, oi.Status.SucceededAt.Sub(admission.AdmittedAt.Time)
	case oi.Status.ObservedRevision == admission.Revision && stalled.ObservedGeneration == oi.Generation &&
		stalled.Status == metav1.ConditionTrue && slices.Contains(failures, stalled.Reason):
		e.Outcome, e.Took = series.OutcomeFailed, stalled.LastTransitionTime.Sub(admission.AdmittedAt.Time)
	}
	e.Took = max(e.Took, 0)
	return e
}

// Counted remembers the counted results of the existing installs, so that each
// admission is counted once, by how it first ended. The zero value is ready for
// use. It is not safe for concurrent use.
type Counted struct {
	results map[string]Result
}

// MarkCounted marks the current result of an install as counted. An agent
// starts with this, because its predecessor counted what it saw.
func (l *Counted) MarkCounted(oi *v1alpha1.OperatorInstall) {
	l.set(oi, OutcomeOf(oi))
}

// Update tells whether an install's admission has just ended. A new admission
// of a release that had already succeeded is not an installation.
func (l *Counted) Update(oi *v1alpha1.OperatorInstall) (Result, bool) {
	now, before := OutcomeOf(oi), l.results[string(oi.UID)]
	switch {
	case now.Outcome == "":
		if before.Admission != now.Admission {
			l.set(oi, now)
		}
		return now, false
	case before.Admission == now.Admission && before.Outcome != "":
		return now, false
	}
	l.set(oi, now)
	again := now.Outcome == series.OutcomeSucceeded && before.Outcome == series.OutcomeSucceeded &&
		before.Admission.Hash == now.Admission.Hash
	return now, !again
}

// Forget removes a deleted install.
func (l *Counted) Forget(oi *v1alpha1.OperatorInstall) { delete(l.results, string(oi.UID)) }

func (l *Counted) set(oi *v1alpha1.OperatorInstall, e Result) {
	if l.results == nil {
		l.results = map[string]Result{}
	}
	l.results[string(oi.UID)] = e
}
