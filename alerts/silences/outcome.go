// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences

import (
	"errors"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ErrNoAlertmanager means that a silence cannot come into force, because the hub has no address of an Alertmanager.
var ErrNoAlertmanager = errors.New("the hub knows no Alertmanager")

// IsActive reports whether a silence is in force in Alertmanager.
func IsActive(s *v1alpha1.AlertSilence) bool {
	return conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionActive)
}

// CheckOutcome reports from the status of a silence whether it has come into force: Alertmanager has it or, without an
// Alertmanager, its time is excluded from budgets. It returns an error, without a period at the end, if the silence
// will not come into force unless a person acts. It returns false and nil while the hub has not acted on it.
func CheckOutcome(s *v1alpha1.AlertSilence) (done bool, problem error) {
	if s.Status.ObservedGeneration < s.Generation {
		return false, nil
	}
	ready := conditions.Get(s.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case IsActive(s):
		return true, nil
	case ready.Reason == v1alpha1.ReasonNoAlertmanager && s.Spec.ExcludeFromBudgets:
		// Excluding time from budgets works without an Alertmanager.
		return conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionBudgetsExcluded), nil
	case ready.Reason == v1alpha1.ReasonNoAlertmanager:
		return false, ErrNoAlertmanager
	case conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionStalled), ready.Reason == v1alpha1.ReasonEnded:
		return false, errors.New(strings.TrimSuffix(phrase.OneLine(ready.Message), "."))
	}
	return false, nil
}
