// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ChangingUntil returns until when the change of an install might continue: from its admission to the end of the grace
// after its success. It returns zero if the change has ended: by a failure, by the deadline or because the agent is
// offline. ro is the rollout that admitted the install; nil if it was deleted.
//
// The time of the success is from the agent's clock. It counts only if it lies between the admission and the deadline,
// which are from the hub's clock.
func ChangingUntil(now time.Time, ro *v1alpha1.OperatorRollout, o *v1alpha1.OperatorInstall, c Cluster) time.Time {
	install := ObserveInstall(o)
	if install.Stamp.RolloutUID == "" || install.Deleting || !c.Online {
		return time.Time{}
	}
	strategy := v1alpha1.RolloutStrategy{}
	if ro != nil {
		strategy = ro.Spec.Strategy
	}
	w := findWaveOrDefault(strategy, o.Spec.Admission.Wave)
	end := computeDeadline(&install, &c, w.Deadline.Duration, selectOfflinePolicy(Defaulted(strategy),
		o.Spec.Admission.Release))
	switch {
	case install.SucceededHash == install.Stamp.Hash:
		succeeded := install.Stamp.AdmittedAt
		if at := o.Status.SucceededAt; at != nil {
			succeeded = maxTime(succeeded, minTime(at.Time, end))
		}
		end = succeeded.Add(w.UnreadyGrace.Duration)
	case install.Stalled: // the agent has given up this change
		return time.Time{}
	}
	if !now.Before(end) {
		return time.Time{}
	}
	return end
}

// LongestGrace returns the longest grace of all waves of the rollouts. It is at least the default, which applies to
// installs whose rollout was deleted.
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

// findWaveOrDefault returns the wave with this name and its defaults. If the strategy has no such wave, it returns a
// wave with only the defaults.
func findWaveOrDefault(strategy v1alpha1.RolloutStrategy, name string) v1alpha1.Wave {
	all := listAllWaves(strategy)
	i := slices.IndexFunc(all, func(w v1alpha1.Wave) bool { return w.Name == name })
	if i < 0 {
		all, i = listAllWaves(v1alpha1.RolloutStrategy{}), 0
	}
	return all[i]
}

// minTime returns the earlier time.
func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
