// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// isMeasuredGate reports whether a gate of a wave judges the release by measurements.
func isMeasuredGate(r *v1alpha1.OperatorRollout, wave, gate string) bool {
	return slices.Contains(rollouts.GatesOf(r, false), rollouts.GateRef{Wave: wave, Gate: gate})
}

// listMeasurementEvidence returns the measurement of a gate, and its query, as evidence.
func listMeasurementEvidence(r *v1alpha1.OperatorRollout, g v1alpha1.GateStatus) []Evidence {
	m := g.Measurement
	if m == nil {
		return nil
	}
	observed := fmt.Sprintf("%s, threshold %s, %d samples in %s", m.Value, m.Threshold, m.Samples, m.Window.Duration)
	if m.Value == "" {
		observed = fmt.Sprintf("no value in %s", m.Window.Duration)
	}
	evidence := []Evidence{{Object: readRolloutStatus(r).object, Field: "measurement of gate " + g.Name,
		Observed: observed, Time: &m.At}}
	if m.Query != "" {
		evidence = append(evidence, Evidence{Object: readRolloutStatus(r).object, Field: "query of gate " + g.Name,
			Observed: phrase.OneLine(m.Query), Time: &m.At})
	}
	return evidence
}

// listVerifyingNext says when the windows of a wave's gates end. It returns nil if the wave was not updated, or if the
// release was observed on no cluster.
func listVerifyingNext(now time.Time, r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) []Next {
	if w.UpdatedAt == nil || findVerifyingReason(w) == v1alpha1.ReasonNotObserved {
		return nil
	}
	var next []Next
	for _, g := range rollouts.WaveSpec(r, w.Name).Gates {
		end := w.UpdatedAt.Add(rollouts.GateWindow(g))
		if rollouts.IsMeasured(g) && end.After(now) {
			next = append(next, Next{Text: fmt.Sprintf("The window of gate %s ends, and the gate has its verdict "+
				"if there is "+
				"enough data.", g.Name), At: &metav1.Time{Time: end}})
		}
	}
	return next
}
