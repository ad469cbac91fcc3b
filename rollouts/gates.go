// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// isOpen tells whether a gate is still to be measured.
func isOpen(spec v1alpha1.Gate, g v1alpha1.GateStatus) bool {
	return IsMeasured(spec) && g.Verdict != v1alpha1.GateFailed && g.Verdict != v1alpha1.GateOverridden
}

// judgeAdmission gives the verdict on the gates that hold a wave's admission back.
// A gate of a kind that this version does not know stays shut. The others get their
// verdict from judgeMeasurements, once the members are counted.
func (p *pass) judgeAdmission(w wave) []v1alpha1.GateStatus {
	gates := make([]v1alpha1.GateStatus, 0, len(w.Gates))
	for _, g := range w.Gates {
		if IsMeasured(g) {
			gates = append(gates, v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting})
		} else {
			gates = append(gates, p.judgeApproval(w.Name, g))
		}
	}
	return gates
}

func (p *pass) judgeApproval(waveName string, g v1alpha1.Gate) v1alpha1.GateStatus {
	status := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting, Approval: g.Approval != nil,
		Evidence: "not approved yet"}
	for _, a := range p.in.Rollout.Spec.Approvals {
		if g.Approval == nil || a.Wave != waveName || a.Gate != g.Name {
			continue
		}
		status.Verdict = v1alpha1.GatePassed
		status.Evidence = fmt.Sprintf("approved by %s: %s", a.By, a.Reason)
		status.DecidedAt = p.decidedAt(waveName, g.Name, a.At)
	}
	if g.Approval == nil || !g.Approval.OnlyForNewPermissions || status.Verdict == v1alpha1.GatePassed {
		return status
	}
	if why := NewPermissions(p.in.Rollout.Spec.Requirements); why != "" && !p.isAsInstalled() {
		status.Evidence += "; " + why
		return status
	}
	status.Verdict, status.Evidence = v1alpha1.GatePassed, "the release asks for no new permissions"
	status.DecidedAt = p.decidedAt(waveName, g.Name, metav1.Time{})
	return status
}

// maxShownRights bounds how many rights a message names.
const maxShownRights = 3

// NewPermissions says which rights a release asks for that the versions which clusters
// run do not have, or that this is not known; empty where there are none.
func NewPermissions(needs *v1alpha1.ReleaseRequirements) string {
	switch {
	case needs == nil:
		return "it is not known whether the release asks for new permissions"
	case len(needs.AddedPermissions) > 0:
		added := needs.AddedPermissions[0]
		return fmt.Sprintf("the release asks for permissions that %s does not have: %s", added.From,
			phrase.First(added.Rights, maxShownRights))
	case needs.NotRead != "":
		return "it is not known whether the release asks for new permissions: " + needs.NotRead
	default:
		return ""
	}
}

// decidedAt is what the person's word says, else when the hub first saw it.
func (p *pass) decidedAt(waveName, gateName string, at metav1.Time) *metav1.Time {
	if !at.IsZero() {
		return at.DeepCopy()
	}
	if was := priorGate(p.priorWave(waveName), gateName); was.IsPassed() && was.DecidedAt != nil {
		return was.DecidedAt
	}
	return stampTime(p.in.Now)
}

func priorGate(w v1alpha1.WaveStatus, name string) v1alpha1.GateStatus {
	for _, g := range w.Gates {
		if g.Name == name {
			return g
		}
	}
	return v1alpha1.GateStatus{Name: name, Verdict: v1alpha1.GateWaiting}
}

// mayAdmit tells whether no gate holds the wave's admission back.
func (s *waveState) mayAdmit() bool {
	for i, g := range s.Gates {
		if !IsMeasured(g) && !s.gates[i].IsPassed() {
			return false
		}
	}
	return true
}

// mayVerify tells whether every gate is passed.
func (s *waveState) mayVerify() bool {
	return !slices.ContainsFunc(s.gates, func(g v1alpha1.GateStatus) bool { return !g.IsPassed() })
}

// failedGate is the first failed gate of a wave that is not verified; nil if there
// is none.
func (s *waveState) failedGate() *v1alpha1.GateStatus {
	if s.prior.IsDone() {
		return nil
	}
	for i := range s.gates {
		if s.gates[i].Verdict == v1alpha1.GateFailed {
			return &s.gates[i]
		}
	}
	return nil
}

// isRejudged tells whether the wave was tried again since a gate of it failed.
func (p *pass) isRejudged(s *waveState) bool {
	if p.ending() || s.prior.IsDone() {
		return false
	}
	return slices.ContainsFunc(s.prior.Gates, func(g v1alpha1.GateStatus) bool {
		return g.Verdict == v1alpha1.GateFailed && g.Retries < p.in.Rollout.Spec.Retries
	})
}

// isFailed tells whether a gate failed before, and the rollout was not tried again
// since.
func (p *pass) isFailed(was v1alpha1.GateStatus) bool {
	return was.Verdict == v1alpha1.GateFailed && was.Retries >= p.in.Rollout.Spec.Retries
}

// isStopped tells whether a gate of the wave failed before and is not overridden:
// nothing is measured meanwhile.
func (p *pass) isStopped(s *waveState) bool {
	return slices.ContainsFunc(s.prior.Gates, func(g v1alpha1.GateStatus) bool {
		return p.isFailed(g) && !slices.ContainsFunc(p.in.Rollout.Spec.Overrides, func(o v1alpha1.GateOverride) bool {
			return o.Wave == s.Name && o.Gate == g.Name
		})
	})
}

// judgeMeasurements gives the verdict on the gates that judge the release on the
// wave's clusters.
func (p *pass) judgeMeasurements(s *waveState) {
	for i, g := range s.Gates {
		if IsMeasured(g) {
			s.gates[i] = p.judgeMeasured(s, g)
		}
	}
}

// judgeMeasured decides in this order. A verdict on a verified wave stays, and so
// does a failure: the window goes on, and time would hide what was bad.
func (p *pass) judgeMeasured(s *waveState, g v1alpha1.Gate) v1alpha1.GateStatus {
	was := priorGate(s.prior, g.Name)
	if s.prior.IsDone() || p.ending() {
		was.WaitingSince = nil
		return was
	}
	is := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting}
	clusters := s.evaluated()
	switch {
	case p.isStopped(s), p.isFailed(was):
		is = was
	case !s.reached || s.updatedAt == nil && s.isChanging():
		is.Evidence = "the wave is measured once its clusters are updated"
	case len(clusters) == 0 || s.updatedAt == nil:
		is.Evidence = "no cluster of the wave that runs the release can be measured now"
		is.WaitingSince = p.waitingSince(s, g)
	case g.Job != nil:
		is = p.judgeJobs(s, g, clusters)
	default:
		is = p.weigh(s, g, clusters)
	}
	return p.override(s, was, is)
}

// override lets a gate pass that a person overrode. What is known of it by then is
// kept.
func (p *pass) override(s *waveState, was, is v1alpha1.GateStatus) v1alpha1.GateStatus {
	if !s.reached || is.Verdict == v1alpha1.GatePassed {
		return is
	}
	for _, o := range p.in.Rollout.Spec.Overrides {
		switch {
		case o.Wave != s.Name || o.Gate != is.Name:
		case was.Verdict == v1alpha1.GateOverridden:
			return was
		default:
			state := "had no verdict"
			if is.Verdict == v1alpha1.GateFailed {
				state = "had failed"
			}
			is.Evidence = phrase.Truncate(fmt.Sprintf("overridden by %s: %s; the gate %s: %s", o.By, o.Reason, state,
				is.Evidence), maxEvidence)
			is.Verdict, is.WaitingSince = v1alpha1.GateOverridden, nil
			is.DecidedAt = p.decidedAt(s.Name, is.Name, o.At)
			return is
		}
	}
	return is
}

// maxEvidence is the API's limit.
const maxEvidence = 2048

// weigh judges by the newest measurement. The status has it too, which counts for
// a while where the hub has none: it was restarted, or another hub measured.
func (p *pass) weigh(s *waveState, g v1alpha1.Gate, clusters []string) v1alpha1.GateStatus {
	was := priorGate(s.prior, g.Name)
	since, end := s.updatedAt.Time, s.updatedAt.Add(GateWindow(g))
	if m := was.Measurement; m != nil && !m.At.Add(-m.Window.Duration).Equal(since) {
		was = v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting} // it was about another soak
	}
	is := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting, Measurement: was.Measurement}
	a, ok := p.answer(s, g, clusters)
	ok = ok && p.in.Now.Sub(a.At) <= maxAge
	known := was.Measurement != nil && p.in.Now.Sub(was.Measurement.At.Time) <= maxAge
	switch {
	case known && (!ok || a.At.Before(was.Measurement.At.Time)):
		is.Verdict, is.Evidence, is.DecidedAt = was.Verdict, was.Evidence, was.DecidedAt
		if is.Verdict == v1alpha1.GateOverridden { // and the override was withdrawn
			is.Verdict, is.DecidedAt = v1alpha1.GateWaiting, nil
		}
	case ok:
		f := p.find(s, g, a, was.Measurement)
		is.Verdict, is.Measurement = f.verdict(a.At, end), &f.GateMeasurement
		is.Evidence = phrase.Truncate(f.text(a.At, end), maxEvidence)
	case was.Measurement != nil:
		is.Evidence = fmt.Sprintf("nothing was measured since %s", phrase.Time(was.Measurement.At.Time))
	default:
		is.Evidence = "not measured yet"
	}
	return p.dated(s, g, was, is)
}

// dated adds since when a verdict is given, or waited for.
func (p *pass) dated(s *waveState, g v1alpha1.Gate, was, is v1alpha1.GateStatus) v1alpha1.GateStatus {
	switch is.Verdict {
	case v1alpha1.GateWaiting:
		is.WaitingSince = p.waitingSince(s, g)
	case was.Verdict:
		is.DecidedAt = was.DecidedAt
	default:
		is.DecidedAt = stampTime(p.in.Now)
	}
	if is.Verdict == v1alpha1.GateFailed {
		is.Retries = p.in.Rollout.Spec.Retries
	}
	return is
}

// isChanging tells whether clusters of the wave are still to be updated.
func (s *waveState) isChanging() bool { return s.counts.Pending > 0 || s.counts.InProgress > 0 }

// waitingSince is since when nothing but the gate holds the wave back; nil if other
// things do too.
func (p *pass) waitingSince(s *waveState, g v1alpha1.Gate) *metav1.Time {
	switch {
	case s.present == 0 || s.isChanging():
		return nil
	case s.updatedAt == nil:
		return orValue(priorGate(s.prior, g.Name).WaitingSince, *stampTime(p.in.Now))
	}
	end := s.updatedAt.Add(max(GateWindow(g), s.Soak.Duration))
	if p.in.Now.Before(end.Add(slack)) {
		return nil
	}
	return stampTime(end)
}

// announce says since when approvals hold the wave's admission back.
func (p *pass) announce(s *waveState) {
	for i := range s.gates {
		g := &s.gates[i]
		if IsMeasured(s.Gates[i]) || g.IsPassed() || !s.reached || s.present == 0 || p.ending() ||
			s.prior.VerifiedAt != nil { // a cluster that joined a skipped wave waits too
			continue
		}
		if g.WaitingSince = priorGate(s.prior, g.Name).WaitingSince; g.WaitingSince == nil {
			g.WaitingSince = stampTime(p.in.Now)
		}
	}
}

// waiting is the first gate that holds admission back.
func (s *waveState) waiting() string {
	for i, g := range s.gates {
		if !IsMeasured(s.Gates[i]) && !g.IsPassed() {
			return g.Name
		}
	}
	return ""
}

// explainGate says which gate stopped the rollout, and what to do.
func (s *waveState) explainGate() string {
	g := s.failedGate()
	return phrase.Truncate(fmt.Sprintf("gate %s of wave %s failed: %s; nothing more is admitted: set another version, "+
		"retry the rollout to have the wave judged anew, or override the gate", g.Name, s.Name, g.Evidence), maxMessage)
}

// maxMessage leaves room within the API's limit for what the hub adds.
const maxMessage = 1500

// explainVerifying says which gates have no verdict.
func (s *waveState) explainVerifying() string {
	var open []string
	for _, g := range s.gates {
		if !g.IsPassed() {
			open = append(open, fmt.Sprintf("gate %s has no verdict: %s", g.Name, g.Evidence))
		}
	}
	return phrase.Truncate(fmt.Sprintf("wave %s waits for %s: %s", s.Name, phrase.Count(len(open), "gate"),
		phrase.First(open, maxNamed)), maxMessage)
}

// gateEvents tell of each change of a verdict, and of each gate that begins to hold
// its wave back.
func (p *pass) gateEvents(waves []v1alpha1.WaveStatus) []Event {
	var events []Event
	tell := func(wave string, g v1alpha1.GateStatus, reason, what string) {
		events = append(events, Event{Reason: reason, Message: phrase.Truncate(fmt.Sprintf("gate %s of wave %s %s: %s",
			g.Name, wave, what, g.Evidence), maxEventNote)})
	}
	for i, w := range waves {
		for _, g := range w.Gates {
			was := priorGate(p.states[i].prior, g.Name)
			switch {
			case g.Verdict != was.Verdict && g.Verdict != v1alpha1.GateWaiting:
				tell(w.Name, g, "Gate"+string(g.Verdict), verdictTexts[g.Verdict])
			case g.Verdict != was.Verdict:
				tell(w.Name, g, "GateUndecided", "has no verdict any more")
			case g.WaitingSince != nil && was.WaitingSince == nil:
				tell(w.Name, g, "GateWaiting", "holds the wave back")
			}
		}
	}
	return events
}

// maxEventNote is the limit of the events API.
const maxEventNote = 1000

var verdictTexts = map[v1alpha1.GateVerdict]string{
	v1alpha1.GatePassed: "passed", v1alpha1.GateFailed: "failed", v1alpha1.GateOverridden: "is overridden",
}
