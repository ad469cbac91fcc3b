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

// Ending is how an admission of an install ended first.
type Ending struct {
	// Admission identifies it: its hash and revision.
	Admission Admission
	// Outcome is a value of series.Outcome; empty where it has not ended.
	Outcome string
	// Took is how long that was after the admission; 0 where clocks disagree.
	Took time.Duration
}

// Admission identifies an admission.
type Admission struct {
	Hash     string
	Revision int64
}

// failures are the reasons for which an installation or upgrade has failed. A
// stall for any other reason, such as a catalog that cannot be reached, a block
// or an operator that holds its own upgrade, is no ending.
var failures = []string{
	v1alpha1.ReasonResolutionFailed, v1alpha1.ReasonUnpackFailed, v1alpha1.ReasonPlanFailed,
	v1alpha1.ReasonRequirementsNotMet, v1alpha1.ReasonCSVFailed,
}

// EndingOf reads an install's status. It is a function of the object alone, so
// that it says the same however often it is asked; who counts has to remember
// which admissions were counted.
func EndingOf(oi *v1alpha1.OperatorInstall) Ending {
	admission := oi.Spec.Admission
	if admission == nil {
		return Ending{}
	}
	e := Ending{Admission: Admission{Hash: admission.Hash, Revision: admission.Revision}}
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

// Ledger remembers what was counted of the installs that are there, so that an
// admission counts once: by how it ended first. The zero value is ready for
// use; it is not safe for concurrent use.
type Ledger struct {
	counted map[string]Ending
}

// Known takes an install as it is for counted already: how an agent starts,
// since its predecessor counted what it saw.
func (l *Ledger) Known(oi *v1alpha1.OperatorInstall) {
	l.put(oi, EndingOf(oi))
}

// Next tells whether an install's admission has ended just now. An admission
// again to what is there already, which has succeeded before it was made, is no
// installation.
func (l *Ledger) Next(oi *v1alpha1.OperatorInstall) (Ending, bool) {
	is, was := EndingOf(oi), l.counted[string(oi.UID)]
	switch {
	case is.Outcome == "":
		if was.Admission != is.Admission {
			l.put(oi, is)
		}
		return is, false
	case was.Admission == is.Admission && was.Outcome != "":
		return is, false
	}
	l.put(oi, is)
	again := is.Outcome == series.OutcomeSucceeded && was.Outcome == series.OutcomeSucceeded &&
		was.Admission.Hash == is.Admission.Hash
	return is, !again
}

// Forget drops an install that is gone.
func (l *Ledger) Forget(oi *v1alpha1.OperatorInstall) { delete(l.counted, string(oi.UID)) }

func (l *Ledger) put(oi *v1alpha1.OperatorInstall, e Ending) {
	if l.counted == nil {
		l.counted = map[string]Ending{}
	}
	l.counted[string(oi.UID)] = e
}
