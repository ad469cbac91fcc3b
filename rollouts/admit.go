// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ending tells whether the rollout admits nothing any more, ever.
func (p *pass) ending() bool { return !p.in.Rollout.MayAdmit() }

// stopped tells whether nothing may be admitted now.
func (p *pass) stopped() bool {
	spec := p.in.Rollout.Spec
	return p.ending() || spec.Paused || spec.Blocked != "" || p.unmet != "" || p.halted() != nil
}

// halted is the first wave with more failures than it may have, or with a failed
// gate. A rollout that succeeded is not halted any more: only that wave stops. A
// rollback goes on with the other clusters first.
func (p *pass) halted() *waveState {
	if p.prior.Phase == v1alpha1.RolloutSucceeded {
		return nil
	}
	for i := range p.states {
		if p.states[i].failing() && (!p.isBack() || !p.states[i].isBusy()) {
			return &p.states[i]
		}
	}
	return nil
}

// failing tells whether too many clusters of the wave failed, or a gate did.
func (s *waveState) failing() bool { return s.hasTooManyFailed() || s.failedGate() != nil }

func (s *waveState) hasTooManyFailed() bool { return int(s.counts.Failed) > s.maxFailures }

// hasTooManyFailed tells the same of a wave as its status has it.
func hasTooManyFailed(w v1alpha1.WaveStatus) bool { return w.Failed > w.MaxFailures }

// IsJudgedFailed tells whether more clusters of a wave failed than may, or a gate
// of it failed.
func IsJudgedFailed(w v1alpha1.WaveStatus) bool {
	return w.Phase != v1alpha1.WaveWaiting && hasTooManyFailed(w) ||
		slices.ContainsFunc(w.Gates, func(g v1alpha1.GateStatus) bool { return g.Verdict == v1alpha1.GateFailed })
}

// admits tells whether the wave may take in clusters, given that the rollout
// is not stopped.
func (s *waveState) admits() bool { return s.open && (!s.failing() || s.undeterred) }

// halting tells whether a phase admits nothing. Admissions are written only
// while the status says otherwise, and given up only while it says so: the
// compare-and-swap of the status lies between the two.
func halting(phase v1alpha1.RolloutPhase) bool {
	switch phase {
	case v1alpha1.RolloutPaused, v1alpha1.RolloutHalted, v1alpha1.RolloutAborted, v1alpha1.RolloutSuperseded,
		v1alpha1.RolloutRolledBack:
		return true
	default:
		return false
	}
}

// dropLapsed gives up on batch entries that were never acted on when the
// rollout was stopped, or the cluster held back: a person who pauses expects
// nothing to start afterwards. Only a live view can tell, and only when a hub that
// was slow to act on them has run out of time.
func (p *pass) dropLapsed() {
	if !p.in.Live {
		return
	}
	for name, e := range p.batch {
		if halting(p.prior.Phase) && p.in.Now.Sub(e.AdmittedAt.Time) > entryDoubt || p.isLapsed(e) {
			delete(p.batch, name)
		}
	}
}

// admissions are the batch entries as they were read whose stamp is not to be
// seen yet. Entries decided in this pass are not among them.
func (p *pass) admissions() []Action {
	if p.stopped() || halting(p.prior.Phase) {
		return nil
	}
	var actions []Action
	for _, s := range p.states {
		for _, m := range s.members {
			e, written := p.batch[m.Cluster]
			if !written || !s.open || m.Class == ClassRemoved || e.Held || m.hold != nil {
				continue
			}
			actions = append(actions, Action{
				Kind: ActionAdmit, Cluster: e.Cluster, Wave: e.Wave, AdmittedAt: *stampTime(e.AdmittedAt.Time),
				Attempt: e.Attempt, NotAfter: notAfter(p.openUntil(m.cluster)),
			})
		}
	}
	return actions
}

// nextBatch keeps the entries that were not seen and adds what the free slots
// allow.
func (p *pass) nextBatch() *v1alpha1.AdmissionBatch {
	var entries []v1alpha1.BatchEntry
	for _, e := range p.batch {
		entries = append(entries, p.heldEntry(p.renewed(e)))
	}
	if !p.stopped() {
		for i := range p.states {
			chosen := p.states[i].admit(p.in.Now, MaxBatch-len(entries))
			for j := range chosen {
				chosen[j].Attempt = p.in.Rollout.Spec.Retries
			}
			entries = append(entries, chosen...)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	slices.SortFunc(entries, func(a, b v1alpha1.BatchEntry) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return &v1alpha1.AdmissionBatch{Clusters: entries}
}

// renewed gives an entry a new time when the rollout stops, from which its
// lapse is counted; and one that could not be applied for long, so that the
// cluster has its whole deadline once it can. The slot stays taken.
func (p *pass) renewed(e v1alpha1.BatchEntry) v1alpha1.BatchEntry {
	stops := p.stopped() && p.prior.Phase == v1alpha1.RolloutProgressing
	if stops || p.in.Live && p.in.Now.Sub(e.AdmittedAt.Time) > entryDoubt {
		e.AdmittedAt = *stampTime(p.in.Now)
	}
	return e
}

// admit chooses clusters for the wave's free slots, room of them at most.
//
// Clusters that failed and are tried again come first, and no others before all
// of them have their slot: so a bad release reaches no more clusters by being
// tried again. Then come those that are busy with an older release: they hold a
// slot already, and are moved within it. Where more are busy than the wave has
// slots, they have to finish or fail first.
func (s *waveState) admit(now time.Time, room int) []v1alpha1.BatchEntry {
	if !s.admits() {
		return nil
	}
	ours, busy := s.held()
	if s.undeterred {
		busy = 0 // that is what is taken back
	}
	var entries []v1alpha1.BatchEntry
	take := func(m *member) {
		if m.holds && !s.undeterred {
			busy--
		}
		entries = append(entries, v1alpha1.BatchEntry{Cluster: m.Cluster, Wave: s.Name, AdmittedAt: *stampTime(now)})
		*s.counts.of(m.Class)--
		m.Class, m.ours, m.admissible, m.holds = ClassInProgress, true, false, true
		s.counts.InProgress++
		ours++
	}
	each := func(fits func(*member) bool, hasSlot func() bool) (left int) {
		for i := range s.members {
			m := &s.members[i]
			switch {
			case !m.admissible || !fits(m):
			case hasSlot() && len(entries) < room:
				take(m)
			default:
				left++
			}
		}
		return left
	}
	isFree := func() bool { return ours+busy < s.maxConcurrency }
	if each(func(m *member) bool { return m.retried }, isFree) > 0 || s.holdsRetry() {
		return entries
	}
	if !s.undeterred {
		each(func(m *member) bool { return m.holds }, func() bool { return ours+busy <= s.maxConcurrency })
	}
	each(func(*member) bool { return true }, isFree)
	return entries
}

// holdsRetry tells whether a cluster that is to be tried again is held back: others
// wait for it.
func (s *waveState) holdsRetry() bool {
	return slices.ContainsFunc(s.members, func(m member) bool { return m.retried && m.hold != nil })
}

// held counts the taken slots: by this rollout, and by older ones. A cluster
// that left the fleet while it was changing holds its slot until its install
// is gone.
func (s *waveState) held() (ours, busy int) {
	for _, m := range s.members {
		switch {
		case m.holds && m.ours:
			ours++
		case m.holds:
			busy++
		}
	}
	return ours, busy
}
