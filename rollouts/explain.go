// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// explain says where the rollout stands and what it waits for.
func (p *pass) explain(status v1alpha1.OperatorRolloutStatus) (Standing, string, string) {
	spec := p.in.Rollout.Spec
	switch status.Phase {
	case v1alpha1.RolloutSucceeded:
		return Done, v1alpha1.ReasonSucceeded, p.explainSuccess(status)
	case v1alpha1.RolloutSuperseded:
		return Stuck, v1alpha1.ReasonSuperseded, cmp.Or(abortReason(spec), status.Message)
	case v1alpha1.RolloutAborted:
		return Stuck, v1alpha1.ReasonAborted, p.explainAbort(status)
	case v1alpha1.RolloutRolledBack:
		return Stuck, v1alpha1.ReasonRolledBack, p.explainRollback(status)
	case v1alpha1.RolloutPaused:
		return Underway, v1alpha1.ReasonPaused, "paused" + colon(spec.PausedReason) + "; what was admitted finishes"
	case v1alpha1.RolloutHalted:
		if spec.Blocked != "" {
			return Stuck, v1alpha1.ReasonVersionBlocked, p.explainBlock(status)
		}
		if p.halted() == nil && p.unmet != "" {
			return Stuck, v1alpha1.ReasonPolicyNotMet, p.explainUnmet()
		}
		if s := p.halted(); s != nil && !s.hasTooManyFailed() {
			return Stuck, v1alpha1.ReasonGateFailed, s.explainGate()
		}
		return Stuck, v1alpha1.ReasonHalted, p.explainHalt()
	}
	return p.explainWave(status)
}

func (p *pass) explainSuccess(status v1alpha1.OperatorRolloutStatus) string {
	c := status.Clusters
	text := doneOf(c.Succeeded, p.countEmpty(), c.Total-c.Removed, p.changed())
	for _, rest := range []struct {
		n    int32
		what string
	}{
		{c.Failed, "failed"}, {c.Deferred, "deferred"},
		{c.InProgress, "in progress"}, {c.Pending, "joined late and wait for their turn"},
	} {
		if rest.n > 0 {
			text += fmt.Sprintf(", %d %s", rest.n, rest.what)
		}
	}
	if blocked := p.in.Rollout.Spec.Blocked; blocked != "" {
		text += fmt.Sprintf("; %s is blocked since, and nobody else is admitted: %s", p.in.Rollout.Spec.Release.Version,
			blocked)
	}
	if p.unmet != "" {
		text += "; nobody else is admitted: " + p.unmet
	}
	switch spec := p.in.Rollout.Spec; {
	case spec.Abort != nil:
		text += "; aborted since, and nobody else is admitted" + colon(abortReason(spec))
	case spec.Paused:
		text += "; paused, and nobody else is admitted" + colon(spec.PausedReason)
	}
	return phrase.Truncate(text, maxMessage)
}

func (p *pass) explainBlock(status v1alpha1.OperatorRolloutStatus) string {
	c := status.Clusters
	return fmt.Sprintf("%s is blocked: %s; nobody else is admitted, %s updated before; lift the block, or let the "+
		"ManagedOperator ask for another version", p.in.Rollout.Spec.Release.Version, p.in.Rollout.Spec.Blocked,
		phrase.Part(c.Succeeded, c.Total-c.Removed, "cluster"))
}

func (p *pass) explainAbort(status v1alpha1.OperatorRolloutStatus) string {
	switch {
	case p.in.Rollout.Spec.Abort != nil:
		return "aborted" + colon(abortReason(p.in.Rollout.Spec))
	case p.halted() != nil:
		return "aborted, as its failure policy says: " + p.explainFailures()
	}
	return cmp.Or(status.Message, "aborted, as its failure policy says")
}

func (p *pass) explainHalt() string {
	if p.isAsInstalled() {
		return p.explainAdoptionHalt()
	}
	var failed int32
	if s := p.halted(); s != nil {
		failed = s.counts.Failed
	}
	return fmt.Sprintf("%s; nothing more is admitted until %s: repair, pause or retry %s, or set another version",
		p.explainFailures(), phrase.Word(failed, "it recovers", "they recover"), phrase.Word(failed, "it", "them"))
}

// maxNamed is how many clusters a message names.
const maxNamed = 5

// explainFailures names the clusters of the first wave that fails too much.
func (p *pass) explainFailures() string {
	s := p.halted()
	switch {
	case s == nil:
		return "no wave has too many failures"
	case !s.hasTooManyFailed():
		return fmt.Sprintf("gate %s of wave %s failed: %s", s.failedGate().Name, s.Name, s.failedGate().Evidence)
	}
	var names []string
	for _, m := range s.members {
		switch {
		case m.Class != ClassFailed:
		case p.isAsInstalled():
			names = append(names, p.whyNotTakenOver(m))
		default:
			names = append(names, fmt.Sprintf("%s (%s)", m.Cluster, m.Reason))
		}
	}
	return fmt.Sprintf("wave %s: %s failed, %d allowed: %s", s.Name, phrase.Count(len(names), "cluster"), s.maxFailures,
		phrase.First(names, maxNamed))
}

func (p *pass) explainWave(status v1alpha1.OperatorRolloutStatus) (Standing, string, string) {
	i := slices.IndexFunc(status.Waves, func(w v1alpha1.WaveStatus) bool { return w.Name == status.CurrentWave })
	if i < 0 {
		return Underway, v1alpha1.ReasonProgressing, "no wave is left"
	}
	s, w := &p.states[i], status.Waves[i]
	if w.Phase == v1alpha1.WaveUpdating && w.Pending > 0 && p.isFrozen() {
		return Underway, p.pace.Reason, s.explainProgress(w) + "; no cluster is admitted: " + p.pace.Evidence
	}
	if reason, message := s.explainHeld(w); reason != "" && w.Phase == v1alpha1.WaveUpdating {
		return Underway, reason, message
	}
	switch {
	case w.Phase == v1alpha1.WaveGated:
		return Underway, v1alpha1.ReasonGated, fmt.Sprintf("wave %s waits for gate %s: %s %s to be approved", w.Name,
			s.waiting(), phrase.Count(s.present, "cluster"), phrase.Word(s.present, "has", "have"))
	case w.Phase == v1alpha1.WaveSoaking && s.unready > 0:
		return Underway, v1alpha1.ReasonSoaking, s.explainUnready(w)
	case w.Phase == v1alpha1.WaveSoaking:
		return Underway, v1alpha1.ReasonSoaking, fmt.Sprintf("wave %s soaks until %s: %s", w.Name,
			phrase.Time(SoakEnd(s.Wave, w)), s.doneOf(w)) + p.explainSlow()
	case w.Phase == v1alpha1.WaveVerifying && s.failedGate() == nil && s.observation != nil:
		return Stuck, v1alpha1.ReasonNotObserved, p.explainNotObserved(s)
	case w.Phase == v1alpha1.WaveVerifying:
		return Underway, v1alpha1.ReasonVerifying, s.explainVerifying()
	case w.Pending == 0 && w.InProgress == 0 && p.heldBack(i):
		return Stuck, v1alpha1.ReasonTooManyDeferred, fmt.Sprintf(
			"wave %s: %s deferred because offline, paused or held back (%s); bring them back, take them out of the "+
				"selection, or raise maxDeferred",
			w.Name, phrase.Count(w.Deferred, "cluster"), phrase.First(s.names(ClassDeferred), maxNamed))
	}
	return Underway, v1alpha1.ReasonProgressing, s.explainProgress(w) + p.explainSlow()
}

func (s *waveState) explainProgress(w v1alpha1.WaveStatus) string {
	return fmt.Sprintf("wave %s: %s, %d in progress", w.Name, s.doneOf(w), w.InProgress)
}

// doneOf counts the clusters of a wave that are done: "0 of 1 cluster updated".
func (s *waveState) doneOf(w v1alpha1.WaveStatus) string {
	return doneOf(w.Succeeded, s.empty, w.Total-w.Removed, s.changed)
}

// doneOf counts clusters that are done. The empty ones among them had nothing that could be taken over.
func doneOf(succeeded, empty, total int32, changed string) string {
	empty = min(empty, succeeded)
	text := phrase.Part(succeeded-empty, total, "cluster") + " " + changed
	if empty > 0 {
		text += fmt.Sprintf(", %d had nothing to take over", empty)
	}
	return text
}

// explainUnready names the clusters that are in their grace, and says when the
// first of them counts as failed.
func (s *waveState) explainUnready(w v1alpha1.WaveStatus) string {
	var names []string
	var first time.Time
	for _, m := range s.members {
		if !m.isUnready() {
			continue
		}
		names = append(names, m.Cluster)
		if !m.Until.IsZero() && (first.IsZero() || m.Until.Before(first)) {
			first = m.Until
		}
	}
	then := fmt.Sprintf("%s as failed at %s unless it recovers",
		phrase.Word(len(names), "counts", "the first of them counts"), phrase.Time(first))
	if first.IsZero() {
		then = "no time runs while a FleetFreeze stops changes there"
	}
	return fmt.Sprintf("wave %s: %s %s not Ready (%s) and %s; the soak waits meanwhile, %s", w.Name,
		phrase.Count(len(names), "cluster"), phrase.Word(len(names), "is", "are"), phrase.First(names, maxNamed), then,
		s.doneOf(w))
}

func (s *waveState) names(k Class) []string {
	var names []string
	for _, m := range s.members {
		if m.Class == k {
			names = append(names, m.Cluster)
		}
	}
	return names
}

// events tells of the waves that were started and verified. What becomes of the
// rollout as a whole is told by its conditions.
func (p *pass) events(status v1alpha1.OperatorRolloutStatus) []Event {
	events := append(p.overrideEvents(status), p.policyEvents(status)...)
	events = append(events, p.paceEvents(status.Waves)...)
	for i, w := range status.Waves {
		s, was := &p.states[i], p.states[i].prior
		if w.InterruptedAt != nil && was.InterruptedAt == nil {
			events = append(events, Event{Reason: "WaveInterrupted", Message: s.explainUnready(w)})
		}
		if w.StartedAt != nil && was.StartedAt == nil {
			events = append(events, Event{Reason: "WaveStarted",
				Message: fmt.Sprintf("wave %s: %s, %d at a time", w.Name, phrase.Count(w.Total, "cluster"),
					w.MaxConcurrency)})
		}
		if w.VerifiedAt != nil && was.VerifiedAt == nil && w.Total > 0 {
			events = append(events, Event{Reason: "WaveVerified", Message: fmt.Sprintf(
				"wave %s: %s, %d failed, %d deferred", w.Name, s.doneOf(w), w.Failed, w.Deferred)})
		}
	}
	return events
}

func abortReason(spec v1alpha1.OperatorRolloutSpec) string {
	if spec.Abort == nil {
		return ""
	}
	return spec.Abort.Reason
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
