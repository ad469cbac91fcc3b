// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/scenario"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const sloSimulateLong = `Simulate the alerts of an objective with random failures and show the results: the
detection and reset times of each tier compared with the formulas; the number of
false pages caused by independent failures at half of the budget, with and without
the guard; and how many incidents were paged (recall) and how many pages were
justified (precision). An incident is worth a page if it uses more than 2 % of the
budget within one hour, or 5 % within six hours.

The same seed always gives the same result.

With --scenarios, promtool also evaluates the rules in failures of a whole fleet:
outages, flapping, bad releases, broken clusters, lost scraping. The output shows how
often a person is paged in each of them, and the same for the rules that sloth
generates from the same objectives. This takes a few minutes and needs promtool of
Prometheus 3 on the PATH.`

func (a *app) newSimulateCommand() *cobra.Command {
	var out command.Output
	var o simulateOptions
	c := &cobra.Command{
		Use: "simulate", Short: "Simulate the alerts of an objective", Long: sloSimulateLong,
		Args: command.NoArgs,
		Example: "  bellwether slo simulate --target 99.9\n  bellwether slo simulate --target 99 --period 4w --seed " +
			"7 -o markdown\n  bellwether slo simulate --scenarios",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			report, err := a.runSimulation(c.Context(), &o)
			if err != nil {
				return err
			}
			switch out.Format {
			case command.OutputTable, command.OutputMarkdown:
				a.Say("%s", report.format(out.Format == command.OutputMarkdown))
				return nil
			default:
				return out.Value(a.Streams.Out, report)
			}
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
	c.Flags().StringVar(&o.target, "target", "99.9", "The objective in `PERCENT`.")
	c.Flags().StringVar(&o.period, "period", "30d", "The `PERIOD` of the budget in hours, days or weeks.")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "The seed `NUMBER` of the random failures.")
	c.Flags().BoolVar(&o.scenarios, "scenarios", false, "Also play failures of a whole fleet with promtool.")
	c.Flags().IntVar(&o.Runs, "runs", 0, "The number of periods to simulate. Default: 200.")
	return c
}

type simulateOptions struct {
	slo.Simulation
	target, period string
	scenarios      bool
}

// runSimulation checks the options and runs the simulation and, if selected, the scenarios.
func (a *app) runSimulation(ctx context.Context, o *simulateOptions) (simulation, error) {
	var out simulation
	if o.Runs < 0 {
		return out, exit.Hintf("use a whole number from 1", "invalid value %d of --runs", o.Runs)
	}
	var err error
	if o.Objective.Target, err = slo.ParseTarget(o.target); err != nil {
		return out, addHint(err)
	}
	if o.Objective.Period, err = slo.ParsePeriod(o.period); err != nil {
		return out, addHint(err)
	}
	if out.Result, err = slo.Simulate(o.Simulation); err != nil {
		return out, addHint(err)
	}
	if o.scenarios {
		out.Scenarios, err = a.playScenarios(ctx, o.Objective.Target)
	}
	return out, err
}

// simulation is the report of the command.
type simulation struct {
	slo.Result `json:",inline"`
	Scenarios  []scenario.Result `json:"scenarios,omitempty"`
}

func (s simulation) format(markdown bool) string {
	text := formatSimulation(s.Result, markdown)
	if len(s.Scenarios) > 0 {
		text += "\n" + formatScenarios(s.Scenarios, markdown)
	}
	return text
}

// formatSimulation returns the result as aligned columns, or as a Markdown table.
func formatSimulation(r slo.Result, markdown bool) string {
	rows := [][]string{{"TIER", "SEVERITY", "FACTOR", "BAD SLICES", "DETECTED", "FORMULA", "RESET", "FORMULA"}}
	for _, t := range r.Timings {
		rows = append(rows, []string{
			t.Tier, t.Severity, fmt.Sprintf("%.4g", t.Factor), fmt.Sprintf("%.0f %%", 100*t.Ratio),
			formatMinutes(t.Detected), formatMinutes(t.Formula), formatMinutes(t.Reset), formatMinutes(t.ResetFormula),
		})
	}
	noise := fmt.Sprintf("False pages in %s of independent failures at half of the budget: %.2f, and %.2f without "+
		"the guard.", r.Period, r.Noise.Guarded, r.Noise.Unguarded)
	incidents := r.Incidents
	detection := fmt.Sprintf("Of %d incidents %d called for a page, and %d got one: recall %.3f. Of %d pages %d were "+
		"justified: precision %.3f.",
		incidents.Total, incidents.Severe, incidents.Paged, incidents.Recall, incidents.Pages, incidents.Justified,
		incidents.Precision)
	head := fmt.Sprintf("%s %% over %s, %d runs, seed %d", r.Target, r.Period, r.Runs, r.Seed)
	return head + "\n\n" + formatGrid(rows, markdown) +
		"\nPrometheus reads the metrics every 30 s, which is a scrape, and judges each minute of them, which is\n" +
		"a slice. The fastest tier alerts after one bad slice, if two scrapes in a row were bad. Otherwise each\n" +
		"tier alerts only after 3 bad slices in its long window, with 5 bad scrapes if it pages. The formulas\n" +
		"do not include that.\n" +
		"The tier " + slo.CriticalTier().Name + " is for operators with criticality Critical only; what follows is " +
		"without it.\n" + noise +
		"\n" + detection + "\n"
}

// formatMinutes returns a duration in minutes as text. A negative duration means never.
func formatMinutes(m float64) string {
	if m < 0 {
		return "never"
	}
	if m >= 120 {
		return fmt.Sprintf("%.1f h", m/60)
	}
	return fmt.Sprintf("%.3g min", m)
}

// formatGrid returns rows as aligned columns, or as a Markdown table. The first row is the header.
func formatGrid(rows [][]string, markdown bool) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		if markdown {
			b.WriteString("| " + strings.Join(row, " | ") + " |\n")
			if n == 0 {
				b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
			}
			continue
		}
		line := ""
		for i, cell := range row {
			line += fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
