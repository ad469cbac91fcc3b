// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// isUnobserved tells whether a wave that had clusters comes to its end without one that was observed to run the
// release: all of them left, or failed as maxFailures permits. Where clusters are deferred and none failed, maxDeferred
// decides. What a rollback brings has run before.
func (p *pass) isUnobserved(i int) bool {
	s := &p.states[i]
	c := s.counts
	comesToItsEnd := s.reached && !s.prior.IsDone() && !s.isBusy() && !s.failing() && !p.heldBack(i)
	return !p.isBack() && !p.ending() && comesToItsEnd && c.Total > 0 && c.Succeeded == 0 &&
		(c.Failed > 0 || c.Deferred == 0)
}

// judgeObservation gives a wave that is not observed the gate which only a person can override. Its other gates hold
// nothing up meanwhile: what they judge is not there.
func (p *pass) judgeObservation(i int) {
	s := &p.states[i]
	if !p.isUnobserved(i) {
		return
	}
	was := priorGate(s.prior, v1alpha1.GateObservation)
	is := p.override(s, was, v1alpha1.GateStatus{Name: v1alpha1.GateObservation, Verdict: v1alpha1.GateWaiting,
		Evidence: p.whyNotObserved(s), WaitingSince: orValue(was.WaitingSince, *stampTime(p.in.Now))})
	s.observation = &is
	for j := range s.gates {
		s.gates[j].WaitingSince = nil
	}
}

// whyNotObserved says what became of the clusters.
func (p *pass) whyNotObserved(s *waveState) string {
	version := p.subject()
	left := phrase.Count(s.counts.Removed, "cluster") + " left the fleet or the selection before "
	if s.counts.Failed == 0 && s.counts.Deferred == 0 {
		return fmt.Sprintf("no cluster of the wave is left to show that %s works: %sthe wave was verified", version,
			left)
	}
	var parts []string
	if s.counts.Removed > 0 {
		parts = append(parts, left+"that")
	}
	if n := s.counts.Failed; n > 0 {
		parts = append(parts, phrase.Count(n, "cluster")+" failed, as maxFailures permits")
	}
	if n := s.counts.Deferred; n > 0 {
		parts = append(parts, phrase.Count(n, "cluster")+" deferred")
	}
	return fmt.Sprintf("no cluster of the wave was observed to run %s: %s", version,
		strings.Join(parts, ", "))
}

// explainNotObserved says what to do about a wave that is not observed.
func (p *pass) explainNotObserved(s *waveState) string {
	ro := p.in.Rollout
	command := "bellwether rollout override " + ro.Name
	if ro.Namespace != "" {
		command += " -n " + ro.Namespace
	}
	return phrase.Truncate(fmt.Sprintf("wave %s is not verified: %s; the rollout goes on once a cluster of the wave "+
		"runs it, or if you override gate %s with `%s --wave %s --gate %s --reason TEXT`", s.Name,
		s.observation.Evidence, v1alpha1.GateObservation, command, s.Name, v1alpha1.GateObservation), maxMessage)
}
