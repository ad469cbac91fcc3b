// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestEventType checks which Events are warnings.
func TestEventType(t *testing.T) {
	const normal, warning = corev1.EventTypeNormal, corev1.EventTypeWarning
	for reason, want := range map[string]string{
		v1alpha1.ReasonSucceeded: normal, v1alpha1.ReasonProgressing: normal, v1alpha1.ReasonWaiting: normal,
		v1alpha1.ReasonSoaking: normal, v1alpha1.ReasonPaused: normal, v1alpha1.ReasonHibernating: normal,
		v1alpha1.ReasonInForce: normal, v1alpha1.ReasonScheduled: normal, v1alpha1.ReasonEnded: normal,
		v1alpha1.ReasonFrozen: normal, v1alpha1.ReasonWindowClosed: normal, "WaveStarted": normal,
		"WaveVerified": normal, "GatePassed": normal, "PolicyApplied": normal, "StorageMigrated": normal,
		string(v1alpha1.DecisionApproved): normal, string(v1alpha1.DecisionResumed): normal,

		v1alpha1.ReasonFailed: warning, v1alpha1.ReasonHalted: warning, v1alpha1.ReasonGateFailed: warning,
		v1alpha1.ReasonAborted: warning, v1alpha1.ReasonRolledBack: warning, v1alpha1.ReasonVersionHeld: warning,
		v1alpha1.ReasonPodsUnavailable: warning, v1alpha1.ReasonCSVFailed: warning, v1alpha1.ReasonTimedOut: warning,
		v1alpha1.ReasonLeaseExpired: warning, v1alpha1.ReasonPowerUnknown: warning,
		v1alpha1.ReasonNoAlertmanager: warning,
		v1alpha1.ReasonInvalidSpec:    warning, v1alpha1.ReasonErrorBudgetSpent: warning, "WaveInterrupted": warning,
		"RolloutDeleted": warning, "LeftBehind": warning, "DriftCorrected": warning,
		"DeletedOnCluster": warning,
		"SomethingNew":     warning,
	} {
		if got := conditions.EventType(reason); got != want {
			t.Errorf("an Event with the reason %s is of type %s, want %s", reason, got, want)
		}
	}
}

// TestReadyEventType has an object that waits, and an object that needs a person for the same reason.
func TestReadyEventType(t *testing.T) {
	for state, want := range map[conditions.State]string{conditions.InProgress: corev1.EventTypeNormal,
		conditions.Stalled: corev1.EventTypeWarning} {
		var all []metav1.Condition
		conditions.Summarize(&all, 1, conditions.Summary{State: state, Reason: v1alpha1.ReasonWaiting})
		if got := conditions.ReadyEventType(all); got != want {
			t.Errorf("state %d: %s, want %s", state, got, want)
		}
	}
}
