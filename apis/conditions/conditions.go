// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions writes status conditions in the terms of kstatus. It is pure, because planners use it.
package conditions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// State is the state of an object in the terms of kstatus.
type State int

const (
	// InProgress means that work continues and no person needs to act.
	InProgress State = iota
	// Current means that the object matches its spec.
	Current
	// Stalled means that a person must act. The object recovers by itself after that.
	Stalled
)

// Summary is the state of an object, and the reason for a person.
type Summary struct {
	State   State
	Reason  string
	Message string
}

// Summarize sets the conditions Ready, Reconciling and Stalled from a summary. It removes Reconciling and Stalled
// instead of setting them to False.
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

// Set sets one condition to True or False. The transition time changes only with the status. The message is truncated
// to the API's limit.
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

// setStatus sets one condition with a truncated message.
func setStatus(conditions *[]metav1.Condition, generation int64, conditionType string, status metav1.ConditionStatus,
	reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: status, ObservedGeneration: generation,
		Reason: reason, Message: truncate(message, maxMessage),
	})
}

// ObservedGeneration returns the newest generation that a condition was set for; zero if there are no conditions.
func ObservedGeneration(conditions []metav1.Condition) int64 {
	var newest int64
	for _, c := range conditions {
		newest = max(newest, c.ObservedGeneration)
	}
	return newest
}

// Get returns a condition; the zero value if it does not exist.
func Get(conditions []metav1.Condition, conditionType string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, conditionType); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// IsTrue reports whether a condition exists and is True.
func IsTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

// maxMessage is the maximum length of a condition's message.
const maxMessage = 2048

// truncate does the same as phrase.Truncate, because the API imports no other package of Bellwether.
func truncate(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
