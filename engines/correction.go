// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Correction is what the engine does about differing fields.
type Correction string

const (
	// NoCorrection leaves the fields as they are, as the install's drift policy requires.
	NoCorrection Correction = ""
	// CorrectionDue corrects the fields now.
	CorrectionDue Correction = "due"
	// CorrectionWaits corrects the fields once CorrectionPause has passed since the last correction.
	CorrectionWaits Correction = "waits"
	// CorrectionStopped leaves the fields as they are, because fields were corrected MaxCorrections times
	// within CorrectionPeriod.
	CorrectionStopped Correction = "stopped"
)

const (
	// MaxCorrections is how often fields are corrected within CorrectionPeriod, counted from the first correction.
	// More corrections mean that another program keeps changing the fields, and each correction may restart the
	// operator's pods.
	MaxCorrections = 5
	// CorrectionPeriod is the time in which corrections are counted.
	CorrectionPeriod = time.Hour
	// CorrectionPause is the minimum time between two corrections. The agent may observe objects from before its last
	// write, and OLM writes the same objects while it installs. Without a pause, all corrections of an hour could be
	// spent on one change within a second.
	CorrectionPause = 10 * time.Second
)

// maxRecordedFields limits the number of fields in the record of a correction, and maxRecordedFieldLength the length
// of each. The API has the same limits.
const (
	maxRecordedFields      = 3
	maxRecordedFieldLength = 600
)

// Correct decides what to do about differing fields. It also returns the record of the install's corrections, which
// includes this correction if the result is CorrectionDue. CorrectionPeriod after the first recorded correction, the
// next correction begins a new record with the count 1.
func Correct(install *v1alpha1.OperatorInstall, fields []string, now time.Time) (Correction,
	*v1alpha1.DriftCorrection) {
	last := install.Status.Correction
	if len(fields) == 0 || install.Spec.Drift != v1alpha1.DriftCorrect {
		return NoCorrection, last
	}
	next := &v1alpha1.DriftCorrection{Fields: truncateTexts(fields, maxRecordedFields, maxRecordedFieldLength),
		Count:     1,
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
