// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions writes status conditions in the terms of kstatus. It is
// pure: planners use it.
package conditions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// State is what an object's status comes to, in the terms of kstatus.
type State int

const (
	// InProgress is on its way and needs nobody.
	InProgress State = iota
	// Current is as the spec asks.
	Current
	// Stalled needs a person; it recovers by itself once that person acted.
	Stalled
)

// Summary is the verdict on an object: its state, and why, for a person.
type Summary struct {
	State   State
	Reason  string
	Message string
}

// Summarize sets the conditions Ready, Reconciling and Stalled from a summary.
// Reconciling and Stalled are removed where they would be False.
func Summarize(conditions *[]metav1.Condition, generation int64, s Summary) {
	Set(conditions, generation, v1alpha1.ConditionReady, s.State == Current, s.Reason, s.Message)
	for conditionType, holds := range map[string]bool{
		v1alpha1.ConditionReconciling: s.State == InProgress,
		v1alpha1.ConditionStalled:     s.State == Stalled,
	} {
		if holds {
			Set(conditions, generation, conditionType, true, s.Reason, s.Message)
		} else {
			meta.RemoveStatusCondition(conditions, conditionType)
		}
	}
}

// Set sets one condition to True or False. Its transition time moves
// only when its status does. The message is cut at the API's limit.
func Set(conditions *[]metav1.Condition, generation int64, conditionType string, status bool, reason, message string) {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	setStatus(conditions, generation, conditionType, value, reason, message)
}

// SetUnknown sets one condition to Unknown: there is no current observation.
func SetUnknown(conditions *[]metav1.Condition, generation int64, conditionType, reason, message string) {
	setStatus(conditions, generation, conditionType, metav1.ConditionUnknown, reason, message)
}

func setStatus(conditions *[]metav1.Condition, generation int64, conditionType string, status metav1.ConditionStatus,
	reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: status, ObservedGeneration: generation,
		Reason: reason, Message: truncate(message, maxMessage),
	})
}

// ObservedGeneration returns the newest generation that a condition was set for,
// or zero without conditions.
func ObservedGeneration(conditions []metav1.Condition) int64 {
	var newest int64
	for _, c := range conditions {
		newest = max(newest, c.ObservedGeneration)
	}
	return newest
}

// Get returns a condition, or the zero value where it is absent.
func Get(conditions []metav1.Condition, conditionType string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, conditionType); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// IsTrue tells whether a condition is present and True.
func IsTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

const maxMessage = 2048

// truncate does what phrase.Truncate does: the API imports nothing of ours.
func truncate(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
