// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ChangingUntil returns until when the change that an install was admitted to may
// go on: from its admission until the grace after its success is over. Failure, the
// deadline and an agent that is offline end it; then the time is zero. ro is the
// rollout that admitted the install; nil if it is gone.
//
// The time of the success is that of the agent's clock. It is believed only between
// the admission and the deadline, which are of the hub's.
func ChangingUntil(now time.Time, ro *v1alpha1.OperatorRollout, o *v1alpha1.OperatorInstall, c Cluster) time.Time {
	install := ObserveInstall(o)
	if install.Stamp.RolloutUID == "" || install.Deleting || !c.Online {
		return time.Time{}
	}
	strategy := v1alpha1.RolloutStrategy{}
	if ro != nil {
		strategy = ro.Spec.Strategy
	}
	w := waveNamed(strategy, o.Spec.Admission.Wave)
	end := deadlineOf(install, c, w, offlinePolicy(Defaulted(strategy), o.Spec.Admission.Release))
	switch {
	case install.SucceededHash == install.Stamp.Hash:
		succeeded := install.Stamp.AdmittedAt
		if at := o.Status.SucceededAt; at != nil {
			succeeded = latest(succeeded, earliest(at.Time, end))
		}
		end = succeeded.Add(w.UnreadyGrace.Duration)
	case install.Stalled:
		return time.Time{}
	}
	if !now.Before(end) {
		return time.Time{}
	}
	return end
}

// LongestGrace is the longest time that the change of an install may go on after its
// success, for installs that any of the rollouts admitted, or one that is gone.
func LongestGrace(all []v1alpha1.OperatorRollout) time.Duration {
	grace := DefaultUnreadyGrace
	for i := range all {
		for _, w := range all[i].Spec.Strategy.Waves {
			if w.UnreadyGrace != nil {
				grace = max(grace, w.UnreadyGrace.Duration)
			}
		}
	}
	return grace
}

// waveNamed is a wave of a strategy with its defaults; those of any wave where the
// strategy has none of that name.
func waveNamed(strategy v1alpha1.RolloutStrategy, name string) v1alpha1.Wave {
	all := allWaves(strategy)
	i := slices.IndexFunc(all, func(w v1alpha1.Wave) bool { return w.Name == name })
	if i < 0 {
		all, i = allWaves(v1alpha1.RolloutStrategy{}), 0
	}
	return all[i]
}

// EntryEnds is when a batch entry is looked up, if its stamp was not seen before.
func EntryEnds(e v1alpha1.BatchEntry) time.Time { return e.AdmittedAt.Add(entryDoubt + time.Second) }

// IsSeen tells whether a stamp is the one that a batch entry of a rollout stands for.
func IsSeen(ro *v1alpha1.OperatorRollout, e v1alpha1.BatchEntry, stamp Stamp) bool {
	return stamp.RolloutUID == string(ro.UID) && stamp.Attempt >= e.Attempt
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
