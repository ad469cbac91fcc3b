// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// MinAge is how long a custom resource is not counted after its creation,
// and after its deletion was requested: it needs time to become ready.
const MinAge = 5 * time.Minute

// Operand contains the fields of a custom resource that are
// needed here. A field with an unexpected type is left empty.
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

// OperandCondition is a condition of a custom resource.
type OperandCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// Readiness returns a value of series.Ready, or false if the resource is not
// counted because it was created, or its deletion was requested, less than
// MinAge ago. It reads conditions as kstatus does, with Available if there is
// no Ready:
//
//	being deleted, or status is outdated          unknown
//	Stalled is True                               false
//	Ready, else Available, is True or False       true or false
//	anything else                                 unknown
func (o *Operand) Readiness(now time.Time) (string, bool) {
	if now.Sub(o.Metadata.CreationTimestamp.Time) < MinAge {
		return "", false
	}
	if deleted := o.Metadata.DeletionTimestamp; deleted != nil {
		return series.ReadyUnknown, now.Sub(deleted.Time) >= MinAge
	}
	if o.isOutdated(o.Status.ObservedGeneration) {
		return series.ReadyUnknown, true
	}
	if stalled := o.readCondition("Stalled"); stalled == series.ReadyTrue {
		return series.ReadyFalse, true
	}
	if ready := o.readCondition("Ready"); ready != "" {
		return ready, true
	}
	if available := o.readCondition("Available"); available != "" {
		return available, true
	}
	return series.ReadyUnknown, true
}

// isOutdated reports whether an observed generation is set and is not the newest one.
func (o *Operand) isOutdated(observed int64) bool {
	return observed != 0 && observed < o.Metadata.Generation
}

// readCondition returns a value of series.Ready, or an empty string if there is no such condition.
func (o *Operand) readCondition(conditionType string) string {
	for _, c := range o.Status.Conditions {
		if c.Type != conditionType {
			continue
		}
		switch {
		case o.isOutdated(c.ObservedGeneration):
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
