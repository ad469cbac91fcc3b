// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestReport verifies the status of a window, and when the window is reconciled again.
func TestReport(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		start, recurrence, zone string
		duration                time.Duration
		want                    v1alpha1.ChangeWindowStatus
		reason                  string
		recheck                 time.Duration
	}{
		"in force": {"2026-11-21T10:00:00", "FREQ=DAILY", "UTC", 4 * time.Hour, v1alpha1.ChangeWindowStatus{
			State: v1alpha1.WindowInForce, InForceUntil: &metav1.Time{Time: noon.Add(2 * time.Hour)},
			NextStart: &metav1.Time{Time: noon.Add(22 * time.Hour)}}, v1alpha1.ReasonSucceeded, 2 * time.Hour},
		"in a week": {"2026-11-28T12:00:00", "", "UTC", time.Hour, v1alpha1.ChangeWindowStatus{
			State: v1alpha1.WindowScheduled, NextStart: &metav1.Time{Time: noon.Add(7 * 24 * time.Hour)}},
			v1alpha1.ReasonSucceeded, 24 * time.Hour},
		"over": {"2026-11-20T10:00:00", "", "UTC", time.Hour, v1alpha1.ChangeWindowStatus{State: v1alpha1.WindowOver},
			v1alpha1.ReasonSucceeded, 0},
		"wrong": {"2026-11-20T10:00:00", "", "Mars/Base", time.Hour, v1alpha1.ChangeWindowStatus{},
			v1alpha1.ReasonInvalidSpec, 0},
	} {
		w := &v1alpha1.ChangeWindow{Spec: v1alpha1.ChangeWindowSpec{Type: v1alpha1.WindowDeny, Start: test.start,
			Recurrence: test.recurrence, TimeZone: test.zone, Duration: metav1.Duration{Duration: test.duration}}}
		is := holds.SummarizeWindow(w, nil, noon)
		updateStatus(w, is)
		ready := conditions.Get(w.Status.Conditions, v1alpha1.ConditionReady)
		stalled := conditions.IsTrue(w.Status.Conditions, v1alpha1.ConditionStalled)
		if ready.Reason != test.reason || stalled != (test.reason != v1alpha1.ReasonSucceeded) {
			t.Errorf("%s: %s %s, stalled %v", name, ready.Reason, ready.Message, stalled)
		}
		if got := w.Status; got.State != test.want.State || !got.InForceUntil.Equal(test.want.InForceUntil) ||
			!got.NextStart.Equal(test.want.NextStart) {
			t.Errorf("%s: %s until %v next %v", name, got.State, got.InForceUntil, got.NextStart)
		}
		if got := computeRecheck(is, noon); got != test.recheck {
			t.Errorf("%s: looked at again after %s, want %s", name, got, test.recheck)
		}
	}
}
