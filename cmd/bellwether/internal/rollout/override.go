// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

const overrideLong = `Let a wave go on although a gate that measures the release failed or has no verdict, or
although no cluster of the wave was observed (gate bellwether/observation).
The override is stored in the rollout with your user name and the reason. You need
permission for the verb override on operatorrollouts (role bellwether-override). It
does not replace an approval.

If only one gate failed or holds its wave back, --wave and --gate are not needed.`

func (a *app) newOverrideCommand() *cobra.Command {
	var wanted rollouts.GateRef
	c := a.newChangeCommand(changeCommand{
		use: "override", short: "Override a gate that failed or has no verdict", long: overrideLong, needsReason: true,
		verb:    "override",
		example: "  bellwether rollout override echo --wave canary --gate budget --reason \"known noise\"",
		newChange: func(ctx context.Context, h *hub.Client, reason string) (change, error) {
			user, err := h.UserName(ctx)
			if err != nil {
				return nil, err
			}
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				g, err := chooseOverrideGate(r, wanted)
				if err != nil {
					return "", err
				}
				rollouts.Override(r, v1alpha1.GateOverride{Wave: g.Wave, Gate: g.Gate, By: user, Reason: reason,
					At: metav1.NewTime(a.Now())})
				return fmt.Sprintf("Rollout %s: gate %s of wave %s is overridden by %s.", r.Name, g.Gate, g.Wave, user),
					nil
			}, nil
		},
	})
	c.Flags().StringVar(&wanted.Wave, "wave", "", "The wave of the gate.")
	c.Flags().StringVar(&wanted.Gate, "gate", "", "The gate to override.")
	_ = c.RegisterFlagCompletionFunc("wave", a.completeWave)
	return c
}

// listMeasuredGates returns the gates of a rollout that measure the release.
func listMeasuredGates(r *v1alpha1.OperatorRollout) []rollouts.GateRef {
	return rollouts.GatesOf(r, false)
}

// isMeasured reports whether a gate of a wave measures the release.
func isMeasured(r *v1alpha1.OperatorRollout, wave, gate string) bool {
	return slices.Contains(listMeasuredGates(r), rollouts.GateRef{Wave: wave, Gate: gate})
}

// chooseOverrideGate returns the gate to override. It returns an error unless rollouts.ListOverridable has exactly one.
func chooseOverrideGate(r *v1alpha1.OperatorRollout, wanted rollouts.GateRef) (rollouts.GateRef, error) {
	candidates, hasEnded := rollouts.ListOverridable(r, wanted)
	switch {
	case hasEnded:
		return rollouts.GateRef{}, newEndedError(r)
	case len(candidates) == 1:
		return candidates[0], nil
	case len(candidates) > 1:
		return rollouts.GateRef{}, exit.Hintf(hub.FormatAvailable(formatGateFlags(candidates), ""),
			"several gates can be overridden")
	case wanted != (rollouts.GateRef{}):
		return rollouts.GateRef{}, exit.Hintf(hub.FormatAvailable(formatGateFlags(listMeasuredGates(r)),
			"the rollout has no gate that measures the release"),
			"rollout %s has no gate with this name that can be overridden", r.Name)
	default:
		return rollouts.GateRef{}, exit.Hintf("to override a gate before it has a verdict, set --wave and --gate",
			"no gate of rollout %s failed or waits for data", r.Name)
	}
}

// formatGateFlags returns the flags that select each gate.
func formatGateFlags(gates []rollouts.GateRef) []string {
	var names []string
	for _, g := range gates {
		names = append(names, fmt.Sprintf("--wave %s --gate %s", g.Wave, g.Gate))
	}
	return names
}

// writeGates writes the evidence of the measured gates of the waves that soak or are verified now, and the command that
// overrides the first gate that blocks the rollout. It writes no evidence for a rollout that has stopped.
func writeGates(out *strings.Builder, in RolloutInput, s term.Style) {
	r := in.Rollout
	for i := range r.Status.Waves {
		w := &r.Status.Waves[i]
		isMeasuredNow := w.Phase == v1alpha1.WaveSoaking || w.Phase == v1alpha1.WaveVerifying
		if !isMeasuredNow || r.IsStopped() {
			continue
		}
		t := &term.Table{Header: []string{"GATE", "VERDICT", "VALUE", "THRESHOLD", "SAMPLES", "WINDOW", "MEASURED",
			"EVIDENCE"}, Wrap: true}
		rows := 0
		for _, g := range w.Gates {
			if isMeasured(r, w.Name, g.Name) {
				rows++
				t.Add(buildGateRow(in, g)...)
			}
		}
		if rows > 0 {
			fmt.Fprintf(out, "\n%s\n%s", s.Paint(term.Strong, "gates of wave "+w.Name), t.Render(s))
		}
	}
	if stopped := rollouts.ListStoppingGates(r); len(stopped) > 0 && !r.Status.Phase.Ended() {
		out.WriteString(s.Command(term.Warn, "override gate "+stopped[0].Gate+" with:",
			fmt.Sprintf("%s rollout override %s -n %s --wave %s --gate %s --reason \"…\"", s.ProgramName(), r.Name,
				r.Namespace, stopped[0].Wave, stopped[0].Gate)))
	}
}

// buildGateRow returns the table row of a gate with its measurement and its evidence.
func buildGateRow(in RolloutInput, g v1alpha1.GateStatus) []term.Cell {
	dashIfEmpty := func(text string) term.Cell { return term.Dim.Cell(term.DefaultIfEmpty(text, "-")) }
	cells := []term.Cell{term.Strong.Cell(g.Name), chooseVerdictTone(g.Verdict).Cell(string(g.Verdict))}
	if m := g.Measurement; m != nil {
		samples := fmt.Sprint(m.Samples)
		if m.BaselineSamples > 0 {
			samples += fmt.Sprintf(" and %d", m.BaselineSamples)
		}
		cells = append(cells, dashIfEmpty(m.Value), dashIfEmpty(m.Threshold), dashIfEmpty(samples),
			dashIfEmpty(term.Span(m.Window.Duration)), dashIfEmpty(term.Clock(in.Now, &m.At)))
	} else {
		cells = append(cells, dashIfEmpty(""), dashIfEmpty(""), dashIfEmpty(""), dashIfEmpty(""), dashIfEmpty(""))
	}
	return append(cells, term.Cell{Text: phrase.OneLine(g.Evidence)})
}

func chooseVerdictTone(v v1alpha1.GateVerdict) term.Tone {
	switch v {
	case v1alpha1.GatePassed:
		return term.Good
	case v1alpha1.GateFailed:
		return term.Bad
	default:
		return term.Warn
	}
}

// formatVerifyingNote returns the gates of a wave that have not passed. Their evidence is shown below the waves.
func formatVerifyingNote(w *v1alpha1.WaveStatus) term.Cell {
	note := term.Cell{Tone: term.Warn}
	var parts []string
	for _, g := range w.Gates {
		if g.IsPassed() {
			continue
		}
		parts = append(parts, fmt.Sprintf("gate %s %s", g.Name, strings.ToLower(string(g.Verdict))))
		if g.Verdict == v1alpha1.GateFailed {
			note.Tone = term.Bad
		}
	}
	note.Text = strings.Join(parts, "; ")
	return note
}
