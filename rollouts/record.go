// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// record returns the decision that follows from the choice: the next status, the events, the questions to measure, and
// when to check again. If a wave would be done in a cached view, it returns a request for a live view instead.
func record(o observation, j judged, c choice) Decision {
	in, ro := o.in, o.in.Rollout
	status := computeStatus(o, j, c)
	if hasNewVerified(o.prior.Waves, status.Waves) && !in.Live {
		return Decision{WantsLive: true, Status: ro.Status}
	}
	var pace *v1alpha1.PaceStatus
	if !j.isStopped && needsPace(o.pace, ro.Name, in.Installs, c.waves, status.Waves) {
		pace, status.Pace = o.pace, o.pace
	}
	d := Decision{Actions: c.actions}
	d.Standing, d.Reason, status.Message = explainRollout(o, j.halted, c.waves, status)
	d.Events = slices.Concat(o.events, listChangeEvents(o.prior, status, pace), listWaveEvents(c.waves, status.Waves),
		listGateEvents(o.prior, status.Waves))
	if !status.Phase.Ended() {
		d.Questions = listGateQuestions(in, o.hash, c.waves, status.Waves)
	}
	if pace != nil { // late joiners need the pace too
		d.Questions = append(d.Questions, listPaceQuestions(in, readPaceSpec(ro.Spec, o.strategy).Objectives)...)
	}
	d.RecheckAfter = computeRecheckDelay(in.Now, slices.Concat(listNotWritableTimes(ro, o.selected),
		listPaceTimes(pace, in.Now), listEntryTimes(o.batch, j.isStopped, status.Phase),
		listWaveTimes(ro, j.isStopped, o.batch, c.waves, status, in.Now)))
	// The version of the view is recorded only if the status changed, because a new view alone needs no write. An
	// older version never replaces a newer version.
	changed := !equality.Semantic.DeepEqual(status, ro.Status)
	if changed && !isOlder(in.ObservedInstalls, o.prior.ObservedInstalls) {
		status.ObservedInstalls = in.ObservedInstalls
	}
	status.Phases = appendPhaseChange(in, status)
	d.Status = status
	return d
}

// computeStatus returns the next status without the message, the pace, the changes of the phase and the version of
// the view.
func computeStatus(o observation, j judged, c choice) v1alpha1.OperatorRolloutStatus {
	ro, now := o.in.Rollout, o.in.Now
	status := *o.prior.DeepCopy()
	status.ReleaseHash = o.hash
	status.Batch = c.batch
	status.Waves = computeWaveStatuses(ro, o.strategy, j.halted != nil, c, now)
	status.Unready = listUnreadyClusters(c.waves, o.unready)
	status.HeldBack = nil
	if !j.isStopped { // a stopped rollout blocks all clusters
		status.HeldBack = groupHeldClusters(ro, c.waves, o.selected, o.installs)
	}
	status.WindowOverride = recordWindowOverride(ro.Spec.WindowOverride, o.prior.WindowOverride, now)
	if ro.MayAdmit() {
		status.Policies = o.policies
	}
	status.Clusters = sumCounts(status.Waves)
	status.CurrentWave = findCurrentWave(status.Waves)
	if needsRollback(ro, o.strategy.OnFailure, o.in.Installs, o.clusters, c.waves, status.Waves) {
		status.Phase = v1alpha1.RolloutRolledBack
	} else {
		status.Phase = decideRolloutPhase(ro, o.strategy.OnFailure, j.halted != nil, o.unmet != "", status.CurrentWave)
	}
	if status.Phase.Ended() && status.EndedAt == nil {
		status.EndedAt = roundDown(now)
	}
	return status
}

// hasNewVerified reports whether current has more verified or skipped waves than previous. Such a decision needs a live
// view, because an old cache could hide clusters that must still be changed.
func hasNewVerified(previous, current []v1alpha1.WaveStatus) bool {
	count := func(waves []v1alpha1.WaveStatus) int {
		n := 0
		for _, w := range waves {
			if w.IsDone() {
				n++
			}
		}
		return n
	}
	return count(current) > count(previous)
}

// computeWaveStatuses returns the next statuses of the waves.
func computeWaveStatuses(ro *v1alpha1.OperatorRollout, strategy v1alpha1.RolloutStrategy, isHalted bool, c choice,
	now time.Time) []v1alpha1.WaveStatus {
	started := map[string]bool{}
	if c.batch != nil {
		for _, e := range c.batch.Clusters {
			started[e.Wave] = true
		}
	}
	statuses := make([]v1alpha1.WaveStatus, 0, len(c.waves))
	for i := range c.waves {
		w := &c.waves[i]
		status := w.prior
		status.WaveCounts = v1alpha1.WaveCounts(w.counts)
		status.MaxConcurrency, status.MaxFailures = int32(w.maxConcurrency), int32(w.maxFailures)
		if status.Soak = w.Soak; status.Soak.Duration == 0 {
			status.Soak = nil
		}
		if started[w.Name] && status.StartedAt == nil {
			status.StartedAt = roundDown(now)
		}
		status.Updated = w.updated
		status.UpdatedAt, status.InterruptedAt = w.clock.updatedAt, w.clock.interruptedAt
		isUpdating := isHalted || isBlockedByDeferred(ro, strategy, c.waves, i, now)
		status.Phase = decideWavePhase(w, ro.MayAdmit(), isUpdating, now)
		status.Gates = listReportedGates(w, status.Phase, ro.MayAdmit())
		if status.Phase == v1alpha1.WaveVerified && status.VerifiedAt == nil {
			status.VerifiedAt = roundDown(now)
		}
		status.FailedAt = computeFailedAt(status, now)
		statuses = append(statuses, status)
	}
	return statuses
}

// computeFailedAt returns the time at which a wave was first judged failed. It returns nil if the wave is not judged
// failed, or if it is done.
func computeFailedAt(w v1alpha1.WaveStatus, now time.Time) *metav1.Time {
	switch {
	case w.IsDone() || !IsJudgedFailed(w):
		return nil
	case w.FailedAt != nil:
		return w.FailedAt
	}
	return roundDown(now)
}

// decideWavePhase returns the phase of a wave; see the diagram at Next. The first case that applies decides.
// isUpdating keeps an updated wave in Updating, because the rollout is halted or deferred clusters block the
// next wave.
func decideWavePhase(w *judgedWave, mayAdmit, isUpdating bool, now time.Time) v1alpha1.WavePhase {
	switch {
	case w.prior.VerifiedAt != nil:
		return v1alpha1.WaveVerified
	case w.prior.Phase == v1alpha1.WaveSkipped:
		return v1alpha1.WaveSkipped
	case !mayAdmit && w.prior.Phase != "":
		return w.prior.Phase
	case !w.reached || !mayAdmit:
		return v1alpha1.WaveWaiting
	case w.Total == 0 && w.present == 0:
		return v1alpha1.WaveSkipped
	case !w.open && w.present > 0:
		return v1alpha1.WaveGated
	case w.failedGate != nil:
		return v1alpha1.WaveVerifying
	case w.Pending > 0 || w.InProgress > w.unready || isUpdating,
		w.Total == 0: // its first cluster has just joined
		return v1alpha1.WaveUpdating
	case w.unobserved != nil && !w.unobserved.IsPassed():
		return v1alpha1.WaveVerifying
	case w.unobserved != nil:
		return v1alpha1.WaveVerified
	case w.unready > 0 || now.Before(computeSoakEnd(w)):
		return v1alpha1.WaveSoaking
	case !hasOnlyPassedGates(w.gates):
		return v1alpha1.WaveVerifying
	}
	return v1alpha1.WaveVerified
}

// decideRolloutPhase returns the phase of a rollout that is not rolled back. The first case that applies decides:
// apart from an end, a person's request comes before an observation. currentWave is empty if all waves are done.
func decideRolloutPhase(ro *v1alpha1.OperatorRollout, onFailure v1alpha1.FailurePolicy, isHalted, isUnmet bool,
	currentWave string) v1alpha1.RolloutPhase {
	spec := ro.Spec
	switch {
	case ro.Status.Phase.Ended():
		return ro.Status.Phase
	case spec.Abort != nil && spec.Abort.Superseded:
		return v1alpha1.RolloutSuperseded
	case spec.Abort != nil:
		return v1alpha1.RolloutAborted
	case currentWave == "":
		return v1alpha1.RolloutSucceeded
	case spec.Blocked != "":
		// A block is not a failure of clusters, so this case comes before the failure policy.
		return v1alpha1.RolloutHalted
	case isHalted && onFailure == v1alpha1.FailureAbort:
		return v1alpha1.RolloutAborted
	case spec.Paused:
		return v1alpha1.RolloutPaused
	case isHalted:
		return v1alpha1.RolloutHalted
	case isUnmet:
		return v1alpha1.RolloutHalted
	}
	return v1alpha1.RolloutProgressing
}

// findCurrentWave returns the name of the first wave that is not done. It returns "" if all waves are done.
func findCurrentWave(waves []v1alpha1.WaveStatus) string {
	for _, w := range waves {
		if !w.IsDone() {
			return w.Name
		}
	}
	return ""
}

// sumCounts adds up the counts of all waves.
func sumCounts(waves []v1alpha1.WaveStatus) v1alpha1.WaveCounts {
	var sum v1alpha1.WaveCounts
	for _, w := range waves {
		sum.Total += w.Total
		sum.Pending += w.Pending
		sum.InProgress += w.InProgress
		sum.Succeeded += w.Succeeded
		sum.Failed += w.Failed
		sum.Deferred += w.Deferred
		sum.Removed += w.Removed
	}
	return sum
}

// listUnreadyClusters returns the members that are not Ready in waves that are judged, sorted by name, for the next
// status. unready has the clusters that the current status records; they come first if there are more than MaxUnready.
func listUnreadyClusters(waves []judgedWave, recordedSince map[string]time.Time) []v1alpha1.UnreadyCluster {
	var recorded, added []v1alpha1.UnreadyCluster
	for i := range waves {
		for k := range waves[i].members {
			m := &waves[i].members[k]
			if m.unreadySince.IsZero() || m.Class == ClassRemoved {
				continue
			}
			entry := v1alpha1.UnreadyCluster{Cluster: m.Cluster, Since: metav1.Time{Time: m.unreadySince.UTC()}}
			if _, ok := recordedSince[m.Cluster]; ok {
				recorded = append(recorded, entry)
			} else {
				added = append(added, entry)
			}
		}
	}
	free := max(MaxUnready-len(recorded), 0)
	all := append(recorded, added[:min(free, len(added))]...)
	slices.SortFunc(all, func(a, b v1alpha1.UnreadyCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return all
}

// recordInvalid returns the decision for a spec that is not valid. An API server does not admit such a spec.
func recordInvalid(in Input, err error) *Decision {
	status := *in.Rollout.Status.DeepCopy()
	if status.Phase == "" {
		status.Phase = v1alpha1.RolloutPending
	}
	status.Message = err.Error()
	status.Phases = appendPhaseChange(in, status)
	return &Decision{Status: status, Standing: Stuck, Reason: v1alpha1.ReasonInvalidSpec}
}

// recordSuperseded returns the decision that ends a superseded rollout. It does not count the clusters, because the
// newer rollout already takes them over and the counts would mislead.
func recordSuperseded(in Input) *Decision {
	status := *in.Rollout.Status.DeepCopy()
	status.HeldBack = nil
	d := Decision{Standing: Stuck, Reason: v1alpha1.ReasonSuperseded}
	status.Batch, d.RecheckAfter = expireBatch(status.Batch, in.Now)
	switch status.Phase {
	case v1alpha1.RolloutSucceeded:
		d.Standing, d.Reason = Done, v1alpha1.ReasonSucceeded
	case v1alpha1.RolloutAborted:
		d.Reason = v1alpha1.ReasonAborted
	case v1alpha1.RolloutRolledBack:
		d.Reason = v1alpha1.ReasonRolledBack
	case v1alpha1.RolloutSuperseded: // already recorded
	default:
		status.Phase = v1alpha1.RolloutSuperseded
		status.EndedAt = roundDown(in.Now)
		status.Message = "a newer rollout took over"
	}
	status.Phases = appendPhaseChange(in, status)
	d.Status = status
	return &d
}

// The API's limits.
const (
	maxPhases       = 20
	maxPhaseMessage = 512
)

// appendPhaseChange returns the recorded changes of the phase, with the change from the current status to next.
func appendPhaseChange(in Input, next v1alpha1.OperatorRolloutStatus) []v1alpha1.PhaseChange {
	prior := in.Rollout.Status
	if next.Phase == "" || next.Phase == prior.Phase {
		return prior.Phases
	}
	all := append(slices.Clone(prior.Phases), v1alpha1.PhaseChange{Phase: next.Phase, At: *roundDown(in.Now),
		Message: phrase.Truncate(next.Message, maxPhaseMessage)})
	return all[max(0, len(all)-maxPhases):]
}

// roundDown returns the time in whole seconds, as the API stores it.
func roundDown(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// roundUp returns the time in whole seconds, rounded up, so that a soak that is counted from it is not too short.
func roundUp(t time.Time) *metav1.Time {
	return roundDown(t.Add(time.Second - time.Nanosecond))
}
