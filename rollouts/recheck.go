// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// computeRecheckDelay returns the time until the first of the times that are in the future. It returns zero if there
// is none.
func computeRecheckDelay(now time.Time, times []time.Time) time.Duration {
	var earliest time.Time
	for _, t := range times {
		if t.After(now) && (earliest.IsZero() || t.Before(earliest)) {
			earliest = t
		}
	}
	if earliest.IsZero() {
		return 0
	}
	return earliest.Sub(now)
}

// listWaveTimes returns when the verdict on a wave can change without any event: its soak ends, a cluster's deadline
// or grace ends, a gate is measured, or a hold ends.
func listWaveTimes(ro *v1alpha1.OperatorRollout, isStopped bool, batch map[string]v1alpha1.BatchEntry,
	waves []judgedWave, status v1alpha1.OperatorRolloutStatus, now time.Time) []time.Time {
	var times []time.Time
	for i := range waves {
		w := &waves[i]
		phase := status.Waves[i].Phase
		// The soak of a wave that is done also decides whether the release is proven: see isBlockedByDeferred.
		if phase == v1alpha1.WaveSoaking || phase == v1alpha1.WaveVerified || phase == v1alpha1.WaveSkipped {
			times = append(times, computeSoakEnd(w))
		}
		if !status.Phase.Ended() {
			times = append(times, listGateTimes(w, phase, now)...)
		}
		times = append(times, listMemberTimes(w)...)
		if !isStopped {
			times = append(times, listHoldTimes(&ro.Spec, w, batch)...)
		}
	}
	return times
}

// listEntryTimes returns when the batch entries are checked in a live view. In a stopped rollout, entries expire only
// if the rollout's phase admits nothing, so in other phases there are no times.
func listEntryTimes(batch map[string]v1alpha1.BatchEntry, isStopped bool, phase v1alpha1.RolloutPhase) []time.Time {
	if isStopped && !isHalting(phase) {
		return nil
	}
	var times []time.Time
	for _, e := range batch {
		times = append(times, FindEntryExpiry(e))
	}
	return times
}

// listPaceTimes returns when the error budgets are measured again. A nil pace is not used now.
func listPaceTimes(pace *v1alpha1.PaceStatus, now time.Time) []time.Time {
	if pace == nil {
		return nil
	}
	return []time.Time{now.Add(MeasureInterval)}
}

// listMemberTimes returns when the class or the reason of a wave's members changes without any event.
func listMemberTimes(w *judgedWave) []time.Time {
	var times []time.Time
	for i := range w.members {
		m := &w.members[i]
		if !m.Until.IsZero() && (!m.isHeld() || isBlockedByHold(w, m)) {
			times = append(times, m.Until)
		}
	}
	return times
}

// listNotWritableTimes returns when the hub tries again to write to clusters that could not be written to.
func listNotWritableTimes(ro *v1alpha1.OperatorRollout, selected []Cluster) []time.Time {
	var times []time.Time
	for i := range selected {
		if h := findNotWritableHold(ro, &selected[i]); h != nil {
			times = append(times, h.Until)
		}
	}
	return times
}
