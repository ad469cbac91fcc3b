// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/marks"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// RolloutInput is what the picture of a rollout is made of.
type RolloutInput struct {
	Now     time.Time
	Rollout *v1alpha1.OperatorRollout
	// Installs carry the rollout's label.
	Installs []v1alpha1.OperatorInstall
	Clusters []v1alpha1.FleetCluster
	// Operator is the rollout's ManagedOperator; nil where it is not known.
	Operator *v1alpha1.ManagedOperator
	// HubAway says when the hub was last seen, if that is long ago. Only a picture that is drawn again has it.
	HubAway string
}

// maxAttention keeps the live view on one screen when a whole fleet fails.
const maxAttention = 15

// Rollout is the picture of a rollout: a header, a line per wave, and the
// clusters that need attention.
func Rollout(in RolloutInput, s term.Style) string {
	var out strings.Builder
	if in.HubAway != "" {
		out.WriteString(s.Lines(term.Warn, in.HubAway))
	}
	writeHeader(&out, in, s)
	if len(in.Rollout.Status.Waves) > 0 {
		out.WriteByte('\n')
		out.WriteString(waveTable(in).Render(s))
	}
	writeSoaks(&out, in, s)
	writeGates(&out, in, s)
	writeApprovals(&out, in, s)
	writePolicies(&out, in, s)
	writeHeldBack(&out, in, s)
	writeMoved(&out, in, s)
	WriteDecisions(&out, in.Operator, in.Rollout.Name, in.Now, s)
	members := attention(in)
	if len(members) > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.Paint(term.Strong,
			phrase.Count(len(members), "cluster")+" "+phrase.Word(len(members), "needs", "need")+" attention"))
		shown := members[:min(len(members), maxAttention)]
		out.WriteString(attentionTable(shown, in.Now).Render(s))
		if more := len(members) - len(shown); more > 0 {
			out.WriteString(s.Paint(term.Dim, fmt.Sprintf("and %d more\n", more)))
		}
		out.WriteString(s.Command(term.Dim, "explain one with:", fmt.Sprintf("%s why %s %s -n %s", s.ProgramName(),
			members[0].Cluster, in.Rollout.Spec.Operator.Name, in.Rollout.Namespace)))
	}
	return out.String()
}

// writeApprovals says how to approve what is waited for.
func writeApprovals(out *strings.Builder, in RolloutInput, s term.Style) {
	awaited := rollouts.AwaitingApproval(in.Rollout)
	for i := range in.Rollout.Status.Waves {
		w := &in.Rollout.Status.Waves[i]
		if !slices.ContainsFunc(awaited, func(g rollouts.GateRef) bool { return g.Wave == w.Name }) {
			continue
		}
		name := ""
		if w.Phase == v1alpha1.WaveSkipped { // it is not the one that the rollout waits for
			name = " --wave " + w.Name
		}
		out.WriteString("\n" + s.Command(term.Warn, "approve wave "+w.Name+" with:",
			fmt.Sprintf("%s rollout approve %s -n %s%s --reason \"…\"", s.ProgramName(), in.Rollout.Name,
				in.Rollout.Namespace, name)))
	}
}

func writeHeader(out *strings.Builder, in RolloutInput, s term.Style) {
	r := in.Rollout
	release := r.Spec.Release
	what := fmt.Sprintf("%s %s (channel %s)", release.Package, s.Paint(term.Strong, release.VersionText()),
		release.Channel)
	state := s.Paint(term.PhaseTone(r.Status.Phase), term.PhaseOf(r)) + "  " + s.Paint(term.Dim, took(r, in.Now))
	name := s.Paint(term.Strong, r.Name)
	if line := name + "  " + what + "  " + state; s.Width == 0 || term.Lines(line, s.Width) == 1 {
		out.WriteString(line + "\n")
	} else {
		fmt.Fprintf(out, "%s  %s\n%s\n", name, state, what)
	}
	if release.AsInstalled {
		out.WriteString(s.Lines(term.Plain, "takes over what others installed, in the versions that the clusters "+
			"have: no version changes, and no pod restarts"))
	}
	if message := phrase.OneLine(r.Status.Message); message != "" {
		out.WriteString(s.Lines(term.PhaseTone(r.Status.Phase), message))
	}
	if text := marks.Group(in.Clusters, in.Installs).Rollout(r).Details(); text != "" {
		out.WriteString(s.Lines(term.Warn, "marks: "+text))
	}
	if isStrategyOutdated(in) {
		out.WriteString(s.Lines(term.Plain, fmt.Sprintf("the ManagedOperator's strategy was changed: it applies to "+
			"the next rollout (start it now with: %s rollout restart %s -n %s)", s.ProgramName(), r.Spec.Operator.Name,
			r.Namespace)))
	}
	if text := rollouts.RollbackText(r); text != "" {
		out.WriteString(s.Lines(term.Plain, text))
	}
	writeHolds(out, in, s)
	writeStop(out, r, s)
}

// writeStop says why a rollout was aborted or paused, unless its message does.
func writeStop(out *strings.Builder, r *v1alpha1.OperatorRollout, s term.Style) {
	switch {
	case r.Spec.Abort != nil && (r.Spec.Abort.Rollback != nil ||
		strings.Contains(phrase.OneLine(r.Status.Message), phrase.OneLine(r.Spec.Abort.Reason))): // the message says so
	case r.Spec.Abort != nil:
		out.WriteString(s.Lines(term.Plain, "aborted: "+r.Spec.Abort.Reason))
	case r.Spec.Paused:
		why := phrase.OneLine(r.Spec.PausedReason)
		if why == "" {
			why = "no reason given"
		}
		out.WriteString(s.Lines(term.Plain, fmt.Sprintf("paused: %s (go on with: %s rollout resume %s -n %s)", why,
			s.ProgramName(), r.Name, r.Namespace)))
	}
}

// writeHolds says what is held because this rollout was rolled back, or was rolled back by this one.
func writeHolds(out *strings.Builder, in RolloutInput, s term.Style) {
	if in.Operator == nil {
		return
	}
	rolledBack := in.Rollout.Name
	if b := in.Rollout.Spec.Rollback; b != nil {
		rolledBack = b.Of
	}
	for _, h := range in.Operator.Spec.Holds {
		if h.Rollout != rolledBack {
			continue
		}
		text := h.String()
		if len(h.Changes) > 0 {
			text += ": " + strings.Join(h.Changes, "; ")
		}
		out.WriteString(s.Lines(term.Warn, text) + s.Command(term.Warn, "release it with:",
			fmt.Sprintf("%s operator release-hold %s %s --rollout %s -n %s", s.ProgramName(), in.Operator.Name,
				h.Version, h.Rollout, in.Operator.Namespace)))
	}
}

func isStrategyOutdated(in RolloutInput) bool {
	if in.Operator == nil {
		return false
	}
	newest := in.Operator.Status.Rollout
	return newest != nil && newest.Name == in.Rollout.Name && newest.StrategyOutdated
}

func waveTable(in RolloutInput) *term.Table {
	t := &term.Table{Header: []string{"WAVE", "PHASE", "PROGRESS", "UPDATED", "NOTE"}, Wrap: true}
	for i := range in.Rollout.Status.Waves {
		w := &in.Rollout.Status.Waves[i]
		if impliedOnly(w) && i > 0 {
			continue
		}
		tone := waveTone(in.Rollout, w)
		t.Add(term.Strong.Cell(w.Name), tone.Cell(rollouts.ShownPhase(in.Rollout, w)),
			tone.Cell(bar(w.WaveCounts, barWidth)),
			term.Cell{Text: term.Fraction(w.Succeeded, w.Total-w.Removed)}, waveNote(in, w))
	}
	return t
}

// waveTone is the tone of a wave's phase, as it is shown.
func waveTone(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) term.Tone {
	if rollouts.ShownPhase(r, w) != string(w.Phase) {
		return term.Dim
	}
	return term.WaveTone(w.Phase)
}

// impliedOnly is true for the last wave that nobody asked for and nobody is in.
func impliedOnly(w *v1alpha1.WaveStatus) bool { return w.Total == 0 && w.Name == rollouts.RestWave }

const barWidth = 20

// bar draws done, busy and open clusters. Any one that is done or failed is
// visible, and the bar is full only when all are done.
func bar(n v1alpha1.WaveCounts, width int) string {
	total := int(n.Total - n.Removed)
	if total <= 0 {
		return strings.Repeat("·", width)
	}
	done := int(n.Succeeded) * width / total
	failed := ceil(int(n.Failed)*width, total)
	busy := min(ceil(int(n.InProgress)*width, total), width-done-min(failed, width-done))
	failed = min(failed, width-done)
	open := width - done - failed - busy
	return strings.Repeat("█", done) + strings.Repeat("▒", busy) + strings.Repeat("x", failed) +
		strings.Repeat("·", open)
}

func ceil(a, b int) int { return (a + b - 1) / b }

// waveNote says what is going on in a wave, what it waits for, or how it ended.
func waveNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	note := phaseNote(in, w)
	if states := waveStates(w.WaveCounts); states != "" {
		note.Text = strings.TrimSuffix(states+"; "+note.Text, "; ")
	}
	switch {
	case w.Failed > 0:
		note.Tone = term.Bad
	case w.Deferred > 0:
		note.Tone = term.Warn
	}
	return note
}

// waveStates counts the clusters that are neither updated nor to come.
func waveStates(n v1alpha1.WaveCounts) string {
	var parts []string
	for _, part := range []struct {
		n    int32
		name string
	}{{n.InProgress, "in progress"}, {n.Failed, "failed"}, {n.Deferred, "deferred"}, {n.Removed, "removed"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return strings.Join(parts, ", ")
}

func phaseNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	switch shown := rollouts.ShownPhase(in.Rollout, w); {
	case shown == rollouts.ShownStopped || shown == rollouts.ShownNotStarted:
		return term.Cell{Tone: term.Dim}
	case shown != string(w.Phase):
		return term.Cell{Text: "no cluster is being updated", Tone: term.Dim}
	}
	switch w.Phase {
	case v1alpha1.WaveSoaking:
		return soakNote(in, w)
	case v1alpha1.WaveVerified:
		return verifiedNote(in, w)
	case v1alpha1.WaveUpdating:
		return term.Cell{Text: fmt.Sprintf("at most %d at a time, %s allowed", w.MaxConcurrency,
			phrase.Count(w.MaxFailures, "failure")), Tone: term.Dim}
	case v1alpha1.WaveGated:
		return term.Cell{Text: gateEvidence(w), Tone: term.Warn}
	case v1alpha1.WaveVerifying:
		return verifyingNote(w)
	case v1alpha1.WaveSkipped:
		return skippedNote(w)
	default:
		return term.Cell{Text: gateEvidence(w), Tone: term.Dim}
	}
}

func skippedNote(w *v1alpha1.WaveStatus) term.Cell {
	if w.Total > 0 {
		text := phrase.Count(w.Total, "cluster") + " joined later"
		if evidence := gateEvidence(w); evidence != "" {
			text += "; " + evidence
		}
		return term.Cell{Text: text, Tone: term.Dim}
	}
	return term.Cell{Text: "it had no cluster", Tone: term.Dim}
}

func verifiedNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	var parts []string
	if w.VerifiedAt != nil {
		parts = append(parts, "at "+term.Clock(in.Now, w.VerifiedAt))
	}
	if spec := rollouts.WaveSpec(in.Rollout, w.Name); spec.Soak != nil && spec.Soak.Duration > 0 {
		parts = append(parts, "soaked "+term.Span(spec.Soak.Duration))
	}
	if evidence := gateEvidence(w); evidence != "" {
		parts = append(parts, evidence)
	}
	return term.Cell{Text: strings.Join(parts, "; "), Tone: term.Dim}
}

func gateEvidence(w *v1alpha1.WaveStatus) string {
	var parts []string
	for _, g := range w.Gates {
		parts = append(parts, fmt.Sprintf("gate %s %s: %s", g.Name, strings.ToLower(string(g.Verdict)),
			term.OrElse(phrase.OneLine(g.Evidence), "no evidence yet")))
	}
	return strings.Join(parts, "; ")
}

// RolloutChanges tells, a line each, what changed between two looks at a
// rollout. It is what a log gets instead of a live picture. A before without a
// rollout is the first look.
func RolloutChanges(before, after RolloutInput) []string {
	var was v1alpha1.OperatorRolloutStatus
	if before.Rollout != nil {
		was = before.Rollout.Status
	}
	name, is := after.Rollout.Name, after.Rollout.Status
	var lines []string
	if is.Phase != was.Phase {
		lines = append(lines, join(name, term.PhaseOf(after.Rollout), phrase.OneLine(is.Message)))
	}
	waves := map[string]v1alpha1.WaveStatus{}
	for _, w := range was.Waves {
		waves[w.Name] = w
	}
	for i, w := range is.Waves {
		if i == 0 || !impliedOnly(&w) {
			lines = append(lines, waveChanges(after.Rollout, waves[w.Name], w)...)
		}
	}
	lines = append(lines, soakChanges(before, after)...)
	return append(lines, attentionChanges(before, after)...)
}

// attentionChanges tells of clusters that need attention now and did not, or
// did for another reason.
func attentionChanges(before, after RolloutInput) []string {
	known := map[string]bool{}
	for _, m := range attention(before) {
		known[m.Cluster+m.state+m.reason] = true
	}
	var lines []string
	for _, m := range attention(after) {
		if !known[m.Cluster+m.state+m.reason] {
			lines = append(lines, join(after.Rollout.Name, "cluster "+m.Cluster,
				m.state+" "+m.reason+": "+phrase.OneLine(m.message)))
		}
	}
	return lines
}

func waveChanges(r *v1alpha1.OperatorRollout, was, is v1alpha1.WaveStatus) []string {
	rollout, shown := r.Name, rollouts.ShownPhase(r, &is)
	var lines []string
	if (is.Phase != was.Phase || is.WaveCounts != was.WaveCounts) && shown != string(v1alpha1.WaveWaiting) &&
		shown != rollouts.ShownNotStarted {
		text := fmt.Sprintf("%s updated", term.Fraction(is.Succeeded, is.Total-is.Removed))
		if states := waveStates(is.WaveCounts); states != "" {
			text += ", " + states
		}
		lines = append(lines, join(rollout, "wave "+is.Name, shown+": "+text))
	}
	gates := map[string]v1alpha1.GateStatus{}
	for _, g := range was.Gates {
		gates[g.Name] = g
	}
	for _, g := range is.Gates {
		if g.Verdict != gates[g.Name].Verdict &&
			(is.Phase != v1alpha1.WaveWaiting || g.Verdict != v1alpha1.GateWaiting) {
			lines = append(lines, join(rollout, "wave "+is.Name,
				fmt.Sprintf("gate %s %s: %s", g.Name, strings.ToLower(string(g.Verdict)), phrase.OneLine(g.Evidence))))
		}
	}
	return lines
}

func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "  ")
}
