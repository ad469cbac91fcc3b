// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestCheckOutcome(t *testing.T) {
	isTrue := func(kind string) metav1.Condition { return metav1.Condition{Type: kind, Status: metav1.ConditionTrue} }
	notReady := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason,
			Message: message}
	}
	noAlertmanager := notReady(v1alpha1.ReasonNoAlertmanager, "x")
	for name, test := range map[string]struct {
		generation int64
		excludes   bool
		conditions []metav1.Condition
		done       bool
		problem    string
	}{
		"new":                      {1, false, nil, false, ""},
		"in force":                 {1, false, []metav1.Condition{isTrue(v1alpha1.ConditionActive)}, true, ""},
		"in force before a change": {2, false, []metav1.Condition{isTrue(v1alpha1.ConditionActive)}, false, ""},
		"no Alertmanager": {1, false, []metav1.Condition{noAlertmanager}, false,
			"the hub knows no Alertmanager"},
		"not excluded yet": {1, true, []metav1.Condition{noAlertmanager}, false, ""},
		"excluded, no Alertmanager": {1, true, []metav1.Condition{noAlertmanager,
			isTrue(v1alpha1.ConditionBudgetsExcluded)}, true, ""},
		"ended": {1, false, []metav1.Condition{notReady(v1alpha1.ReasonEnded, "It has ended.")}, false,
			"It has ended"},
		"refused": {1, false, []metav1.Condition{isTrue(v1alpha1.ConditionStalled),
			notReady("Refused", "Two\nlines.")}, false, "Two lines"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.AlertSilence{}
			s.Generation, s.Status.ObservedGeneration = test.generation, 1
			s.Spec.ExcludeFromBudgets, s.Status.Conditions = test.excludes, test.conditions
			done, problem := silences.CheckOutcome(s)
			text := ""
			if problem != nil {
				text = problem.Error()
			}
			if done != test.done || text != test.problem {
				t.Errorf("got %t and %q, want %t and %q", done, text, test.done, test.problem)
			}
		})
	}
}
