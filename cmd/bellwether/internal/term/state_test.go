// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestHealthWithoutConditions(t *testing.T) {
	if got := Health([]metav1.Condition{}); got != (Cell{"Unknown", Warn}) {
		t.Errorf("an object that nobody has looked at is %v", got)
	}
}

// TestConditionTone: what is wrong is never shown like what is as it should be.
func TestConditionTone(t *testing.T) {
	for conditionType, want := range map[string]struct{ isTrue, isFalse, isUnknown Tone }{
		v1alpha1.ConditionReady:               {Good, Warn, Warn},
		v1alpha1.ConditionReconciling:         {Plain, Plain, Plain},
		v1alpha1.ConditionStalled:             {Bad, Good, Bad},
		v1alpha1.ConditionReconcileFailing:    {Bad, Good, Bad},
		v1alpha1.ConditionOnline:              {Good, Warn, Warn},
		v1alpha1.ConditionHibernating:         {Warn, Good, Warn},
		v1alpha1.ConditionBlockedVersionInUse: {Warn, Good, Warn},
		v1alpha1.ConditionVersionHeld:         {Warn, Good, Warn},
		v1alpha1.ConditionOutsideAccess:       {Warn, Good, Warn},
		v1alpha1.ConditionDrifted:             {Warn, Good, Warn},
		v1alpha1.ConditionBudgetsExcluded:     {Good, Warn, Warn},
	} {
		for status, tone := range map[metav1.ConditionStatus]Tone{metav1.ConditionTrue: want.isTrue,
			metav1.ConditionFalse: want.isFalse, metav1.ConditionUnknown: want.isUnknown} {
			if got := conditionTone(metav1.Condition{Type: conditionType, Status: status}); got != tone {
				t.Errorf("%s=%s has tone %v, want %v", conditionType, status, got, tone)
			}
		}
	}
	unknown := metav1.Condition{Type: v1alpha1.ConditionHibernating, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonPowerUnknown}
	if got := conditionTone(unknown); got != Warn {
		t.Errorf("a power state that is not known has tone %v, want %v", got, Warn)
	}
}
