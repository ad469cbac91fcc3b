// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Young is how long a custom resource is left out after it was made, and after
// its deletion was asked for: nothing is ready at once.
const Young = 5 * time.Minute

// Operand is what counts of a custom resource. A field that has another shape
// than most resources give it is left empty.
type Operand struct {
	Metadata struct {
		Generation        int64        `json:"generation"`
		CreationTimestamp metav1.Time  `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []OperandCondition `json:"conditions"`
	} `json:"status"`
}

// OperandCondition is one of its conditions.
type OperandCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// Readiness returns a value of series.Ready, or false if the resource does not
// count: it is too young, or was only just asked to go. It reads conditions as
// kstatus does, with Available where there is no Ready:
//
//	going for long, or not yet looked at anew     unknown
//	Stalled is True                               false
//	Ready, else Available, is True or False       true or false
//	anything else                                 unknown
func (o *Operand) Readiness(now time.Time) (string, bool) {
	if now.Sub(o.Metadata.CreationTimestamp.Time) < Young {
		return "", false
	}
	if gone := o.Metadata.DeletionTimestamp; gone != nil {
		return series.ReadyUnknown, now.Sub(gone.Time) >= Young
	}
	if o.behind(o.Status.ObservedGeneration) {
		return series.ReadyUnknown, true
	}
	if stalled := o.condition("Stalled"); stalled == series.ReadyTrue {
		return series.ReadyFalse, true
	}
	if ready := o.condition("Ready"); ready != "" {
		return ready, true
	}
	if available := o.condition("Available"); available != "" {
		return available, true
	}
	return series.ReadyUnknown, true
}

// behind tells whether a generation is known, and not the newest one.
func (o *Operand) behind(observed int64) bool {
	return observed != 0 && observed < o.Metadata.Generation
}

// condition returns a value of series.Ready, or nothing where there is no such
// condition.
func (o *Operand) condition(conditionType string) string {
	for _, c := range o.Status.Conditions {
		if c.Type != conditionType {
			continue
		}
		switch {
		case o.behind(c.ObservedGeneration):
			return series.ReadyUnknown
		case c.Status == string(metav1.ConditionTrue):
			return series.ReadyTrue
		case c.Status == string(metav1.ConditionFalse):
			return series.ReadyFalse
		}
		return series.ReadyUnknown
	}
	return ""
}
