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
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// RolloutInput has the data from which a rollout is shown.
type RolloutInput struct {
	Now     time.Time
	Rollout *v1alpha1.OperatorRollout
	// Installs carry the rollout's label.
	Installs []v1alpha1.OperatorInstall
	Clusters []v1alpha1.FleetCluster
	// Operator is the ManagedOperator of the rollout; nil if it was not read.
	Operator *v1alpha1.ManagedOperator
	// HubAway is a warning with the time at which the hub was last seen, if this was long ago. It is set only
	// while a command watches a rollout.
	HubAway string
}

// maxAttention is the number of clusters that are shown, so that the live view fits on one
// screen when a whole fleet fails.
const maxAttention = 15

// RenderRollout returns the text that shows a rollout: a header, a line for each wave, and
// the clusters that need attention.
func RenderRollout(in RolloutInput, s term.Style) string {
	var out strings.Builder
	if in.HubAway != "" {
		out.WriteString(s.Lines(term.Warn, in.HubAway))
	}
	writeHeader(&out, in, s)
	if len(in.Rollout.Status.Waves) > 0 {
		out.WriteByte('\n')
		out.WriteString(buildWaveTable(in).Render(s))
	}
	writeSoaks(&out, in, s)
	writeGates(&out, in, s)
	writeApprovals(&out, in, s)
	writePolicies(&out, in, s)
	writeNotAdmitted(&out, in, s)
	writeMovedClusters(&out, in, s)
	WriteDecisions(&out, in.Operator, in.Rollout.Name, in.Now, s)
	members := listAttentionMembers(in)
	if len(members) > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.Paint(term.Strong,
			phrase.Count(len(members), "cluster")+" "+phrase.Word(len(members), "needs", "need")+" attention"))
		shown := members[:min(len(members), maxAttention)]
		out.WriteString(buildAttentionTable(shown, in.Now).Render(s))
		if more := len(members) - len(shown); more > 0 {
			out.WriteString(s.Paint(term.Dim, fmt.Sprintf("and %d more\n", more)))
		}
		out.WriteString(s.Command(term.Dim, "explain one with:", fmt.Sprintf("%s why %s %s -n %s", s.ProgramName(),
			members[0].Cluster, in.Rollout.Spec.Operator.Name, in.Rollout.Namespace)))
	}
	return out.String()
}

// writeApprovals writes the command that approves each wave that waits for an approval.
func writeApprovals(out *strings.Builder, in RolloutInput, s term.Style) {
	awaited := rollouts.AwaitingApproval(in.Rollout)
	for i := range in.Rollout.Status.Waves {
		w := &in.Rollout.Status.Waves[i]
		if !slices.ContainsFunc(awaited, func(g rollouts.GateRef) bool { return g.Wave == w.Name }) {
			continue
		}
		name := ""
		if w.Phase == v1alpha1.WaveSkipped { // the rollout does not wait for it, so the command must name it
			name = " --wave " + w.Name
		}
		out.WriteString("\n" + s.Command(term.Warn, "approve wave "+w.Name+" with:",
			fmt.Sprintf("%s rollout approve %s -n %s%s --reason \"…\"", s.ProgramName(), in.Rollout.Name,
				in.Rollout.Namespace, name)))
	}
}

// writeHeader writes the name, release, phase and message of a rollout, with warnings and holds. The first line is
// split if it is wider than the style; a width of 0 means no limit.
func writeHeader(out *strings.Builder, in RolloutInput, s term.Style) {
	r := in.Rollout
	release := r.Spec.Release
	title := fmt.Sprintf("%s %s (channel %s)", release.Package, s.Paint(term.Strong, release.VersionText()),
		release.Channel)
	state := s.Paint(term.PhaseTone(r.Status.Phase), term.PhaseOf(r)) + "  " +
		s.Paint(term.Dim, formatDuration(r, in.Now))
	name := s.Paint(term.Strong, r.Name)
	if line := name + "  " + title + "  " + state; s.Width == 0 || term.Lines(line, s.Width) == 1 {
		out.WriteString(line + "\n")
	} else {
		fmt.Fprintf(out, "%s  %s\n%s\n", name, state, title)
	}
	if release.AsInstalled {
		out.WriteString(s.Lines(term.Plain, "takes over what others installed, in the versions that the clusters "+
			"have: no version changes, and no pod restarts"))
	}
	if message := phrase.OneLine(r.Status.Message); message != "" {
		out.WriteString(s.Lines(term.PhaseTone(r.Status.Phase), message))
	}
	if text := explain.NewFleetMarks(in.Clusters, in.Installs).Rollout(r).Details(); text != "" {
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
	writeStopReason(out, r, s)
}

// writeStopReason writes why a rollout was aborted or paused, unless the message of the rollout contains the reason.
func writeStopReason(out *strings.Builder, r *v1alpha1.OperatorRollout, s term.Style) {
	switch {
	case r.Spec.Abort != nil && r.Spec.Abort.Rollback != nil:
		// The message of a rollout that is rolled back has the reason.
	case r.Spec.Abort != nil &&
		strings.Contains(phrase.OneLine(r.Status.Message), phrase.OneLine(r.Spec.Abort.Reason)):
		// The message contains the reason.
	case r.Spec.Abort != nil:
		out.WriteString(s.Lines(term.Plain, "aborted: "+r.Spec.Abort.Reason))
	case r.Spec.Paused:
		reason := phrase.OneLine(r.Spec.PausedReason)
		if reason == "" {
			reason = "no reason given"
		}
		out.WriteString(s.Lines(term.Plain, fmt.Sprintf("paused: %s (go on with: %s rollout resume %s -n %s)", reason,
			s.ProgramName(), r.Name, r.Namespace)))
	}
}

// writeHolds lists the holds that a rollback created: a rollback of this rollout, or
// this rollout if it is a rollback.
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

// isStrategyOutdated reports whether the strategy of the ManagedOperator was changed after this rollout started. Only
// the newest rollout of the operator can be outdated.
func isStrategyOutdated(in RolloutInput) bool {
	if in.Operator == nil {
		return false
	}
	newest := in.Operator.Status.Rollout
	return newest != nil && newest.Name == in.Rollout.Name && newest.StrategyOutdated
}

// buildWaveTable returns the table with a row for each wave.
func buildWaveTable(in RolloutInput) *term.Table {
	t := &term.Table{Header: []string{"WAVE", "PHASE", "PROGRESS", "UPDATED", "NOTE"}, Wrap: true}
	for i := range in.Rollout.Status.Waves {
		w := &in.Rollout.Status.Waves[i]
		if isEmptyRestWave(w) && i > 0 {
			continue
		}
		tone := chooseWaveTone(in.Rollout, w)
		t.Add(term.Strong.Cell(w.Name), tone.Cell(rollouts.ShownPhase(in.Rollout, w)),
			tone.Cell(drawBar(w.WaveCounts, barWidth)),
			term.Cell{Text: term.Fraction(w.Succeeded, w.Total-w.Removed)}, formatWaveNote(in, w))
	}
	return t
}

// chooseWaveTone returns the tone for the shown phase of a wave.
func chooseWaveTone(r *v1alpha1.OperatorRollout, w *v1alpha1.WaveStatus) term.Tone {
	if rollouts.ShownPhase(r, w) != string(w.Phase) {
		return term.Dim
	}
	return term.WaveTone(w.Phase)
}

// isEmptyRestWave reports whether a wave is the implicit last wave and has no cluster.
func isEmptyRestWave(w *v1alpha1.WaveStatus) bool { return w.Total == 0 && w.Name == rollouts.RestWave }

const barWidth = 20

// drawBar draws the updated, busy, failed and open clusters of a wave in this order. It rounds the updated clusters
// down, so that the bar is full only when all clusters are updated, and the busy and failed clusters up, so that a
// single cluster is visible. If there is not enough space, failed clusters take precedence over busy clusters.
func drawBar(n v1alpha1.WaveCounts, width int) string {
	total := int(n.Total - n.Removed)
	if total <= 0 {
		return strings.Repeat("·", width)
	}
	done := int(n.Succeeded) * width / total
	failed := divideRoundUp(int(n.Failed)*width, total)
	busy := min(divideRoundUp(int(n.InProgress)*width, total), width-done-min(failed, width-done))
	failed = min(failed, width-done)
	open := width - done - failed - busy
	return strings.Repeat("█", done) + strings.Repeat("▒", busy) + strings.Repeat("x", failed) +
		strings.Repeat("·", open)
}

// divideRoundUp returns a/b, rounded up.
func divideRoundUp(a, b int) int { return (a + b - 1) / b }

// formatWaveNote returns what happens in a wave, what the wave waits for, or how the wave ended.
func formatWaveNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	note := formatPhaseNote(in, w)
	if states := formatWaveCounts(w.WaveCounts); states != "" {
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

// formatWaveCounts counts the clusters that are in progress, failed, deferred or removed.
func formatWaveCounts(n v1alpha1.WaveCounts) string {
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

// formatPhaseNote returns the note for the phase of a wave, such as the rest of its soak.
func formatPhaseNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	switch shown := rollouts.ShownPhase(in.Rollout, w); {
	case shown == rollouts.ShownStopped || shown == rollouts.ShownNotStarted:
		return term.Cell{Tone: term.Dim}
	case shown != string(w.Phase): // the phase is Updating, and no cluster is admitted yet
		return term.Cell{Text: "no cluster is being updated", Tone: term.Dim}
	}
	switch w.Phase {
	case v1alpha1.WaveSoaking:
		return formatSoakNote(in, w)
	case v1alpha1.WaveVerified:
		return formatVerifiedNote(in, w)
	case v1alpha1.WaveUpdating:
		return term.Cell{Text: fmt.Sprintf("at most %d at a time, %s allowed", w.MaxConcurrency,
			phrase.Count(w.MaxFailures, "failure")), Tone: term.Dim}
	case v1alpha1.WaveGated:
		return term.Cell{Text: formatGateEvidence(w), Tone: term.Warn}
	case v1alpha1.WaveVerifying:
		return formatVerifyingNote(w)
	case v1alpha1.WaveSkipped:
		return formatSkippedNote(w)
	default:
		return term.Cell{Text: formatGateEvidence(w), Tone: term.Dim}
	}
}

// formatSkippedNote returns why a wave was skipped: it had no clusters, or clusters joined later.
func formatSkippedNote(w *v1alpha1.WaveStatus) term.Cell {
	if w.Total > 0 {
		text := phrase.Count(w.Total, "cluster") + " joined later"
		if evidence := formatGateEvidence(w); evidence != "" {
			text += "; " + evidence
		}
		return term.Cell{Text: text, Tone: term.Dim}
	}
	return term.Cell{Text: "it had no cluster", Tone: term.Dim}
}

// formatVerifiedNote returns when a wave was verified, how long it soaked, and the evidence of its gates.
func formatVerifiedNote(in RolloutInput, w *v1alpha1.WaveStatus) term.Cell {
	var parts []string
	if w.VerifiedAt != nil {
		parts = append(parts, "at "+term.Clock(in.Now, w.VerifiedAt))
	}
	if spec := rollouts.WaveSpec(in.Rollout, w.Name); spec.Soak != nil && spec.Soak.Duration > 0 {
		parts = append(parts, "soaked "+term.Span(spec.Soak.Duration))
	}
	if evidence := formatGateEvidence(w); evidence != "" {
		parts = append(parts, evidence)
	}
	return term.Cell{Text: strings.Join(parts, "; "), Tone: term.Dim}
}

// formatGateEvidence returns the verdict and the evidence of each gate of a wave.
func formatGateEvidence(w *v1alpha1.WaveStatus) string {
	var parts []string
	for _, g := range w.Gates {
		parts = append(parts, fmt.Sprintf("gate %s %s: %s", g.Name, strings.ToLower(string(g.Verdict)),
			term.DefaultIfEmpty(phrase.OneLine(g.Evidence), "no evidence yet")))
	}
	return strings.Join(parts, "; ")
}

// ListRolloutChanges returns one line for each change between two states of a rollout. It is for output that is not a
// terminal. If before has no rollout, all of after is new.
func ListRolloutChanges(before, after RolloutInput) []string {
	var oldStatus v1alpha1.OperatorRolloutStatus
	if before.Rollout != nil {
		oldStatus = before.Rollout.Status
	}
	name, newStatus := after.Rollout.Name, after.Rollout.Status
	var lines []string
	if newStatus.Phase != oldStatus.Phase {
		lines = append(lines, joinNonEmpty(name, term.PhaseOf(after.Rollout), phrase.OneLine(newStatus.Message)))
	}
	waves := map[string]v1alpha1.WaveStatus{}
	for _, w := range oldStatus.Waves {
		waves[w.Name] = w
	}
	for i, w := range newStatus.Waves {
		if i == 0 || !isEmptyRestWave(&w) {
			lines = append(lines, listWaveChanges(after.Rollout, waves[w.Name], w)...)
		}
	}
	lines = append(lines, listSoakChanges(before, after)...)
	return append(lines, listAttentionChanges(before, after)...)
}

// listAttentionChanges returns a line for each cluster that needs attention in after, and did not need it in before,
// or needed it for another reason.
func listAttentionChanges(before, after RolloutInput) []string {
	isListed := map[string]bool{}
	for _, m := range listAttentionMembers(before) {
		isListed[m.Cluster+m.state+m.reason] = true
	}
	var lines []string
	for _, m := range listAttentionMembers(after) {
		if !isListed[m.Cluster+m.state+m.reason] {
			lines = append(lines, joinNonEmpty(after.Rollout.Name, "cluster "+m.Cluster,
				m.state+" "+m.reason+": "+phrase.OneLine(m.message)))
		}
	}
	return lines
}

// listWaveChanges returns a line for each change of a wave: its phase, its cluster counts
// and the verdicts of its gates.
func listWaveChanges(r *v1alpha1.OperatorRollout, old, current v1alpha1.WaveStatus) []string {
	rollout, shown := r.Name, rollouts.ShownPhase(r, &current)
	var lines []string
	isChanged := current.Phase != old.Phase || current.WaveCounts != old.WaveCounts
	// A wave that has not started has no line.
	if isChanged && shown != string(v1alpha1.WaveWaiting) && shown != rollouts.ShownNotStarted {
		text := fmt.Sprintf("%s updated", term.Fraction(current.Succeeded, current.Total-current.Removed))
		if states := formatWaveCounts(current.WaveCounts); states != "" {
			text += ", " + states
		}
		lines = append(lines, joinNonEmpty(rollout, "wave "+current.Name, shown+": "+text))
	}
	gates := map[string]v1alpha1.GateStatus{}
	for _, g := range old.Gates {
		gates[g.Name] = g
	}
	for _, g := range current.Gates {
		// The gates of a wave that waits for its start also wait, which is not news.
		isInitial := current.Phase == v1alpha1.WaveWaiting && g.Verdict == v1alpha1.GateWaiting
		if g.Verdict != gates[g.Name].Verdict && !isInitial {
			lines = append(lines, joinNonEmpty(rollout, "wave "+current.Name,
				fmt.Sprintf("gate %s %s: %s", g.Name, strings.ToLower(string(g.Verdict)), phrase.OneLine(g.Evidence))))
		}
	}
	return lines
}

// joinNonEmpty joins the parts that are not empty.
func joinNonEmpty(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "  ")
}
