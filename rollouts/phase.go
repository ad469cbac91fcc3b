// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// proceed turns the counts into the decision. The order matters: actions rest
// on the status that was read, so they come before the new batch is chosen.
func (p *pass) proceed() Decision {
	d := Decision{Actions: append(p.admissions(), p.adopt()...)}
	d.Actions = append(d.Actions, p.jobRequests()...)
	status := *p.prior.DeepCopy()
	status.ReleaseHash = p.hash
	status.Batch = p.nextBatch()
	status.Waves = p.waveStatuses(status.Batch)
	status.Unready = p.unreadyClusters()
	status.HeldBack, status.WindowOverride = p.heldBackClusters(), p.windowOverride()
	status.Policies = p.appliedPolicies()
	status.Pace = p.reportedPace(status.Waves)
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
	d.Events = append(p.events(status), p.gateEvents(status.Waves)...)
	if !status.Phase.Ended() {
		d.Questions = p.questions(status.Waves)
	}
	d.Questions = append(d.Questions, p.paceQuestions(status.Waves)...) // also for late joiners
	d.RecheckAfter = p.recheck(status)
	p.observed(&status)
	d.Status = status
	return d
}

// verifies tells whether a wave is verified or skipped that was not. A cache that is
// behind could hide clusters that are still to be changed.
func verifies(was, is []v1alpha1.WaveStatus) bool {
	count := func(waves []v1alpha1.WaveStatus) int {
		n := 0
		for _, w := range waves {
			if w.IsDone() {
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
		if w.Soak = s.Soak; w.Soak.Duration == 0 {
			w.Soak = nil
		}
		if started[s.Name] && w.StartedAt == nil {
			w.StartedAt = stampTime(p.in.Now)
		}
		w.Updated = s.updated
		w.UpdatedAt, w.InterruptedAt = s.updatedAt, s.interruptedAt
		w.Phase = p.wavePhase(i, w)
		w.Gates = p.reportedGates(s, w.Phase)
		if w.Phase == v1alpha1.WaveVerified && w.VerifiedAt == nil {
			w.VerifiedAt = stampTime(p.in.Now)
		}
		w.FailedAt = p.failedAt(w)
		statuses = append(statuses, w)
	}
	return statuses
}

// failedAt is since when a wave is judged failed.
func (p *pass) failedAt(w v1alpha1.WaveStatus) *metav1.Time {
	switch {
	case w.IsDone() || !IsJudgedFailed(w):
		return nil
	case w.FailedAt != nil:
		return w.FailedAt
	}
	return stampTime(p.in.Now)
}

// Limits of the API.
const (
	maxPhases       = 20
	maxPhaseMessage = 512
)

// phaseChanges are those that were recorded, and the one that this decision makes.
func phaseChanges(in Input, next v1alpha1.OperatorRolloutStatus) []v1alpha1.PhaseChange {
	prior := in.Rollout.Status
	if next.Phase == "" || next.Phase == prior.Phase {
		return prior.Phases
	}
	all := append(slices.Clone(prior.Phases), v1alpha1.PhaseChange{Phase: next.Phase, At: *stampTime(in.Now),
		Message: phrase.Truncate(next.Message, maxPhaseMessage)})
	return all[max(0, len(all)-maxPhases):]
}

// soakClock returns when the soak began, and since when it stands still.
//
// It begins with the last success, and again when a wave that had too many
// failures has them no more, has an updated cluster admitted again, is tried
// again after a gate failed, or a cluster that had failed is Ready again. It stands
// still while an updated cluster is in its grace, so that the soak is time in
// which every cluster that counts as succeeded was Ready.
func (p *pass) soakClock(s *waveState) (updatedAt, interruptedAt *metav1.Time) {
	was := s.prior
	// Where clusters were removed, a success may hide behind an equal count.
	succeeded := s.updated > was.Updated || s.updated > 0 && s.counts.Removed != was.Removed
	recovered := s.updated > 0 && (hasTooManyFailed(was) && !s.hasTooManyFailed() || p.isRejudged(s) ||
		p.hasRecovered(s))
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
	case s.unready == 0 || was.IsDone():
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
	case s.prior.Phase == v1alpha1.WaveSkipped:
		return v1alpha1.WaveSkipped
	case p.ending() && s.prior.Phase != "":
		return s.prior.Phase
	case !s.reached || p.ending():
		return v1alpha1.WaveWaiting
	case s.counts.Total == 0 && s.present == 0:
		return v1alpha1.WaveSkipped
	case !s.open && s.present > 0:
		return v1alpha1.WaveGated
	case s.failedGate() != nil:
		return v1alpha1.WaveVerifying
	case s.counts.Pending > 0 || s.counts.InProgress > s.unready || p.halted() != nil || p.heldBack(i),
		s.counts.Total == 0: // its first cluster joins just now
		return v1alpha1.WaveUpdating
	case s.observation != nil && !s.observation.IsPassed():
		return v1alpha1.WaveVerifying
	case s.observation != nil:
		return v1alpha1.WaveVerified
	case s.unready > 0 || p.in.Now.Before(SoakEnd(s.Wave, w)):
		return v1alpha1.WaveSoaking
	case !s.mayVerify():
		return v1alpha1.WaveVerifying
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
	if s.counts.Deferred == 0 || p.isBack() { // what ran before is proven
		return false
	}
	proven := s.isProven() // its own soak is still to be waited for
	for j := range p.states[:i] {
		proven = proven || p.states[j].isProven() && !p.in.Now.Before(p.states[j].soakEnd())
	}
	if !proven {
		return true
	}
	later := 0
	for _, other := range p.states[i+1:] {
		later += other.present
	}
	return later > 0 && int(s.counts.Deferred) > p.maxDeferred(int(s.counts.Total))
}

// hasRecovered tells whether a cluster that had failed, because it was not Ready for
// longer than its grace, is Ready again. It was not watched for the whole soak.
func (p *pass) hasRecovered(s *waveState) bool {
	return slices.ContainsFunc(s.members, func(m member) bool {
		since, wasUnready := p.unready[m.Cluster]
		return wasUnready && m.proves && m.Class == ClassSucceeded &&
			!p.in.Now.Before(since.Add(s.UnreadyGrace.Duration))
	})
}

// soakEnd is when the soak is over that began with the last success, also of a wave
// that was verified before that.
func (s *waveState) soakEnd() time.Time {
	return SoakEnd(s.Wave, v1alpha1.WaveStatus{UpdatedAt: s.updatedAt})
}

// isProven tells whether a cluster of the wave shows that the release works.
func (s *waveState) isProven() bool {
	return slices.ContainsFunc(s.members, func(m member) bool { return m.proves && m.Class == ClassSucceeded })
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
	case p.rollsBack(waves):
		return v1alpha1.RolloutRolledBack
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
	case p.unmet != "":
		return v1alpha1.RolloutHalted
	}
	return v1alpha1.RolloutProgressing
}

// current is the first wave that is not done, empty if all are.
func current(waves []v1alpha1.WaveStatus) string {
	for _, w := range waves {
		if !w.IsDone() {
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
	times := p.paceTimes(status.Waves)
	for i := range p.states {
		s := &p.states[i]
		if slices.Contains([]v1alpha1.WavePhase{v1alpha1.WaveSoaking, v1alpha1.WaveVerified, v1alpha1.WaveSkipped},
			status.Waves[i].Phase) {
			times = append(times, SoakEnd(s.Wave, status.Waves[i]))
		}
		if !status.Phase.Ended() {
			times = append(times, p.dueGates(s, status.Waves[i].Phase)...)
		}
		for _, m := range s.members {
			if !m.isHeld() || s.isHoldingBack(m) {
				times = append(times, m.Until)
			}
		}
		times = append(times, p.holdTimes(s)...)
	}
	times = append(times, p.notWritableTimes()...)
	if !p.stopped() || halting(status.Phase) {
		for _, e := range p.batch {
			times = append(times, e.AdmittedAt.Add(entryDoubt+time.Second))
		}
	}
	return times
}

// notWritableTimes are when clusters that could not be written are tried again.
func (p *pass) notWritableTimes() []time.Time {
	var times []time.Time
	for _, c := range p.selected {
		if h := p.notWritable(c); h != nil {
			times = append(times, h.Until)
		}
	}
	return times
}

// roundUp is a time as the API keeps it, rounded up: a soak counted from it is
// never shorter than asked.
func roundUp(t time.Time) *metav1.Time {
	return stampTime(t.Add(time.Second - time.Nanosecond))
}
