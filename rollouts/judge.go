// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// judged has the verdicts on the waves and their consequences for the rollout.
type judged struct {
	waves []judgedWave
	// halted is the first wave that stops the rollout; nil if there is none.
	halted *judgedWave
	// isStopped is true if no cluster may be admitted now.
	isStopped bool
}

// judgedWave is a wave with its verdicts.
type judgedWave struct {
	classifiedWave
	maxConcurrency, maxFailures int
	clock                       soakClock
	// unobserved is the extra gate of a wave in which the release was observed on no cluster; nil for other waves.
	unobserved *v1alpha1.GateStatus
	// failedGate is the first failed gate of a wave that is not verified; nil if there is none.
	failedGate *v1alpha1.GateStatus
	// hasTooManyFailed is true if more clusters failed than the wave permits.
	hasTooManyFailed bool
	// isFailing is true if too many clusters of the wave or a gate failed.
	isFailing bool
	// isAdmitting is true if the wave may admit clusters while the rollout is not stopped.
	isAdmitting bool
}

// judge returns the waves with their verdicts: when their soak began, which gates pass, and whether they stop
// the rollout.
func judge(o observation, classified []classifiedWave) judged {
	ro := o.in.Rollout
	j := judged{waves: make([]judgedWave, 0, len(classified))}
	for i := range classified {
		j.waves = append(j.waves, judgeWave(o, classified[i]))
	}
	for i := range j.waves { // whether a wave is blocked depends on the other waves
		w := &j.waves[i]
		if !isUnobserved(ro, w, isBlockedByDeferred(ro, o.strategy, j.waves, i, o.in.Now)) {
			continue
		}
		w.unobserved = judgeUnobserved(ro, w, o.in.Now)
		for k := range w.gates { // these gates have no cluster to judge, so they block nothing
			w.gates[k].WaitingSince = nil
		}
	}
	j.halted = findHaltedWave(ro, j.waves)
	j.isStopped = isStopped(ro, o.unmet, j.halted)
	return j
}

// judgeWave judges one wave independently of the other waves: its limits, its soak, its gates, and whether it fails. A
// failing wave of a rollback continues to admit clusters.
func judgeWave(o observation, classified classifiedWave) judgedWave {
	ro, now := o.in.Rollout, o.in.Now
	w := judgedWave{classifiedWave: classified}
	w.maxConcurrency = reduceConcurrency(w.computeConcurrency(int(w.Total)), o.pace)
	w.maxFailures = w.computeMaxFailures(int(w.Total))
	w.hasTooManyFailed = int(w.Failed) > w.maxFailures
	hasRecovered := hadTooManyFailed(w.prior) && !w.hasTooManyFailed || isRejudged(ro, w.prior) ||
		hasRecoveredMember(w.members, o.unready, w.UnreadyGrace.Duration, now)
	w.clock = advanceSoak(&w.classifiedWave, hasRecovered, now)
	w.gates = judgeGates(o.in, o.hash, o.installs, &w.classifiedWave, w.clock)
	w.failedGate = findFailedGate(w.prior, w.gates)
	w.isFailing = w.hasTooManyFailed || w.failedGate != nil
	w.isAdmitting = w.open && (!w.isFailing || ro.Spec.Rollback != nil)
	return w
}

// hadTooManyFailed reports whether the wave's status has more failed clusters than the wave permits.
func hadTooManyFailed(w v1alpha1.WaveStatus) bool { return w.Failed > w.MaxFailures }

// IsJudgedFailed reports whether too many clusters of a wave or a gate of the wave failed.
func IsJudgedFailed(w v1alpha1.WaveStatus) bool {
	return w.Phase != v1alpha1.WaveWaiting && hadTooManyFailed(w) ||
		slices.ContainsFunc(w.Gates, func(g v1alpha1.GateStatus) bool { return g.Verdict == v1alpha1.GateFailed })
}

// findHaltedWave returns the first wave that fails and so halts the rollout. It returns nil if there is none. A
// rollout that succeeded is not halted: then only the failing wave stops. A rollback first changes its other clusters.
func findHaltedWave(ro *v1alpha1.OperatorRollout, waves []judgedWave) *judgedWave {
	if ro.Status.Phase == v1alpha1.RolloutSucceeded {
		return nil
	}
	for i := range waves {
		if waves[i].isFailing && (ro.Spec.Rollback == nil || !waves[i].isChanging()) {
			return &waves[i]
		}
	}
	return nil
}

// isStopped reports whether no cluster may be admitted now. unmet is the policies' requirement that is not met; "" if
// all are met.
func isStopped(ro *v1alpha1.OperatorRollout, unmet string, halted *judgedWave) bool {
	spec := ro.Spec
	return !ro.MayAdmit() || spec.Paused || spec.Blocked != "" || unmet != "" || halted != nil
}

// soakClock has the start of a wave's soak, and since when the soak is interrupted. A time is nil if it does
// not apply.
type soakClock struct{ updatedAt, interruptedAt *metav1.Time }

// advanceSoak returns the clock of a wave's soak.
//
// The soak begins with the last success. It begins again in four cases: the wave had too many failures and has
// recovered, an updated cluster is admitted again, the wave is retried after a gate failed, or a failed cluster is
// Ready again. The clock stands still while an updated cluster is in its grace. So every cluster that counts as
// succeeded is Ready for the whole soak.
func advanceSoak(w *classifiedWave, hasRecovered bool, now time.Time) soakClock {
	previous := w.prior
	// If clusters were removed, the count can be the same although a cluster succeeded.
	succeeded := w.updated > previous.Updated || w.updated > 0 && w.Removed != previous.Removed
	recovered := w.updated > 0 && hasRecovered
	clock := soakClock{previous.UpdatedAt, previous.InterruptedAt}
	isFirst := clock.updatedAt == nil && w.updated > 0
	switch {
	case isReadmitting(w.members):
		return soakClock{} // the soak begins again after the cluster succeeds
	case succeeded || recovered || isFirst:
		clock = soakClock{updatedAt: roundUp(now)}
	case clock.interruptedAt != nil && w.unready == 0 && clock.updatedAt != nil:
		// The interruption has ended. Its time does not count as soak.
		clock.updatedAt = roundUp(clock.updatedAt.Add(now.Sub(clock.interruptedAt.Time)))
	}
	switch {
	case w.unready == 0 || previous.IsDone():
		clock.interruptedAt = nil
	case clock.interruptedAt == nil:
		clock.interruptedAt = roundDown(now)
	}
	return clock
}

// isReadmitting reports whether an updated member was admitted again or must be admitted again.
func isReadmitting(members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool {
		return m.Updated && (m.Class == ClassPending || m.Class == ClassInProgress && !m.isUnready())
	})
}

// hasRecoveredMember reports whether a cluster is Ready again that was not Ready for longer than its grace. Such a
// cluster was not Ready for the whole soak, so the soak must begin again.
func hasRecoveredMember(members []member, unready map[string]time.Time, grace time.Duration, now time.Time) bool {
	return len(unready) > 0 && slices.ContainsFunc(members, func(m member) bool {
		since, wasUnready := unready[m.Cluster]
		return wasUnready && m.provesRelease && m.Class == ClassSucceeded && !now.Before(since.Add(grace))
	})
}

// SoakEnd returns when the soak of a wave ends if it is not interrupted. It returns zero for a wave without a success,
// because there is nothing to observe.
func SoakEnd(spec v1alpha1.Wave, w v1alpha1.WaveStatus) time.Time {
	if w.UpdatedAt == nil || spec.Soak == nil {
		return time.Time{}
	}
	return w.UpdatedAt.Add(spec.Soak.Duration)
}

// computeSoakEnd returns the end of the soak that began with the last success, also for a verified wave.
func computeSoakEnd(w *judgedWave) time.Time {
	return SoakEnd(w.Wave, v1alpha1.WaveStatus{UpdatedAt: w.clock.updatedAt})
}

// isBlockedByDeferred reports whether deferred clusters of the wave at a place block the next wave: too many clusters
// are deferred, or no cluster of this wave or of an earlier wave with a finished soak has proven the release. After the
// last wave with clusters, the number of deferred clusters does not matter.
func isBlockedByDeferred(ro *v1alpha1.OperatorRollout, strategy v1alpha1.RolloutStrategy, waves []judgedWave, place int,
	now time.Time) bool {
	w := &waves[place]
	if w.Deferred == 0 || ro.Spec.Rollback != nil { // a rollback installs a release that is proven
		return false
	}
	proven := isProven(w.members) // this wave's soak blocks the next wave anyway
	for i := range waves[:place] {
		proven = proven || isProven(waves[i].members) && !now.Before(computeSoakEnd(&waves[i]))
	}
	if !proven {
		return true
	}
	laterClusters := 0
	for i := range waves[place+1:] {
		laterClusters += waves[place+1+i].present
	}
	return laterClusters > 0 && int(w.Deferred) > computeMaxDeferred(strategy, int(w.Total))
}

// isProven reports whether at least one of the members proves that the release works.
func isProven(members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.provesRelease && m.Class == ClassSucceeded })
}

// computeMaxDeferred returns how many clusters of a wave with this total can be deferred before the next wave
// is blocked.
func computeMaxDeferred(strategy v1alpha1.RolloutStrategy, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(strategy.MaxDeferred, total, false)
	if err != nil {
		return 0
	}
	return n
}
