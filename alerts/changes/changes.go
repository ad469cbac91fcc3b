// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes says what a rollout changes and what happened to it, for PagerDuty's
// change events and for the context of alerts. Its inputs are OperatorRollouts and
// OperatorInstalls. It is pure: it sends nothing, and has no clock.
package changes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Transition is something that happened to a rollout.
type Transition struct {
	// Name and At identify it within the rollout, whenever it is looked at again. The name
	// is such as started, wave/canary/verified, paused or succeeded.
	Name string
	At   metav1.Time
	// Summary is a sentence with the operator and the version: at most 512 characters.
	Summary string
	// Details are further facts, as text.
	Details map[string]any
}

// maxSummary is half of what PagerDuty takes.
const maxSummary = 512

// phaseNames are the transitions into phases. Progressing is the end of a stop.
var phaseNames = map[v1alpha1.RolloutPhase]string{
	v1alpha1.RolloutPaused: "paused", v1alpha1.RolloutHalted: "halted", v1alpha1.RolloutProgressing: "resumed",
	v1alpha1.RolloutSucceeded: "succeeded", v1alpha1.RolloutAborted: "aborted",
	v1alpha1.RolloutSuperseded: "superseded", v1alpha1.RolloutRolledBack: "rolled-back",
}

// Transitions are those that the status of a rollout tells of, the oldest first. before is
// VersionBefore.
func Transitions(ro *v1alpha1.OperatorRollout, before string) []Transition {
	c := change{ro, before}
	var out []Transition
	if ro.Status.StartedAt != nil {
		out = append(out, c.transition("started", *ro.Status.StartedAt, c.started()))
	}
	for _, w := range ro.Status.Waves {
		out = append(out, c.wave(w)...)
	}
	var last v1alpha1.RolloutPhase
	for _, p := range ro.Status.Phases {
		stopped := last == v1alpha1.RolloutPaused || last == v1alpha1.RolloutHalted
		name, known := phaseNames[p.Phase]
		if known && (p.Phase != v1alpha1.RolloutProgressing || stopped) {
			out = append(out, c.transition(name, p.At, c.phase(name, p)))
		}
		last = p.Phase
	}
	slices.SortStableFunc(out, func(a, b Transition) int { return a.At.Compare(b.At.Time) })
	return out
}

// Describe returns one of the Transitions; false if there is none of this name and time any
// more, as for a wave that failed and recovered.
func Describe(ro *v1alpha1.OperatorRollout, before, name string, at metav1.Time) (Transition, bool) {
	all := Transitions(ro, before)
	i := slices.IndexFunc(all, func(t Transition) bool { return t.Name == name && t.At.Equal(&at) })
	if i < 0 {
		return Transition{}, false
	}
	return all[i], true
}

// change is a rollout with the version before it.
type change struct {
	*v1alpha1.OperatorRollout
	before string
}

func (c change) operator() string { return c.Namespace + "/" + c.Spec.Operator.Name }

func (c change) transition(name string, at metav1.Time, summary string) Transition {
	details := map[string]any{
		"operator": c.operator(), "version": c.Spec.Release.VersionText(), "rollout": c.Name,
		"kind":     Kind(c.OperatorRollout),
		"clusters": counts(c.Status.Clusters),
		"look":     fmt.Sprintf("bellwether rollout get %s -n %s", c.Name, c.Namespace),
	}
	known := map[string]string{"version_before": c.before, "approved_by": ApprovedBy(c.OperatorRollout)}
	for key, value := range known {
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

func (c change) started() string {
	what := "rollout " + c.Spec.Release.Purpose()
	if !c.Spec.Release.AsInstalled {
		what = "rollout of " + c.Spec.Release.Version
	}
	if c.before != "" {
		what = Kind(c.OperatorRollout) + " " + c.before + " -> " + c.Spec.Release.VersionText()
	}
	text := fmt.Sprintf("%s: %s started on %s in %s", c.operator(), what,
		phrase.Count(c.Status.Clusters.Total, "cluster"), phrase.Count(len(c.Status.Waves), "wave"))
	if r := c.Spec.Rollback; r != nil {
		text += fmt.Sprintf(", of rollout %s: %s", r.Of, r.Reason)
	}
	return text
}

// wave has the transitions of one wave. One without clusters has none.
func (c change) wave(w v1alpha1.WaveStatus) []Transition {
	if w.Total == 0 {
		return nil
	}
	var out []Transition
	add := func(what string, at *metav1.Time, text string) {
		if at == nil {
			return
		}
		t := c.transition("wave/"+w.Name+"/"+what, *at, fmt.Sprintf("%s %s: wave %s %s", c.operator(),
			c.Spec.Release.VersionText(), w.Name, text))
		t.Details["wave"], t.Details["wave_clusters"] = w.Name, counts(w.WaveCounts)
		if by := c.waveApprovedBy(w.Name); by != "" {
			t.Details["approved_by"] = by
		}
		out = append(out, t)
	}
	add("started", w.StartedAt, "started on "+phrase.Count(w.Total, "cluster"))
	add("failed", w.FailedAt, "failed: "+failure(w))
	add("verified", w.VerifiedAt, "verified: "+counts(w.WaveCounts))
	return out
}

// waveApprovedBy is who approved a wave, in the order of their approvals.
func (c change) waveApprovedBy(wave string) string {
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

// failure is why a wave is judged failed.
func failure(w v1alpha1.WaveStatus) string {
	if w.Failed > w.MaxFailures {
		return fmt.Sprintf("%s failed, %d allowed", phrase.Count(w.Failed, "cluster"), w.MaxFailures)
	}
	for _, g := range w.Gates {
		if g.Verdict == v1alpha1.GateFailed {
			return fmt.Sprintf("gate %s: %s", g.Name, g.Evidence)
		}
	}
	return counts(w.WaveCounts)
}

// phase says that a rollout came into a phase. Most messages begin with that word.
func (c change) phase(name string, p v1alpha1.PhaseChange) string {
	verb := strings.ReplaceAll(name, "-", " ")
	text := cmp.Or(p.Message, verb)
	if !strings.HasPrefix(text, verb) {
		text = verb + ": " + text
	}
	return fmt.Sprintf("%s %s: %s %s", c.operator(), c.Spec.Release.VersionText(), Kind(c.OperatorRollout), text)
}

// counts says what became of clusters.
func counts(n v1alpha1.WaveCounts) string {
	text := fmt.Sprintf("%d of %s updated, %d failed", n.Succeeded, phrase.Count(n.Total-n.Removed, "cluster"),
		n.Failed)
	if n.Deferred > 0 {
		text += fmt.Sprintf(", %d deferred", n.Deferred)
	}
	return text
}
