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
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// writeSoaks shows the health of each cluster of the waves that soak, those that
// are not Ready first.
func writeSoaks(out *strings.Builder, in RolloutInput, s term.Style) {
	for i := range in.Rollout.Status.Waves {
		w := &in.Rollout.Status.Waves[i]
		if w.Phase != v1alpha1.WaveSoaking || in.Rollout.IsStopped() {
			continue
		}
		out.WriteString("\n" + s.Lines(term.Strong, fmt.Sprintf("wave %s soaks: %s", w.Name, soakNote(in, w).Text)))
		members := soaking(in, w.Name)
		shown := members[:min(len(members), maxAttention)]
		t := &term.Table{Header: []string{"CLUSTER", "HEALTH", "FAILS IN", "MESSAGE"}, Wrap: true}
		for _, m := range shown {
			t.Add(term.Cell{Text: m.Cluster}, healthCell(m, in.Now), failsIn(m, in.Now),
				term.Cell{Text: phrase.OneLine(m.message)})
		}
		out.WriteString(t.Render(s))
		if more := len(members) - len(shown); more > 0 {
			out.WriteString(s.Paint(term.Dim, fmt.Sprintf("and %d more\n", more)))
		}
	}
}

// soaking are the clusters of a wave that were updated.
func soaking(in RolloutInput, wave string) []member {
	members := slices.DeleteFunc(membersOf(in), func(m member) bool {
		return m.Wave != wave || !m.Updated || m.Class == rollouts.ClassRemoved
	})
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(b.tone, a.tone) })
	return members
}

// health is a cluster's state in the soak.
func health(m member) string {
	switch {
	case m.Class == rollouts.ClassSucceeded:
		return "Ready"
	case m.Reason == rollouts.ReasonNotReady:
		return "not Ready"
	default:
		return m.state + " (" + m.Reason + ")"
	}
}

func healthCell(m member, now time.Time) term.Cell {
	text := health(m)
	if m.Reason == rollouts.ReasonNotReady && !m.Since.IsZero() {
		text += " for " + term.Span(now.Sub(m.Since))
	}
	return m.tone.Cell(text)
}

// failsIn is the time that is left of a cluster's grace.
func failsIn(m member, now time.Time) term.Cell {
	switch {
	case m.Class == rollouts.ClassFailed:
		return term.Bad.Cell("failed")
	case m.Class != rollouts.ClassInProgress || m.Until.IsZero():
		return term.Dim.Cell("-")
	default:
		return term.Warn.Cell(term.Span(m.Until.Sub(now).Round(time.Second)))
	}
}

// soakChanges tells of each cluster of a wave that soaks, when that begins and
// whenever its health changes.
func soakChanges(before, after RolloutInput) []string {
	known := map[string]bool{}
	each := func(in RolloutInput, do func(line string)) {
		if in.Rollout == nil {
			return
		}
		for _, w := range in.Rollout.Status.Waves {
			if w.Phase != v1alpha1.WaveSoaking || in.Rollout.IsStopped() {
				continue
			}
			for _, m := range soaking(in, w.Name) {
				do(join(in.Rollout.Name, "wave "+w.Name, "soak: cluster "+m.Cluster+" is "+health(m)+
					colon(phrase.OneLine(m.message))))
			}
		}
	}
	each(before, func(line string) { known[line] = true })
	var lines []string
	each(after, func(line string) {
		if !known[line] {
			lines = append(lines, line)
		}
	})
	return lines
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func soakNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	spec := rollouts.WaveSpec(in.Rollout, w.Name)
	end := rollouts.SoakEnd(spec, *w)
	if end.IsZero() {
		return term.Warn.Cell("waits until every cluster is Ready")
	}
	now, stopped := in.Now, ""
	if w.InterruptedAt != nil {
		now, stopped = w.InterruptedAt.Time, "; it waits until every cluster is Ready"
	}
	left := min(end.Sub(now), spec.Soak.Duration) // the clock of the hub may be ahead
	if left <= 0 {
		return term.Good.Cell("soaked " + term.Span(spec.Soak.Duration) + stopped)
	}
	return term.Warn.Cell(fmt.Sprintf("%s of %s soak left%s", term.Span(left.Round(time.Second)),
		term.Span(spec.Soak.Duration), stopped))
}
