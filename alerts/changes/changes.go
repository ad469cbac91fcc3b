// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes describes what a rollout changes and what happened to it, for PagerDuty's change
// events and for the context of alerts. It also decides which change event of a rollout is sent next.
// Its inputs are OperatorRollouts and OperatorInstalls. It is pure: it sends nothing, and has no clock.
//
// The caller records an event before it sends the event, and records the result afterwards.
// If a recorded event has no result later, it may have been sent, and is never sent again.
package changes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Transition is a change in the state of a rollout.
type Transition struct {
	// Name and At identify the transition within the rollout. They are the same each time
	// it is derived. Names are such as started, wave/canary/verified, paused or succeeded.
	Name string
	At   metav1.Time
	// Summary is a sentence with the operator and the version: at most 512 characters.
	Summary string
	// Details are further facts, as text.
	Details map[string]any
}

// maxSummary is half of the maximum of PagerDuty.
const maxSummary = 512

// phaseNames are the names of the transitions into phases. Progressing is the end of a stop.
var phaseNames = map[v1alpha1.RolloutPhase]string{
	v1alpha1.RolloutPaused: "paused", v1alpha1.RolloutHalted: "halted", v1alpha1.RolloutProgressing: "resumed",
	v1alpha1.RolloutSucceeded: "succeeded", v1alpha1.RolloutAborted: "aborted",
	v1alpha1.RolloutSuperseded: "superseded", v1alpha1.RolloutRolledBack: "rolled-back",
}

// Transitions returns the transitions in the status of a rollout,
// the oldest first. previousVersion is the result of VersionBefore.
func Transitions(ro *v1alpha1.OperatorRollout, previousVersion string) []Transition {
	c := change{ro, previousVersion}
	var out []Transition
	if ro.Status.StartedAt != nil {
		out = append(out, c.newTransition("started", *ro.Status.StartedAt, c.describeStart()))
	}
	for _, w := range ro.Status.Waves {
		out = append(out, c.listWaveTransitions(w)...)
	}
	var previous v1alpha1.RolloutPhase
	for _, p := range ro.Status.Phases {
		stopped := previous == v1alpha1.RolloutPaused || previous == v1alpha1.RolloutHalted
		name, known := phaseNames[p.Phase]
		// A rollout is progressing from its start, so only the end of a stop is a transition to Progressing.
		if known && (p.Phase != v1alpha1.RolloutProgressing || stopped) {
			out = append(out, c.newTransition(name, p.At, c.describePhase(name, p)))
		}
		previous = p.Phase
	}
	slices.SortStableFunc(out, func(a, b Transition) int { return a.At.Compare(b.At.Time) })
	return out
}

// Describe returns the transition with a name and a time. It returns false
// if the rollout does not have it, as for a wave that failed and recovered.
func Describe(ro *v1alpha1.OperatorRollout, previousVersion, name string, at metav1.Time) (Transition, bool) {
	all := Transitions(ro, previousVersion)
	i := slices.IndexFunc(all, func(t Transition) bool { return t.Name == name && t.At.Equal(&at) })
	if i < 0 {
		return Transition{}, false
	}
	return all[i], true
}

// change is a rollout with the version that it changes clusters from, as VersionBefore returns it.
type change struct {
	*v1alpha1.OperatorRollout
	previousVersion string
}

func (c change) operatorName() string { return c.Namespace + "/" + c.Spec.Operator.Name }

// newTransition returns a transition with the details that all transitions have.
func (c change) newTransition(name string, at metav1.Time, summary string) Transition {
	details := map[string]any{
		"operator": c.operatorName(), "version": c.Spec.Release.VersionText(), "rollout": c.Name,
		"kind":     Kind(c.OperatorRollout),
		"clusters": describeCounts(c.Status.Clusters),
		"look":     fmt.Sprintf("bellwether rollout get %s -n %s", c.Name, c.Namespace),
	}
	optional := map[string]string{"version_before": c.previousVersion, "approved_by": ApprovedBy(c.OperatorRollout)}
	for key, value := range optional {
		if value != "" {
			details[key] = value
		}
	}
	if r := c.Spec.Rollback; r != nil {
		details["rolled_back_rollout"], details["reason"] = r.Of, r.Reason
	}
	return Transition{Name: name, At: at, Summary: phrase.Truncate(phrase.OneLine(summary), maxSummary),
		Details: details}
}

// describeStart returns the summary of the start of a rollout.
func (c change) describeStart() string {
	action := "rollout " + c.Spec.Release.Purpose()
	if !c.Spec.Release.AsInstalled {
		action = "rollout of " + c.Spec.Release.Version
	}
	if c.previousVersion != "" {
		action = Kind(c.OperatorRollout) + " " + c.previousVersion + " -> " + c.Spec.Release.VersionText()
	}
	text := fmt.Sprintf("%s: %s started on %s in %s", c.operatorName(), action,
		phrase.Count(c.Status.Clusters.Total, "cluster"), phrase.Count(len(c.Status.Waves), "wave"))
	if r := c.Spec.Rollback; r != nil {
		text += fmt.Sprintf(", of rollout %s: %s", r.Of, r.Reason)
	}
	return text
}

// listWaveTransitions returns the transitions of one wave. A wave without clusters has none.
func (c change) listWaveTransitions(w v1alpha1.WaveStatus) []Transition {
	if w.Total == 0 {
		return nil
	}
	var out []Transition
	add := func(event string, at *metav1.Time, text string) {
		if at == nil { // the event has not happened
			return
		}
		t := c.newTransition("wave/"+w.Name+"/"+event, *at, fmt.Sprintf("%s %s: wave %s %s", c.operatorName(),
			c.Spec.Release.VersionText(), w.Name, text))
		t.Details["wave"], t.Details["wave_clusters"] = w.Name, describeCounts(w.WaveCounts)
		if approvers := c.listWaveApprovers(w.Name); approvers != "" {
			t.Details["approved_by"] = approvers
		}
		out = append(out, t)
	}
	add("started", w.StartedAt, "started on "+phrase.Count(w.Total, "cluster"))
	add("failed", w.FailedAt, "failed: "+describeFailure(w))
	add("verified", w.VerifiedAt, "verified: "+describeCounts(w.WaveCounts))
	return out
}

// listWaveApprovers returns the names of the users who approved a wave, in the order of their approvals.
func (c change) listWaveApprovers(wave string) string {
	var given []v1alpha1.Approval
	for _, a := range c.Spec.Approvals {
		if a.Wave == wave {
			given = append(given, a)
		}
	}
	slices.SortStableFunc(given, func(a, b v1alpha1.Approval) int { return a.At.Compare(b.At.Time) })
	var names []string
	for _, a := range given {
		if !slices.Contains(names, a.By) {
			names = append(names, a.By)
		}
	}
	return strings.Join(names, ", ")
}

// describeFailure returns the reason why a wave is judged failed.
func describeFailure(w v1alpha1.WaveStatus) string {
	if w.Failed > w.MaxFailures {
		return fmt.Sprintf("%s failed, %d allowed", phrase.Count(w.Failed, "cluster"), w.MaxFailures)
	}
	for _, g := range w.Gates {
		if g.Verdict == v1alpha1.GateFailed {
			return fmt.Sprintf("gate %s: %s", g.Name, g.Evidence)
		}
	}
	return describeCounts(w.WaveCounts)
}

// describePhase returns the summary of a transition into a phase. Most messages already begin with the verb.
func (c change) describePhase(name string, p v1alpha1.PhaseChange) string {
	verb := strings.ReplaceAll(name, "-", " ")
	text := cmp.Or(p.Message, verb)
	if !strings.HasPrefix(text, verb) {
		text = verb + ": " + text
	}
	return fmt.Sprintf("%s %s: %s %s", c.operatorName(), c.Spec.Release.VersionText(), Kind(c.OperatorRollout), text)
}

// describeCounts returns the numbers of updated, failed and deferred clusters as text.
func describeCounts(n v1alpha1.WaveCounts) string {
	text := fmt.Sprintf("%d of %s updated, %d failed", n.Succeeded, phrase.Count(n.Total-n.Removed, "cluster"),
		n.Failed)
	if n.Deferred > 0 {
		text += fmt.Sprintf(", %d deferred", n.Deferred)
	}
	return text
}
