// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// writeSoaks writes the health of each cluster of the waves that soak. Clusters that are not Ready come first.
func writeSoaks(out *strings.Builder, in RolloutInput, s term.Style) {
	for i := range in.Rollout.Status.Waves {
		w := &in.Rollout.Status.Waves[i]
		if w.Phase != v1alpha1.WaveSoaking || in.Rollout.IsStopped() {
			continue
		}
		out.WriteString("\n" + s.Lines(term.Strong, fmt.Sprintf("wave %s soaks: %s", w.Name,
			formatSoakNote(in, w).Text)))
		members := listSoakingMembers(in, w.Name)
		shown := members[:min(len(members), maxAttention)]
		t := &term.Table{Header: []string{"CLUSTER", "HEALTH", "FAILS IN", "MESSAGE"}, Wrap: true}
		for _, m := range shown {
			t.Add(term.Cell{Text: m.Cluster}, buildHealthCell(m, in.Now), buildGraceCell(m, in.Now),
				term.Cell{Text: phrase.OneLine(m.message)})
		}
		out.WriteString(t.Render(s))
		if more := len(members) - len(shown); more > 0 {
			out.WriteString(s.Paint(term.Dim, fmt.Sprintf("and %d more\n", more)))
		}
	}
}

// listSoakingMembers returns the members of a wave that were updated, the worst first.
func listSoakingMembers(in RolloutInput, wave string) []member {
	members := slices.DeleteFunc(classifyMembers(in), func(m member) bool {
		return m.Wave != wave || !m.Updated || m.Class == rollouts.ClassRemoved
	})
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(b.tone, a.tone) })
	return members
}

// formatHealth returns the state of a cluster during the soak.
func formatHealth(m member) string {
	switch {
	case m.Class == rollouts.ClassSucceeded:
		return "Ready"
	case m.Reason == rollouts.ReasonNotReady:
		return "not Ready"
	default:
		return m.state + " (" + m.Reason + ")"
	}
}

// buildHealthCell returns the state of a cluster during the soak, and for how long it is not Ready.
func buildHealthCell(m member, now time.Time) term.Cell {
	text := formatHealth(m)
	if m.Reason == rollouts.ReasonNotReady && !m.Since.IsZero() {
		text += " for " + term.Span(now.Sub(m.Since))
	}
	return m.tone.Cell(text)
}

// buildGraceCell returns the time after which a cluster that is not Ready fails.
func buildGraceCell(m member, now time.Time) term.Cell {
	switch {
	case m.Class == rollouts.ClassFailed:
		return term.Bad.Cell("failed")
	case m.Class != rollouts.ClassInProgress || m.Until.IsZero():
		return term.Dim.Cell("-")
	default:
		return term.Warn.Cell(term.Span(m.Until.Sub(now).Round(time.Second)))
	}
}

// listSoakChanges returns a line for each updated cluster of a wave that soaks, if its wave did not soak in before, or
// if its health or its message has changed.
func listSoakChanges(before, after RolloutInput) []string {
	isListed := map[string]bool{}
	forEachLine := func(in RolloutInput, do func(line string)) {
		if in.Rollout == nil {
			return
		}
		for _, w := range in.Rollout.Status.Waves {
			if w.Phase != v1alpha1.WaveSoaking || in.Rollout.IsStopped() {
				continue
			}
			for _, m := range listSoakingMembers(in, w.Name) {
				do(joinNonEmpty(in.Rollout.Name, "wave "+w.Name, "soak: cluster "+m.Cluster+" is "+formatHealth(m)+
					prefixColon(phrase.OneLine(m.message))))
			}
		}
	}
	forEachLine(before, func(line string) { isListed[line] = true })
	var lines []string
	forEachLine(after, func(line string) {
		if !isListed[line] {
			lines = append(lines, line)
		}
	})
	return lines
}

// prefixColon returns ": " and the text; empty if the text is empty.
func prefixColon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// formatSoakNote returns how long a wave still soaks, or that it waits until every cluster is Ready. The remaining
// time of an interrupted soak is the time that was left when the soak was interrupted.
func formatSoakNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	spec := rollouts.WaveSpec(in.Rollout, w.Name)
	end := rollouts.SoakEnd(spec, *w)
	if end.IsZero() {
		return term.Warn.Cell("waits until every cluster is Ready")
	}
	now, stopped := in.Now, ""
	if w.InterruptedAt != nil {
		now, stopped = w.InterruptedAt.Time, "; it waits until every cluster is Ready"
	}
	remaining := min(end.Sub(now), spec.Soak.Duration) // the clock of the hub may be ahead
	if remaining <= 0 {
		return term.Good.Cell("soaked " + term.Span(spec.Soak.Duration) + stopped)
	}
	return term.Warn.Cell(fmt.Sprintf("%s of %s soak left%s", term.Span(remaining.Round(time.Second)),
		term.Span(spec.Soak.Duration), stopped))
}
