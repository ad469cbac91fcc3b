// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// listChangeEvents returns events for changes of the whole rollout: overridden windows, policies and the pace. The
// conditions report the phase.
func listChangeEvents(previous, current v1alpha1.OperatorRolloutStatus, pace *v1alpha1.PaceStatus) []Event {
	events := append(listOverrideEvents(previous.WindowOverride, current.WindowOverride),
		listPolicyEvents(previous.Policies, current.Policies)...)
	return append(events, listPaceEvents(previous.Pace, pace)...)
}

// listWaveEvents returns events for the waves that were interrupted, started or verified.
func listWaveEvents(waves []judgedWave, statuses []v1alpha1.WaveStatus) []Event {
	var events []Event
	for i, current := range statuses {
		w := &waves[i]
		previous := w.prior
		if current.InterruptedAt != nil && previous.InterruptedAt == nil {
			events = append(events, Event{Reason: "WaveInterrupted", Message: explainUnready(w)})
		}
		if current.StartedAt != nil && previous.StartedAt == nil {
			events = append(events, Event{Reason: "WaveStarted",
				Message: fmt.Sprintf("wave %s: %s, %d at a time", w.Name, phrase.Count(w.Total, "cluster"),
					w.maxConcurrency)})
		}
		if current.VerifiedAt != nil && previous.VerifiedAt == nil && w.Total > 0 {
			events = append(events, Event{Reason: "WaveVerified", Message: fmt.Sprintf(
				"wave %s: %s, %d failed, %d deferred", w.Name, formatWaveProgress(w), w.Failed, w.Deferred)})
		}
	}
	return events
}
