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
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

const overrideLong = `Let a wave go on although a gate that measures the release failed or has no verdict, or
although no cluster of the wave was observed (gate bellwether/observation).
The override is stored in the rollout with your user name and the reason. You need
permission for the verb override on operatorrollouts (role bellwether-override). It
does not replace an approval.

If only one gate failed or holds its wave back, --wave and --gate are not needed.`

func (a *app) rolloutOverrideCommand() *cobra.Command {
	var wanted rollouts.GateRef
	c := a.steering(steerCommand{
		use: "override", short: "Override a gate that failed or has no verdict", long: overrideLong, mustSay: true,
		verb:    "override",
		example: "  bellwether rollout override echo --wave canary --gate budget --reason \"known noise\"",
		do: func(ctx context.Context, h *hub.Client, reason string) (change, error) {
			who, err := h.UserName(ctx)
			if err != nil {
				return nil, err
			}
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				g, err := chooseOverride(r, wanted)
				if err != nil {
					return "", err
				}
				if !isOverridden(r, g) {
					r.Spec.Overrides = append(r.Spec.Overrides, v1alpha1.GateOverride{
						Wave: g.Wave, Gate: g.Gate, By: who, Reason: reason, At: metav1.NewTime(a.Now()),
					})
				}
				return fmt.Sprintf("Rollout %s: gate %s of wave %s is overridden by %s.", r.Name, g.Gate, g.Wave, who),
					nil
			}, nil
		},
	})
	c.Flags().StringVar(&wanted.Wave, "wave", "", "The wave of the gate.")
	c.Flags().StringVar(&wanted.Gate, "gate", "", "The gate to override.")
	_ = c.RegisterFlagCompletionFunc("wave", a.completeWave)
	return c
}

func isOverridden(r *v1alpha1.OperatorRollout, g rollouts.GateRef) bool {
	return slices.ContainsFunc(r.Spec.Overrides,
		func(o v1alpha1.GateOverride) bool { return o.Wave == g.Wave && o.Gate == g.Gate })
}

// measuredGates lists the gates of a rollout that measure the release.
func measuredGates(r *v1alpha1.OperatorRollout) []rollouts.GateRef { return rollouts.GatesOf(r, false) }

func isMeasured(r *v1alpha1.OperatorRollout, wave, gate string) bool {
	return slices.Contains(measuredGates(r), rollouts.GateRef{Wave: wave, Gate: gate})
}

// chooseOverride returns the gate that the user means: one that holds the rollout
// back now, or any that was named.
func chooseOverride(r *v1alpha1.OperatorRollout, wanted rollouts.GateRef) (rollouts.GateRef, error) {
	if !r.IsRunning() {
		return rollouts.GateRef{}, alreadyEnded(r)
	}
	candidates := rollouts.StoppedBy(r)
	if wanted != (rollouts.GateRef{}) {
		candidates = slices.DeleteFunc(measuredGates(r), func(g rollouts.GateRef) bool {
			return wanted.Wave != "" && g.Wave != wanted.Wave || wanted.Gate != "" && g.Gate != wanted.Gate
		})
	}
	switch {
	case len(candidates) == 1:
		return candidates[0], nil
	case len(candidates) > 1:
		return rollouts.GateRef{}, exit.Hintf(hub.Offer(flagsOf(candidates), ""), "several gates can be overridden")
	case wanted != (rollouts.GateRef{}):
		return rollouts.GateRef{}, exit.Hintf(hub.Offer(flagsOf(measuredGates(r)),
			"the rollout has no gate that measures the release"),
			"rollout %s has no gate with this name that can be overridden", r.Name)
	default:
		return rollouts.GateRef{}, exit.Hintf("to override a gate before it has a verdict, set --wave and --gate",
			"no gate of rollout %s failed or waits for data", r.Name)
	}
}

func flagsOf(gates []rollouts.GateRef) []string {
	var names []string
	for _, g := range gates {
		names = append(names, fmt.Sprintf("--wave %s --gate %s", g.Wave, g.Gate))
	}
	return names
}

// writeGates shows the evidence of the gates that measure waves now, and how to
// override those that hold the rollout back.
func writeGates(out *strings.Builder, in RolloutInput, s term.Style) {
	r := in.Rollout
	for i := range r.Status.Waves {
		w := &r.Status.Waves[i]
		if w.Phase != v1alpha1.WaveSoaking && w.Phase != v1alpha1.WaveVerifying || r.IsStopped() {
			continue
		}
		t := &term.Table{Header: []string{"GATE", "VERDICT", "VALUE", "THRESHOLD", "SAMPLES", "WINDOW", "MEASURED",
			"EVIDENCE"}, Wrap: true}
		rows := 0
		for _, g := range w.Gates {
			if isMeasured(r, w.Name, g.Name) {
				rows++
				t.Add(gateRow(in, g)...)
			}
		}
		if rows > 0 {
			fmt.Fprintf(out, "\n%s\n%s", s.Paint(term.Strong, "gates of wave "+w.Name), t.Render(s))
		}
	}
	if stopped := rollouts.StoppedBy(r); len(stopped) > 0 && !r.Status.Phase.Ended() {
		out.WriteString(s.Command(term.Warn, "override gate "+stopped[0].Gate+" with:",
			fmt.Sprintf("%s rollout override %s -n %s --wave %s --gate %s --reason \"…\"", s.ProgramName(), r.Name,
				r.Namespace, stopped[0].Wave, stopped[0].Gate)))
	}
}

func gateRow(in RolloutInput, g v1alpha1.GateStatus) []term.Cell {
	dash := func(text string) term.Cell { return term.Dim.Cell(term.OrElse(text, "-")) }
	cells := []term.Cell{term.Strong.Cell(g.Name), verdictTone(g.Verdict).Cell(string(g.Verdict))}
	if m := g.Measurement; m != nil {
		samples := fmt.Sprint(m.Samples)
		if m.BaselineSamples > 0 {
			samples += fmt.Sprintf(" and %d", m.BaselineSamples)
		}
		cells = append(cells, dash(m.Value), dash(m.Threshold), dash(samples), dash(term.Span(m.Window.Duration)),
			dash(term.Clock(in.Now, &m.At)))
	} else {
		cells = append(cells, dash(""), dash(""), dash(""), dash(""), dash(""))
	}
	return append(cells, term.Cell{Text: phrase.OneLine(g.Evidence)})
}

func verdictTone(v v1alpha1.GateVerdict) term.Tone {
	switch v {
	case v1alpha1.GatePassed:
		return term.Good
	case v1alpha1.GateFailed:
		return term.Bad
	default:
		return term.Warn
	}
}

// verifyingNote says which gates hold a wave back; their evidence is shown below.
func verifyingNote(w *v1alpha1.WaveStatus) term.Cell {
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
