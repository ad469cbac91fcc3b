// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor provides the command that examines an installation of Bellwether. It reads the state of the
// installation; package explain/doctor evaluates it.
package doctor

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/doctor"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const doctorLong = `Examine the installation of Bellwether: the hub and its leader, agents, OLM, versions and CRDs,
permissions, clocks, admission webhooks, catalogs and their registries, and whether
Prometheus and Alertmanager use what the hub makes. Each finding comes with its remedy.
Nothing is changed.

With --cluster-kubeconfig the command also examines the agent, OLM, permissions and
webhooks of that cluster. What you are not allowed to read is listed as not checked.

Exit codes:
  0  everything was checked, and nothing was found
  1  the hub cannot be reached
  2  at least one critical finding
  3  only warnings, or not everything could be checked`

// Exit codes of doctor.
const (
	exitCritical = 2
	exitWarning  = 3
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command doctor.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var target Target
	var out command.Output
	c := &cobra.Command{
		Use: "doctor", Short: "Examine hub, agents and OLM, and say how to repair them", Long: doctorLong,
		Example: "  bellwether doctor\n  bellwether doctor --cluster-kubeconfig prod-2.kubeconfig\n" +
			"  bellwether doctor -o json",
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			observation, err := Observe(c.Context(), a.Env, target)
			if err != nil {
				return err
			}
			report := doctor.Examine(observation)
			if !out.Table() {
				if err := out.Value(a.Streams.Out, report); err != nil {
					return err
				}
				return toExitError(report)
			}
			a.Say("%s", Render(report, a.Style()))
			return toExitError(report)
		},
	}
	helm.AddSystemNamespace(c, &target.Namespace)
	target.Cluster.Add(c)
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

// toExitError returns the error with the exit code for a report; nil if everything was checked and has no findings.
func toExitError(r doctor.Report) error {
	switch {
	case r.Worst() == doctor.Critical:
		return &exit.CodeError{Code: exitCritical}
	case len(r.Findings)+len(r.NotChecked) > 0:
		return &exit.CodeError{Code: exitWarning}
	}
	return nil
}

// Render returns a report as text: the findings with their remedies, the parts that were not checked, the checks
// without findings, and the counts.
func Render(r doctor.Report, s term.Style) string {
	var out strings.Builder
	counts := map[doctor.Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
		tone := term.Warn
		if f.Severity == doctor.Critical {
			tone = term.Bad
		}
		writeWrapped(&out, s, "", "  ", tone, fmt.Sprintf("%s %s (%s): %s.", term.Mark(term.Bad), f.Severity, f.Check,
			strings.TrimSuffix(f.Text, ".")))
		for _, a := range f.Remedies {
			writeAction(&out, s, a)
		}
		out.WriteByte('\n')
	}
	if len(r.NotChecked) > 0 {
		out.WriteString(s.Paint(term.Strong, "Not checked") + "\n")
		for _, g := range r.NotChecked {
			writeWrapped(&out, s, "  - ", "    ", term.Plain, fmt.Sprintf("%s: %s: %s.", g.Check, g.What,
				strings.TrimSuffix(g.Why, ".")))
		}
		out.WriteByte('\n')
	}
	if len(r.Passed) > 0 {
		names := make([]string, len(r.Passed))
		for i, c := range r.Passed {
			names[i] = string(c)
		}
		writeWrapped(&out, s, "", "  ", term.Good,
			term.Mark(term.Good)+" Nothing found: "+strings.Join(names, ", ")+".")
	}
	writeWrapped(&out, s, "", "", term.Plain, fmt.Sprintf("%d critical, %s, %d not checked.", counts[doctor.Critical],
		phrase.Count(counts[doctor.Warning], "warning"), len(r.NotChecked)))
	return out.String()
}

// writeAction writes an action. A command is on separate lines, so that the user can copy it.
func writeAction(out *strings.Builder, s term.Style, a remedy.Action) {
	if a.Command == "" {
		writeWrapped(out, s, "  - ", "    ", term.Plain, strings.TrimSuffix(a.Text, ".")+".")
		return
	}
	writeWrapped(out, s, "  - ", "    ", term.Plain, strings.TrimSuffix(a.Text, ".")+":")
	out.WriteString(s.CommandLines(term.Strong, a.Command, "      "))
}

// writeWrapped wraps a text to the style's width. The first line begins with firstIndent, and the later lines begin
// with hanging.
func writeWrapped(out *strings.Builder, s term.Style, firstIndent, hanging string, tone term.Tone, text string) {
	width := 0
	if s.Width > 0 {
		width = max(s.Width-len(hanging), term.MinWrapped)
	}
	for i, line := range term.Wrap(text, width) {
		indent := hanging
		if i == 0 {
			indent = firstIndent
		}
		out.WriteString(indent + s.Paint(tone, line) + "\n")
	}
}
