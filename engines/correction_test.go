// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestCorrectionsAreBounded has a field that another program keeps changing.
func TestCorrectionsAreBounded(t *testing.T) {
	install := admitted("a", 1)
	install.Spec.Drift = v1alpha1.DriftCorrect
	fields := []string{"Deployment echo spec.replicas"}
	at := now
	pass := func(fields []string) (Correction, string) {
		t.Helper()
		report := Report{Complete: true, Drift: &Drift{Fields: fields}}
		report.Drift.Correction, report.Correction = Correct(install, fields, at)
		install.Status = Status(install, report, at)
		return report.Drift.Correction, conditions.Get(install.Status.Conditions, v1alpha1.ConditionDrifted).Reason
	}
	if done, reason := pass(nil); done != NoCorrection || reason != v1alpha1.ReasonInSync ||
		install.Status.Correction != nil {
		t.Fatalf("without drift: %q, %s, %+v", done, reason, install.Status.Correction)
	}
	for i := range MaxCorrections {
		if done, reason := pass(fields); done != CorrectionDue || reason != v1alpha1.ReasonCorrecting {
			t.Fatalf("drift %d: %q, %s", i, done, reason)
		}
		at = at.Add(time.Minute)
		pass(nil)
	}
	done, reason := pass(fields)
	message := conditions.Get(install.Status.Conditions, v1alpha1.ConditionDrifted).Message
	if done != CorrectionStopped || reason != v1alpha1.ReasonCorrectionStopped ||
		!strings.Contains(message, "put fields back 5 times within an hour") || !strings.Contains(message, fields[0]) {
		t.Fatalf("after %d corrections: %q, %s: %s", MaxCorrections, done, reason, message)
	}
	at = now.Add(CorrectionPeriod)
	if done, _ := pass(fields); done != CorrectionDue || install.Status.Correction.Count != 1 {
		t.Fatalf("an hour later: %q, %+v", done, install.Status.Correction)
	}
	install.Spec.Drift = ""
	if done, reason := pass(fields); done != NoCorrection || reason != v1alpha1.ReasonDrifted {
		t.Fatalf("with policy Report: %q, %s", done, reason)
	}
}

// TestCorrectionsAreApart observes the same difference again right after a correction, as with a cache that is not up
// to date.
func TestCorrectionsAreApart(t *testing.T) {
	install := admitted("a", 1)
	install.Spec.Drift = v1alpha1.DriftCorrect
	fields := []string{"Deployment echo spec.replicas"}
	for after, want := range map[time.Duration]Correction{
		0: CorrectionWaits, CorrectionPause - time.Millisecond: CorrectionWaits, CorrectionPause: CorrectionDue,
	} {
		_, first := Correct(install, fields, now)
		again := install.DeepCopy()
		again.Status.Correction = first
		got, record := Correct(again, fields, now.Add(after))
		if got != want || (record == first) != (want == CorrectionWaits) {
			t.Errorf("%s after a correction: %q with %+v, want %q", after, got, record, want)
		}
		report := Report{Complete: true, Drift: &Drift{Fields: fields, Correction: got}, Correction: record}
		drifted := conditions.Get(Status(again, report, now).Conditions, v1alpha1.ConditionDrifted)
		if drifted.Reason != v1alpha1.ReasonCorrecting || !report.IsCorrecting() {
			t.Errorf("%s after a correction: %+v", after, drifted)
		}
	}
}

func TestNotComparedIsUnknown(t *testing.T) {
	install := admitted("a", 1)
	install.Status = Status(install, Report{Complete: true, Drift: &Drift{Unknown: "no manifests"}}, now)
	drifted := conditions.Get(install.Status.Conditions, v1alpha1.ConditionDrifted)
	if drifted.Status != "Unknown" || drifted.Reason != v1alpha1.ReasonNotCompared ||
		drifted.Message != "no manifests" {
		t.Errorf("%+v", drifted)
	}
}
