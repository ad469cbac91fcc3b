// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Severity says how bad a state is. The command line and the dashboards use it to choose colors, so that a state has
// the same color everywhere.
type Severity string

const (
	// Neutral is for states in which work continues and no person needs to act.
	Neutral Severity = "Neutral"
	// Good is for states that are as they should be.
	Good Severity = "Good"
	// Warning is for states that wait for something or that a person should check.
	Warning Severity = "Warning"
	// Bad is for failures. A person must act.
	Bad Severity = "Bad"
	// Inactive is for states that are over or have not begun.
	Inactive Severity = "Inactive"
)

var rolloutSeverities = map[v1alpha1.RolloutPhase]Severity{
	v1alpha1.RolloutPending: Neutral, v1alpha1.RolloutProgressing: Neutral, v1alpha1.RolloutSucceeded: Good,
	v1alpha1.RolloutPaused: Warning, v1alpha1.RolloutHalted: Bad, v1alpha1.RolloutAborted: Bad,
	v1alpha1.RolloutRolledBack: Bad, v1alpha1.RolloutSuperseded: Inactive,
}

// RolloutSeverity returns the severity of a rollout's phase. An empty phase is treated as Pending.
func RolloutSeverity(p v1alpha1.RolloutPhase) Severity { return cmp.Or(rolloutSeverities[p], Neutral) }

var waveSeverities = map[v1alpha1.WavePhase]Severity{
	v1alpha1.WaveWaiting: Inactive, v1alpha1.WaveGated: Warning, v1alpha1.WaveUpdating: Neutral,
	v1alpha1.WaveSoaking: Neutral, v1alpha1.WaveVerifying: Neutral, v1alpha1.WaveVerified: Good,
	v1alpha1.WaveSkipped: Inactive,
}

// WaveSeverity returns the severity of a wave's phase.
func WaveSeverity(p v1alpha1.WavePhase) Severity { return cmp.Or(waveSeverities[p], Neutral) }

// ConditionSeverity returns the severity of a condition: Good for the value that is good for its type, and otherwise
// Bad if its type reports a failure, and Warning for all other types. Reconciling is Neutral for every value, and
// the reason PowerUnknown is a Warning for every value.
func ConditionSeverity(c metav1.Condition) Severity {
	good := metav1.ConditionTrue
	if v1alpha1.ConditionIsBadWhenTrue(c.Type) {
		good = metav1.ConditionFalse
	}
	switch {
	case c.Type == v1alpha1.ConditionReconciling:
		return Neutral
	case c.Reason == v1alpha1.ReasonPowerUnknown: // it is not known whether the cluster hibernates
		return Warning
	case c.Status == good:
		return Good
	case c.Type == v1alpha1.ConditionStalled, c.Type == v1alpha1.ConditionReconcileFailing:
		return Bad
	default:
		return Warning
	}
}
