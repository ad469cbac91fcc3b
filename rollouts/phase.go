// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// proceed turns the counts into the decision. The order matters: actions rest
// on the status that was read, so they come before the new batch is chosen.
func (p *pass) proceed() Decision {
	d := Decision{Actions: append(p.admissions(), p.adopt()...)}
	status := *p.prior.DeepCopy()
	status.ReleaseHash = p.hash
	status.Batch = p.nextBatch()
	status.Waves = p.waveStatuses(status.Batch)
	status.Unready = p.unreadyClusters()
	if verifies(p.prior.Waves, status.Waves) && !p.in.Live {
		return Decision{WantsLive: true, Status: p.in.Rollout.Status}
	}
	status.Clusters = total(status.Waves)
	status.CurrentWave = current(status.Waves)
	status.Phase = p.phase(status.Waves)
	if status.Phase.Ended() && status.EndedAt == nil {
		status.EndedAt = stampTime(p.in.Now)
	}
	d.Standing, d.Reason, status.Message = p.explain(status)
	d.Events = p.events(status)
	d.RecheckAfter = p.recheck(status)
	p.observed(&status)
	d.Status = status
	return d
}

// verifies tells whether a wave is verified that was not. A cache that is
// behind could hide clusters that are still to be changed.
func verifies(was, is []v1alpha1.WaveStatus) bool {
	count := func(waves []v1alpha1.WaveStatus) int {
		n := 0
		for _, w := range waves {
			if w.VerifiedAt != nil {
				n++
			}
		}
		return n
	}
	return count(is) > count(was)
}

// observed moves the view on only where something rests on it, so that a view
// without consequence costs no write. It never moves back.
func (p *pass) observed(status *v1alpha1.OperatorRolloutStatus) {
	changed := !equality.Semantic.DeepEqual(*status, p.in.Rollout.Status)
	if changed && !older(p.in.ObservedInstalls, p.prior.ObservedInstalls) {
		status.ObservedInstalls = p.in.ObservedInstalls
	}
}

func (p *pass) waveStatuses(batch *v1alpha1.AdmissionBatch) []v1alpha1.WaveStatus {
	started := map[string]bool{}
	if batch != nil {
		for _, e := range batch.Clusters {
			started[e.Wave] = true
		}
	}
	statuses := make([]v1alpha1.WaveStatus, 0, len(p.states))
	for i := range p.states {
		s := &p.states[i]
		w := s.prior
		w.WaveCounts = v1alpha1.WaveCounts(s.counts)
		w.MaxConcurrency, w.MaxFailures = int32(s.maxConcurrency), int32(s.maxFailures)
		w.Gates = s.gates
		if started[s.Name] && w.StartedAt == nil {
			w.StartedAt = stampTime(p.in.Now)
		}
		w.Updated = s.updated
		w.UpdatedAt, w.InterruptedAt = p.soakClock(s)
		w.Phase = p.wavePhase(i, w)
		if w.Phase == v1alpha1.WaveVerified && w.VerifiedAt == nil {
			w.VerifiedAt = stampTime(p.in.Now)
		}
		statuses = append(statuses, w)
	}
	return statuses
}

// soakClock returns when the soak began, and since when it stands still.
//
// It begins with the last success, and again when a wave that had too many
// failures has them no more, or has an updated cluster admitted again. It stands
// still while an updated cluster is in its grace, so that the soak is time in
// which every cluster that counts as succeeded was Ready.
func (p *pass) soakClock(s *waveState) (updatedAt, interruptedAt *metav1.Time) {
	was := s.prior
	// Where clusters were removed, a success may hide behind an equal count.
	succeeded := s.updated > was.Updated || s.updated > 0 && s.counts.Removed != was.Removed
	recovered := s.updated > 0 && hasTooManyFailed(was) && !s.failing()
	updatedAt, interruptedAt = was.UpdatedAt, was.InterruptedAt
	switch {
	case s.readmits():
		return nil, nil // it begins once the admission is seen
	case succeeded || recovered || updatedAt == nil && s.updated > 0:
		updatedAt, interruptedAt = roundUp(p.in.Now), nil
	case interruptedAt != nil && s.unready == 0 && updatedAt != nil:
		updatedAt = roundUp(updatedAt.Add(p.in.Now.Sub(interruptedAt.Time)))
	}
	switch {
	case s.unready == 0 || was.VerifiedAt != nil:
		interruptedAt = nil
	case interruptedAt == nil:
		interruptedAt = stampTime(p.in.Now)
	}
	return updatedAt, interruptedAt
}

// wavePhase decides in this order; see the diagram at Next.
func (p *pass) wavePhase(i int, w v1alpha1.WaveStatus) v1alpha1.WavePhase {
	s := &p.states[i]
	switch {
	case s.prior.VerifiedAt != nil:
		return v1alpha1.WaveVerified
	case p.ending() && s.prior.Phase != "":
		return s.prior.Phase
	case !s.reached || p.ending():
		return v1alpha1.WaveWaiting
	case !s.open && s.present > 0:
		return v1alpha1.WaveGated
	case s.counts.Pending > 0 || s.counts.InProgress > s.unready || p.halted() != nil || p.heldBack(i):
		return v1alpha1.WaveUpdating
	case s.unready > 0 || p.in.Now.Before(SoakEnd(s.Wave, w)):
		return v1alpha1.WaveSoaking
	}
	return v1alpha1.WaveVerified
}

// SoakEnd is when the soak of a wave is over if nothing interrupts it any more;
// it is later while the soak stands still. It is zero for a wave in which nothing
// succeeded: there is nothing to observe.
func SoakEnd(spec v1alpha1.Wave, w v1alpha1.WaveStatus) time.Time {
	if w.UpdatedAt == nil || spec.Soak == nil {
		return time.Time{}
	}
	return w.UpdatedAt.Add(spec.Soak.Duration)
}

// heldBack tells whether deferred clusters keep the next wave from starting:
// too many of them, or nothing at all that the release was proven on.
func (p *pass) heldBack(i int) bool {
	s := &p.states[i]
	if s.counts.Deferred == 0 {
		return false
	}
	var proven int32
	for _, other := range p.states[:i+1] {
		proven += other.counts.Succeeded
	}
	if proven == 0 {
		return true
	}
	later := 0
	for _, other := range p.states[i+1:] {
		later += other.present
	}
	return later > 0 && int(s.counts.Deferred) > p.maxDeferred(int(s.counts.Total))
}

func (p *pass) maxDeferred(total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(p.strategy.MaxDeferred, total, false)
	if err != nil {
		return 0
	}
	return n
}

// phase decides in this order. What a person asked for comes before what was
// observed, other than the end.
func (p *pass) phase(waves []v1alpha1.WaveStatus) v1alpha1.RolloutPhase {
	abort := p.in.Rollout.Spec.Abort
	halted := p.halted() != nil
	switch {
	case p.prior.Phase.Ended():
		return p.prior.Phase
	case abort != nil && abort.Superseded:
		return v1alpha1.RolloutSuperseded
	case abort != nil:
		return v1alpha1.RolloutAborted
	case current(waves) == "":
		return v1alpha1.RolloutSucceeded
	case p.in.Rollout.Spec.Blocked != "":
		// Clusters that stopped on their way did not fail: no policy ends it.
		return v1alpha1.RolloutHalted
	case halted && p.strategy.OnFailure == v1alpha1.FailureAbort:
		return v1alpha1.RolloutAborted
	case p.in.Rollout.Spec.Paused:
		return v1alpha1.RolloutPaused
	case halted:
		return v1alpha1.RolloutHalted
	}
	return v1alpha1.RolloutProgressing
}

// current is the first wave that is not verified, empty if all are.
func current(waves []v1alpha1.WaveStatus) string {
	for _, w := range waves {
		if w.Phase != v1alpha1.WaveVerified {
			return w.Name
		}
	}
	return ""
}

func total(waves []v1alpha1.WaveStatus) v1alpha1.WaveCounts {
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

// recheck is the time until a soak ends, a cluster's deadline or grace is over or
// a batch entry is to be doubted, whichever is first.
func (p *pass) recheck(status v1alpha1.OperatorRolloutStatus) time.Duration {
	var next time.Time
	for _, t := range p.due(status) {
		if t.After(p.in.Now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if next.IsZero() {
		return 0
	}
	return next.Sub(p.in.Now)
}

// due lists the times at which time alone changes the verdict.
func (p *pass) due(status v1alpha1.OperatorRolloutStatus) []time.Time {
	var times []time.Time
	for i := range p.states {
		s := &p.states[i]
		if status.Waves[i].Phase == v1alpha1.WaveSoaking {
			times = append(times, SoakEnd(s.Wave, status.Waves[i]))
		}
		for _, m := range s.members {
			times = append(times, m.Until)
		}
	}
	if !p.stopped() || halting(status.Phase) {
		for _, e := range p.batch {
			times = append(times, e.AdmittedAt.Add(entryDoubt+time.Second))
		}
	}
	return times
}

// roundUp is a time as the API keeps it, rounded up: a soak counted from it is
// never shorter than asked.
func roundUp(t time.Time) *metav1.Time {
	return stampTime(t.Add(time.Second - time.Nanosecond))
}
