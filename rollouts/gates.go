// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// isOpen reports whether a gate must still be measured: it measures the release, has not failed and is not overridden.
func isOpen(spec v1alpha1.Gate, g v1alpha1.GateStatus) bool {
	return IsMeasured(spec) && g.Verdict != v1alpha1.GateFailed && g.Verdict != v1alpha1.GateOverridden
}

// waveTurn is a wave of the rollout, and whether clusters of the wave may be admitted.
type waveTurn struct {
	wave
	prior v1alpha1.WaveStatus
	// reached is true if every earlier wave is done.
	reached bool
	// open is true if the wave is reached and its approvals are given.
	open bool
	// asInstalled is true if the rollout takes over the installed operator and changes no version.
	asInstalled bool
	// gates have the verdicts on approvals. Gates that measure get their verdicts after the members are counted.
	gates []v1alpha1.GateStatus
}

// checkTurns returns for each wave whether clusters of the wave may be admitted. recorded is true if the caller has no
// policies. Then a missing approval that only the status records also closes the wave.
func checkTurns(ro *v1alpha1.OperatorRollout, status v1alpha1.OperatorRolloutStatus, waves []wave, now time.Time,
	recorded bool) []waveTurn {
	turns := make([]waveTurn, 0, len(waves))
	reached := true
	for _, w := range waves {
		t := waveTurn{wave: w, prior: findPriorWave(status, w.Name), reached: reached,
			asInstalled: ro.Spec.Release.AsInstalled}
		t.gates = judgeApprovals(ro, w.Gates, t.prior, now)
		t.open = reached && hasAllApprovals(w.Gates, t.gates) && (!recorded || !hasRecordedMissingApproval(w.Gates,
			t.prior.Gates))
		reached = reached && t.prior.IsDone()
		turns = append(turns, t)
	}
	return turns
}

// findPriorWave returns the wave with this name from the status, or an empty wave if the status does not have
// the wave.
func findPriorWave(status v1alpha1.OperatorRolloutStatus, name string) v1alpha1.WaveStatus {
	for _, w := range status.Waves {
		if w.Name == name {
			return w
		}
	}
	return v1alpha1.WaveStatus{Name: name}
}

// judgeApprovals returns a status for each gate of a wave, in the order of specs: the verdicts on the gates that must
// pass before the wave's clusters are admitted. A gate of a kind that this version does not support stays Waiting.
// Gates that measure are Waiting until judgeGates judges them.
func judgeApprovals(ro *v1alpha1.OperatorRollout, specs []v1alpha1.Gate, prior v1alpha1.WaveStatus,
	now time.Time) []v1alpha1.GateStatus {
	gates := make([]v1alpha1.GateStatus, 0, len(specs))
	for _, g := range specs {
		if IsMeasured(g) {
			gates = append(gates, v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting})
		} else {
			gates = append(gates, judgeApproval(ro, g, prior, now))
		}
	}
	return gates
}

// judgeApproval returns the verdict on one gate that does not measure. The gate passes if a person approved it, or
// if it applies only to new permissions and the release requires none. A gate without an approval in its spec
// never passes.
func judgeApproval(ro *v1alpha1.OperatorRollout, g v1alpha1.Gate, prior v1alpha1.WaveStatus,
	now time.Time) v1alpha1.GateStatus {
	previous := findPriorGate(prior, g.Name)
	status := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting, Approval: g.Approval != nil,
		Evidence: "not approved yet"}
	for _, a := range ro.Spec.Approvals {
		if g.Approval == nil || a.Wave != prior.Name || a.Gate != g.Name {
			continue
		}
		status.Verdict = v1alpha1.GatePassed
		status.Evidence = fmt.Sprintf("approved by %s: %s", a.By, a.Reason)
		status.DecidedAt = chooseDecisionTime(previous, a.At, now)
	}
	if g.Approval == nil || !g.Approval.OnlyForNewPermissions || status.Verdict == v1alpha1.GatePassed {
		return status
	}
	// A take-over changes no version, so it needs no new permissions.
	if why := ExplainNewPermissions(ro.Spec.Requirements); why != "" && !ro.Spec.Release.AsInstalled {
		status.Evidence += "; " + why
		return status
	}
	status.Verdict, status.Evidence = v1alpha1.GatePassed, "the release asks for no new permissions"
	status.DecidedAt = chooseDecisionTime(previous, metav1.Time{}, now)
	return status
}

// maxShownRights is the maximum number of rights that a message lists.
const maxShownRights = 3

// ExplainNewPermissions describes the rights that the release requires and the installed versions do not have, or says
// that these rights are not known. It returns "" if there are none.
func ExplainNewPermissions(needs *v1alpha1.ReleaseRequirements) string {
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

// chooseDecisionTime returns when a gate was passed: the time that the person gave, or else the time at which the hub
// first saw the gate passed.
func chooseDecisionTime(previous v1alpha1.GateStatus, at metav1.Time, now time.Time) *metav1.Time {
	if !at.IsZero() {
		return at.DeepCopy()
	}
	if previous.IsPassed() && previous.DecidedAt != nil {
		return previous.DecidedAt
	}
	return roundDown(now)
}

// findPriorGate returns the gate with this name from the wave's status, or a Waiting gate if the status does not
// have it.
func findPriorGate(w v1alpha1.WaveStatus, name string) v1alpha1.GateStatus {
	for _, g := range w.Gates {
		if g.Name == name {
			return g
		}
	}
	return v1alpha1.GateStatus{Name: name, Verdict: v1alpha1.GateWaiting}
}

// hasAllApprovals reports whether every gate that must pass before admission is passed. specs and gates have the
// same order.
func hasAllApprovals(specs []v1alpha1.Gate, gates []v1alpha1.GateStatus) bool {
	for i, g := range specs {
		if !IsMeasured(g) && !gates[i].IsPassed() {
			return false
		}
	}
	return true
}

// hasOnlyPassedGates reports whether all gates are passed.
func hasOnlyPassedGates(gates []v1alpha1.GateStatus) bool {
	return !slices.ContainsFunc(gates, func(g v1alpha1.GateStatus) bool { return !g.IsPassed() })
}

// findFailedGate returns the first failed gate of a wave that is not done. It returns nil if there is none.
func findFailedGate(prior v1alpha1.WaveStatus, gates []v1alpha1.GateStatus) *v1alpha1.GateStatus {
	if prior.IsDone() {
		return nil
	}
	for i := range gates {
		if gates[i].Verdict == v1alpha1.GateFailed {
			return &gates[i]
		}
	}
	return nil
}

// isRejudged reports whether a person retried the rollout after a gate of the wave failed.
func isRejudged(ro *v1alpha1.OperatorRollout, prior v1alpha1.WaveStatus) bool {
	if !ro.MayAdmit() || prior.IsDone() {
		return false
	}
	return slices.ContainsFunc(prior.Gates, func(g v1alpha1.GateStatus) bool {
		return g.Verdict == v1alpha1.GateFailed && g.Retries < ro.Spec.Retries
	})
}

// hasFailed reports whether the gate failed and the rollout was not retried after that.
func hasFailed(previous v1alpha1.GateStatus, retries int64) bool {
	return previous.Verdict == v1alpha1.GateFailed && previous.Retries >= retries
}

// hasFailedGate reports whether a gate of the wave failed and is not overridden. In such a wave no gate is measured.
func hasFailedGate(spec *v1alpha1.OperatorRolloutSpec, prior v1alpha1.WaveStatus) bool {
	return slices.ContainsFunc(prior.Gates, func(g v1alpha1.GateStatus) bool {
		return hasFailed(g, spec.Retries) && !slices.ContainsFunc(spec.Overrides, func(o v1alpha1.GateOverride) bool {
			return o.Wave == prior.Name && o.Gate == g.Name
		})
	})
}

// gateInput has the data for the verdict on a gate that measures the release.
type gateInput struct {
	now     time.Time
	rollout *v1alpha1.OperatorRollout
	wave    *classifiedWave
	clock   soakClock
	gate    v1alpha1.Gate
	// previous is the verdict that the status has.
	previous v1alpha1.GateStatus
	// clusters are the clusters of the wave that run the release and can be observed.
	clusters []string
}

// judgeGates returns the gates of a wave. It judges the gates that measure the release on the wave's clusters, and
// sets since when approvals block the admission.
func judgeGates(in Input, hash string, installs map[string]*Install, w *classifiedWave,
	clock soakClock) []v1alpha1.GateStatus {
	gates := slices.Clone(w.gates)
	var clusters []string
	if slices.ContainsFunc(w.Gates, IsMeasured) {
		clusters = listEvaluatedClusters(w.members)
	}
	for i, g := range w.Gates {
		previous := findPriorGate(w.prior, g.Name)
		if !IsMeasured(g) {
			gates[i].WaitingSince = findApprovalWaitStart(in.Rollout, w, gates[i], in.Now)
			continue
		}
		gates[i] = judgeMeasuredGate(gateInput{now: in.Now, rollout: in.Rollout, wave: w, clock: clock, gate: g,
			previous: previous, clusters: clusters}, in.Answers, hash, installs)
	}
	return gates
}

// judgeMeasuredGate returns the verdict on a gate that measures. The verdict of a verified wave does not change. A
// failure does not change either: the window moves, and a later window would not contain the bad measurements.
func judgeMeasuredGate(in gateInput, answers []Answer, hash string, installs map[string]*Install) v1alpha1.GateStatus {
	ro, w, previous := in.rollout, in.wave, in.previous
	if w.prior.IsDone() || !ro.MayAdmit() {
		previous.WaitingSince = nil
		return previous
	}
	current := v1alpha1.GateStatus{Name: in.gate.Name, Verdict: v1alpha1.GateWaiting}
	switch {
	case hasFailedGate(&ro.Spec, w.prior), hasFailed(previous, ro.Spec.Retries):
		current = previous
	case !w.reached, in.clock.updatedAt == nil && w.isChanging():
		current.Evidence = "the wave is measured once its clusters are updated"
	case len(in.clusters) == 0 || in.clock.updatedAt == nil:
		current.Evidence = "no cluster of the wave that runs the release can be measured now"
		current.WaitingSince = findWaitStart(in)
	case in.gate.Job != nil:
		current = judgeJobGate(in, installs)
	default:
		current = judgeNewestAnswer(in, answers, hash)
	}
	if !w.reached { // an override counts only after the wave is reached
		return current
	}
	return applyOverride(ro.Spec.Overrides, w.prior, current, in.now)
}

// applyOverride returns current as Overridden if a person overrode the gate, unless the gate has passed. The
// evidence is the person's reason and the evidence of current. An override that the status already records is
// returned unchanged.
func applyOverride(overrides []v1alpha1.GateOverride, prior v1alpha1.WaveStatus, current v1alpha1.GateStatus,
	now time.Time) v1alpha1.GateStatus {
	if current.Verdict == v1alpha1.GatePassed {
		return current
	}
	previous := findPriorGate(prior, current.Name)
	for _, o := range overrides {
		switch {
		case o.Wave != prior.Name || o.Gate != current.Name: // an override of another gate
		case previous.Verdict == v1alpha1.GateOverridden:
			return previous
		default:
			state := "had no verdict"
			if current.Verdict == v1alpha1.GateFailed {
				state = "had failed"
			}
			current.Evidence = phrase.Truncate(fmt.Sprintf("overridden by %s: %s; the gate %s: %s", o.By, o.Reason,
				state, current.Evidence), maxEvidence)
			current.Verdict, current.WaitingSince = v1alpha1.GateOverridden, nil
			current.DecidedAt = chooseDecisionTime(previous, o.At, now)
			return current
		}
	}
	return current
}

// maxEvidence is the API's limit for the length of the evidence.
const maxEvidence = 2048

// judgeNewestAnswer judges the gate by the newest measurement. If the hub has no measurement, because it was restarted
// or another hub measured, the measurement in the status is used until it is older than maxMeasurementAge.
func judgeNewestAnswer(in gateInput, answers []Answer, hash string) v1alpha1.GateStatus {
	previous, g := in.previous, in.gate
	since := in.clock.updatedAt.Time
	end := since.Add(GateWindow(g))
	if m := previous.Measurement; m != nil && !m.At.Add(-m.Window.Duration).Equal(since) {
		previous = v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting} // it measured an earlier soak
	}
	current := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting, Measurement: previous.Measurement}
	a, ok := findNewestAnswer(answers, Question{Wave: in.wave.Name, Gate: g.Name, Since: since, Clusters: in.clusters})
	ok = ok && in.now.Sub(a.At) <= maxMeasurementAge
	isRecent := previous.Measurement != nil && in.now.Sub(previous.Measurement.At.Time) <= maxMeasurementAge
	switch {
	case isRecent && (!ok || a.At.Before(previous.Measurement.At.Time)): // the status has the newest measurement
		current.Verdict, current.Evidence, current.DecidedAt = previous.Verdict, previous.Evidence, previous.DecidedAt
		if current.Verdict == v1alpha1.GateOverridden { // the override was withdrawn
			current.Verdict, current.DecidedAt = v1alpha1.GateWaiting, nil
		}
	case ok:
		f := judgeAnswer(in.rollout, hash, g, a, previous.Measurement)
		current.Verdict, current.Measurement = f.decideVerdict(a.At, end), &f.GateMeasurement
		current.Evidence = phrase.Truncate(f.formatEvidence(a.At, end), maxEvidence)
	case previous.Measurement != nil:
		current.Evidence = fmt.Sprintf("nothing was measured since %s", phrase.Time(previous.Measurement.At.Time))
	default:
		current.Evidence = "not measured yet"
	}
	return addVerdictTime(in, previous, current)
}

// addVerdictTime returns current with the time of the verdict or, for a Waiting gate, since when the wave waits only
// for this gate. A failure also records the number of retries.
func addVerdictTime(in gateInput, previous, current v1alpha1.GateStatus) v1alpha1.GateStatus {
	switch current.Verdict {
	case v1alpha1.GateWaiting:
		current.WaitingSince = findWaitStart(in)
	case previous.Verdict: // the verdict has not changed
		current.DecidedAt = previous.DecidedAt
	default:
		current.DecidedAt = roundDown(in.now)
	}
	if current.Verdict == v1alpha1.GateFailed {
		current.Retries = in.rollout.Spec.Retries
	}
	return current
}

// findWaitStart returns since when only the gate blocks the wave: the end of its window and of the soak. If the soak
// has not begun, it returns when the gate was first seen to block. It returns nil if something else blocks the wave
// too, and for verdictSlack after the end.
func findWaitStart(in gateInput) *metav1.Time {
	w := in.wave
	switch {
	case w.present == 0 || w.isChanging():
		return nil
	case in.clock.updatedAt == nil:
		return fillDefault(in.previous.WaitingSince, *roundDown(in.now))
	}
	end := in.clock.updatedAt.Add(max(GateWindow(in.gate), w.Soak.Duration))
	if in.now.Before(end.Add(verdictSlack)) {
		return nil
	}
	return roundDown(end)
}

// findApprovalWaitStart returns since when a missing approval blocks the wave's admission. If the approval does not
// block the wave, it returns g.WaitingSince, which is nil for a gate that was just judged.
func findApprovalWaitStart(ro *v1alpha1.OperatorRollout, w *classifiedWave, g v1alpha1.GateStatus,
	now time.Time) *metav1.Time {
	if g.IsPassed() || !w.reached || w.present == 0 || !ro.MayAdmit() ||
		w.prior.VerifiedAt != nil { // a cluster that joined a skipped wave waits too
		return g.WaitingSince
	}
	return fillDefault(findPriorGate(w.prior, g.Name).WaitingSince, *roundDown(now))
}

// findMissingApproval returns the name of the first gate that blocks admission, or "" if there is none.
func findMissingApproval(specs []v1alpha1.Gate, gates []v1alpha1.GateStatus) string {
	for i, g := range gates {
		if !IsMeasured(specs[i]) && !g.IsPassed() {
			return g.Name
		}
	}
	return ""
}

// explainGate says which gate stopped the rollout, and what a person can do.
func explainGate(w *judgedWave) string {
	g := w.failedGate
	return phrase.Truncate(fmt.Sprintf("gate %s of wave %s failed: %s; nothing more is admitted: set another version, "+
		"retry the rollout to have the wave judged again, or override the gate", g.Name, w.Name, g.Evidence),
		maxMessage)
}

// maxMessage is shorter than the API's limit, because the hub appends text to the message.
const maxMessage = 1500

// explainVerifying lists the gates that have no verdict yet.
func explainVerifying(w *judgedWave) string {
	var open []string
	for _, g := range w.gates {
		if !g.IsPassed() {
			open = append(open, fmt.Sprintf("gate %s has no verdict: %s", g.Name, g.Evidence))
		}
	}
	return phrase.Truncate(fmt.Sprintf("wave %s waits for %s: %s", w.Name, phrase.Count(len(open), "gate"),
		phrase.First(open, maxNamed)), maxMessage)
}

// listGateEvents returns an event for each verdict that changed, and for each gate that starts to block its wave.
func listGateEvents(prior v1alpha1.OperatorRolloutStatus, waves []v1alpha1.WaveStatus) []Event {
	var events []Event
	add := func(wave string, g v1alpha1.GateStatus, reason, text string) {
		events = append(events, Event{Reason: reason, Message: phrase.Truncate(fmt.Sprintf("gate %s of wave %s %s: %s",
			g.Name, wave, text, g.Evidence), maxEventNote)})
	}
	for _, w := range waves {
		priorWave := findPriorWave(prior, w.Name)
		for _, g := range w.Gates {
			previous := findPriorGate(priorWave, g.Name)
			switch {
			case g.Verdict != previous.Verdict && g.Verdict != v1alpha1.GateWaiting:
				add(w.Name, g, "Gate"+string(g.Verdict), verdictTexts[g.Verdict])
			case g.Verdict != previous.Verdict:
				add(w.Name, g, "GateUndecided", "has lost its verdict")
			case g.WaitingSince != nil && previous.WaitingSince == nil:
				add(w.Name, g, "GateWaiting", "holds the wave back")
			}
		}
	}
	return events
}

// maxEventNote is the limit of the events API.
const maxEventNote = 1000

// verdictTexts are the verbs of events, by verdict.
var verdictTexts = map[v1alpha1.GateVerdict]string{
	v1alpha1.GatePassed: "passed", v1alpha1.GateFailed: "failed", v1alpha1.GateOverridden: "is overridden",
}
