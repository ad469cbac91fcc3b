// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// BuildBudgetTable returns the table of error budgets, in the given order. The remaining budget of an operator is
// that of the cluster with the least budget left.
func BuildBudgetTable(all []budgets.Budget, since time.Duration, wide bool) *term.Table {
	t := &term.Table{Header: []string{"OPERATOR", "SLI", "BUDGET LEFT", "BURN 1H", "WORST ON", "FIRING"}, Wrap: true}
	if wide {
		t.Header = []string{"OPERATOR", "SLI", "TARGET", "PERIOD", "BUDGET LEFT", "BURN 1H",
			"LAST " + formatSince(since), "WORST ON", "FIRING"}
	}
	for _, b := range all {
		row := term.PlainCells(b.Namespace + "/" + b.Operator)
		if wide {
			row = append(append(row, buildObjectiveCells(b)...), buildTrendCell(b))
		} else {
			row = append(row, term.Cell{Text: b.SLI}, buildLeftCell(b), buildBurnCell(b))
		}
		t.Add(append(row, term.Cell{Text: term.DashIfEmpty(b.Cluster)}, buildFiringCell(b))...)
	}
	return t
}

// RenderOperatorBudgets returns the budgets of one operator as text: the objectives, and the clusters that have used
// a part of their budgets. It shows at most maxClusters clusters; 0 means all.
func RenderOperatorBudgets(report *budgets.Report, since time.Duration, maxClusters int, s term.Style) string {
	var out strings.Builder
	name := report.Objectives[0].Namespace + "/" + report.Objectives[0].Operator
	fmt.Fprintf(&out, "%s: %s on %s\n\n", s.Paint(term.Strong, name),
		phrase.Count(len(report.Objectives), "objective"),
		phrase.Count(budgets.CountClusters(report.Clusters), "cluster"))
	t := &term.Table{Header: []string{"SLI", "TARGET", "PERIOD", "BUDGET LEFT", "BURN 1H", "LAST " + formatSince(since),
		"WORST ON", "FIRING"}, Wrap: true}
	for _, b := range report.Objectives {
		t.Add(append(buildObjectiveCells(b), buildTrendCell(b), term.Cell{Text: term.DashIfEmpty(b.Cluster)},
			buildFiringCell(b))...)
	}
	out.WriteString(t.Render(s))
	var spent []budgets.Budget
	for _, b := range report.Clusters {
		isReduced, isBurning := b.Left != nil && *b.Left < 1, b.Burn != nil && *b.Burn > 0
		if len(b.Firing) > 0 || isReduced || isBurning {
			spent = append(spent, b)
		}
	}
	if len(spent) == 0 {
		out.WriteString("\nNo cluster has used any of its budgets.\n" + renderExclusions(report.Exclusions, s) +
			renderGaps(report.Gaps, maxClusters, s))
		return out.String()
	}
	shown := spent
	if maxClusters > 0 && len(shown) > maxClusters {
		shown = shown[:maxClusters]
	}
	clusters := &term.Table{Header: []string{"CLUSTER", "SLI", "BUDGET LEFT", "BURN 1H", "LAST " + formatSince(since),
		"FIRING"}, Wrap: true}
	for _, b := range shown {
		clusters.Add(term.Cell{Text: b.Cluster}, term.Cell{Text: b.SLI}, buildLeftCell(b), buildBurnCell(b),
			buildTrendCell(b), buildFiringCell(b))
	}
	out.WriteString("\n" + clusters.Render(s))
	if hidden := len(spent) - len(shown); hidden > 0 {
		fmt.Fprintf(&out, "and %d more clusters that have used a part of their budget; use --all to show them\n",
			hidden)
	}
	out.WriteString(formatExcludedNote(slices.Concat(report.Objectives, shown)) +
		renderExclusions(report.Exclusions, s) + renderGaps(report.Gaps, maxClusters, s))
	return out.String()
}

func formatSince(d time.Duration) string { return strings.ToUpper(duration.ShortHumanDuration(d)) }

func buildObjectiveCells(b budgets.Budget) []term.Cell {
	return []term.Cell{{Text: b.SLI}, {Text: b.Target + " %"}, {Text: term.DashIfEmpty(b.Period)}, buildLeftCell(b),
		buildBurnCell(b)}
}

// buildLeftCell returns the remaining budget. If time is excluded from the budget, the remaining budget without
// this time follows in parentheses.
func buildLeftCell(b budgets.Budget) term.Cell {
	if b.Left == nil {
		return term.Cell{Text: "no data", Tone: term.Warn}
	}
	text := phrase.Percent(*b.Left)
	if hasExcluded(b) {
		text += " (" + phrase.Percent(*b.LeftExcluding) + ")"
	}
	switch {
	case *b.Left <= 0:
		return term.Cell{Text: text, Tone: term.Bad}
	case *b.Left < budgets.LowBelow:
		return term.Cell{Text: text, Tone: term.Warn}
	default:
		return term.Cell{Text: text, Tone: term.Good}
	}
}

// hasExcluded reports whether time that is excluded from the budget changes what is left.
func hasExcluded(b budgets.Budget) bool {
	return b.Left != nil && b.LeftExcluding != nil && *b.Left != *b.LeftExcluding
}

// formatExcludedNote explains the numbers in parentheses; empty if no budget has such a number.
func formatExcludedNote(shown []budgets.Budget) string {
	if !slices.ContainsFunc(shown, hasExcluded) {
		return ""
	}
	return "\nIn parentheses: what would be left without the time that AlertSilences exclude.\n"
}

// renderExclusions returns the table of the AlertSilences that excluded time from the budgets.
func renderExclusions(all []budgets.Exclusion, s term.Style) string {
	if len(all) == 0 {
		return ""
	}
	t := &term.Table{Header: []string{"EXCLUDED BY", "OWNER", "REASON"}, Wrap: true}
	for _, e := range all {
		t.Add(term.PlainCells(e.Namespace+"/"+e.Silence, e.Owner, e.Reason)...)
	}
	return "\n" + t.Render(s)
}

// renderGaps returns the table of the clusters whose budgets lack some of their slices. It shows at most
// maxClusters clusters; 0 means all.
func renderGaps(all []budgets.Gap, maxClusters int, s term.Style) string {
	if len(all) == 0 {
		return ""
	}
	shown := all
	if maxClusters > 0 && len(shown) > maxClusters {
		shown = shown[:maxClusters]
	}
	t := &term.Table{Header: []string{"CLUSTER", "SLICES MISSING"}, Wrap: true}
	for _, g := range shown {
		t.Add(term.Cell{Text: g.Cluster}, term.Cell{Text: fmt.Sprintf("%.2g %%", 100*g.Missing), Tone: term.Warn})
	}
	out := "\nMeasurements of these clusters never arrived, and count as good: their budgets may have less left.\n\n" +
		t.Render(s)
	if hidden := len(all) - len(shown); hidden > 0 {
		out += fmt.Sprintf("and %s; use --all to show them\n", phrase.Count(hidden, "more cluster"))
	}
	return out
}

// buildBurnCell returns the burn rate of the last hour.
func buildBurnCell(b budgets.Budget) term.Cell {
	switch {
	case b.Burn == nil:
		return term.Cell{Text: "-"}
	case *b.Burn == 0:
		return term.Cell{Text: "0", Tone: term.Dim}
	case *b.Burn > 1:
		return term.Cell{Text: fmt.Sprintf("%.3g×", *b.Burn), Tone: term.Warn}
	default:
		return term.Cell{Text: fmt.Sprintf("%.2g×", *b.Burn)}
	}
}

// buildTrendCell returns a graph of the remaining budget over time.
func buildTrendCell(b budgets.Budget) term.Cell {
	tone := term.Plain
	if b.Left != nil && *b.Left <= 0 {
		tone = term.Bad
	}
	return term.Cell{Text: drawSparkline(b.Trend), Tone: tone}
}

// drawSparkline draws the remaining budget over time. The lowest step is an empty budget, the highest a full
// one, and a dot is a missing value.
func drawSparkline(points []*float64) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	var out strings.Builder
	for _, p := range points {
		if p == nil {
			out.WriteRune('·')
			continue
		}
		i := int(math.Floor(*p * float64(len(steps)-1)))
		out.WriteRune(steps[min(max(i, 0), len(steps)-1)])
	}
	return term.DashIfEmpty(out.String())
}

// buildFiringCell returns the firing alerts of a budget, with the clusters on which they fire. Alerts about clusters
// share one text, and so do spent budgets and missing data. The tone is Bad if an alert about burn pages.
func buildFiringCell(b budgets.Budget) term.Cell {
	if len(b.Firing) == 0 {
		return term.Cell{Text: "-", Tone: term.Dim}
	}
	clusters, absent, exhausted := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var parts []string
	tone, firstAlert := term.Warn, budgets.Alert{}
	for _, a := range b.Firing {
		switch {
		case a.IsAbsent():
			absent[a.Cluster] = true
			continue
		case a.IsExhausted():
			exhausted[a.Cluster] = true
			continue
		case a.Scope == series.ScopeRelease:
			parts = append(parts, fmt.Sprintf("%s: release %s", a.Kind(), cmp.Or(a.Version, "of several versions")))
		default:
			clusters[a.Cluster] = true
			if firstAlert.Name == "" {
				firstAlert = a
			}
		}
		if a.Kind() == series.Page {
			tone = term.Bad
		}
	}
	if firstAlert.Name != "" {
		parts = append(parts, firstAlert.Kind()+formatClusters(b, clusters))
	}
	if len(exhausted) > 0 {
		parts = append(parts, "budget spent"+formatClusters(b, exhausted))
	}
	if len(absent) > 0 {
		parts = append(parts, "no data"+formatClusters(b, absent))
	}
	return term.Cell{Text: strings.Join(parts, ", "), Tone: tone}
}

// formatClusters returns on which clusters an alert fires. It is empty if this is only the cluster of the row.
func formatClusters(b budgets.Budget, clusters map[string]bool) string {
	if len(clusters) == 1 {
		for c := range clusters {
			if c == b.Cluster {
				return ""
			}
			return " on " + c
		}
	}
	return " on " + phrase.Count(len(clusters), "cluster")
}

// RenderKnownObjectives returns the table of the objectives in the status of an OperatorSLO, without their budgets.
func RenderKnownObjectives(o *v1alpha1.OperatorSLO, s term.Style) string {
	if o == nil || len(o.Status.Objectives) == 0 {
		return "The hub has no objectives in force.\n"
	}
	t := &term.Table{Header: []string{"OBJECTIVE", "TARGET", "PERIOD", "BUDGET LEFT"}, Wrap: true}
	for _, objective := range o.Status.Objectives {
		t.Add(term.Cell{Text: objective.SLI}, term.Cell{Text: term.DashIfEmpty(objective.Target)},
			term.Cell{Text: term.DashIfEmpty(objective.Period)}, term.Warn.Cell("not known"))
	}
	return t.Render(s)
}
