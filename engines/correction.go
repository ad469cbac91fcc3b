// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Correction is what is done about fields that differ.
type Correction string

const (
	// NoCorrection leaves them as they are, as the install's drift policy asks.
	NoCorrection Correction = ""
	// CorrectionDue puts them back now.
	CorrectionDue Correction = "due"
	// CorrectionWaits puts them back once CorrectionPause has passed since the last
	// time.
	CorrectionWaits Correction = "waits"
	// CorrectionStopped leaves them as they are, because fields were put back
	// MaxCorrections times within CorrectionPeriod.
	CorrectionStopped Correction = "stopped"
)

const (
	// MaxCorrections is how often fields are put back within CorrectionPeriod,
	// counted from the first time. Something else keeps changing them then, and each
	// correction may restart the operator's pods.
	MaxCorrections = 5
	// CorrectionPeriod is how long corrections are counted.
	CorrectionPeriod = time.Hour
	// CorrectionPause is the least time from one correction to the next. What the
	// agent observes may be older than what it has just written, and OLM writes the
	// same objects while it installs: without a pause all corrections of an hour could
	// be spent on one change within a second.
	CorrectionPause = 10 * time.Second
)

// maxRecorded bounds how many fields the record of a correction names, and
// maxRecordedField how long each is: as the API does.
const (
	maxRecorded      = 3
	maxRecordedField = 600
)

// Correct decides what to do about fields that differ. It returns the record of
// the install's corrections, which is a new one if the fields are put back now.
func Correct(install *v1alpha1.OperatorInstall, fields []string, now time.Time) (Correction,
	*v1alpha1.DriftCorrection) {
	last := install.Status.Correction
	if len(fields) == 0 || install.Spec.Drift != v1alpha1.DriftCorrect {
		return NoCorrection, last
	}
	next := &v1alpha1.DriftCorrection{Fields: cut(fields, maxRecorded, maxRecordedField), Count: 1,
		FirstTime: metav1.NewTime(now), LastTime: metav1.NewTime(now)}
	if last == nil || now.Sub(last.FirstTime.Time) >= CorrectionPeriod {
		return CorrectionDue, next
	}
	if last.Count >= MaxCorrections {
		return CorrectionStopped, last
	}
	if now.Sub(last.LastTime.Time) < CorrectionPause {
		return CorrectionWaits, last
	}
	next.Count, next.FirstTime = last.Count+1, last.FirstTime
	return CorrectionDue, next
}
