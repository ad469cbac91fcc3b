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
	"github.com/bellwether-dev/bellwether/phrase"
)

// Budgets is the list of error budgets, the worst first. What is left is that of
// the cluster that has the least.
func Budgets(all []budgets.Budget, since time.Duration, wide bool) *term.Table {
	t := &term.Table{Header: []string{"OPERATOR", "SLI", "BUDGET LEFT", "BURN 1H", "WORST ON", "FIRING"}, Wrap: true}
	if wide {
		t.Header = []string{"OPERATOR", "SLI", "TARGET", "PERIOD", "BUDGET LEFT", "BURN 1H",
			"LAST " + sinceTitle(since), "WORST ON", "FIRING"}
	}
	for _, b := range all {
		row := term.PlainCells(b.Namespace + "/" + b.Operator)
		if wide {
			row = append(append(row, objectiveCells(b)...), trendCell(b))
		} else {
			row = append(row, term.Cell{Text: b.SLI}, leftCell(b), burnCell(b))
		}
		t.Add(append(row, term.Cell{Text: term.OrDash(b.Cluster)}, firingCell(b))...)
	}
	return t
}

// OperatorBudgets is one operator: its objectives, and the clusters that use up
// their budgets. Of those it shows at most so many; 0: all.
func OperatorBudgets(a *budgets.Report, since time.Duration, most int, s term.Style) string {
	var out strings.Builder
	name := a.Objectives[0].Namespace + "/" + a.Objectives[0].Operator
	fmt.Fprintf(&out, "%s: %s on %s\n\n", s.Paint(term.Strong, name),
		phrase.Count(len(a.Objectives), "objective"), phrase.Count(budgets.CountClusters(a.Clusters), "cluster"))
	t := &term.Table{Header: []string{"SLI", "TARGET", "PERIOD", "BUDGET LEFT", "BURN 1H", "LAST " + sinceTitle(since),
		"WORST ON", "FIRING"}, Wrap: true}
	for _, b := range a.Objectives {
		t.Add(append(objectiveCells(b), trendCell(b), term.Cell{Text: term.OrDash(b.Cluster)}, firingCell(b))...)
	}
	out.WriteString(t.Render(s))
	var spent []budgets.Budget
	for _, b := range a.Clusters {
		if len(b.Firing) > 0 || b.Left != nil && *b.Left < 1 || b.Burn != nil && *b.Burn > 0 {
			spent = append(spent, b)
		}
	}
	if len(spent) == 0 {
		out.WriteString("\nNo cluster has used any of its budgets.\n" + exclusions(a.Exclusions, s) +
			gaps(a.Gaps, most, s))
		return out.String()
	}
	shown := spent
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	clusters := &term.Table{Header: []string{"CLUSTER", "SLI", "BUDGET LEFT", "BURN 1H", "LAST " + sinceTitle(since),
		"FIRING"}, Wrap: true}
	for _, b := range shown {
		clusters.Add(term.Cell{Text: b.Cluster}, term.Cell{Text: b.SLI}, leftCell(b), burnCell(b), trendCell(b),
			firingCell(b))
	}
	out.WriteString("\n" + clusters.Render(s))
	if hidden := len(spent) - len(shown); hidden > 0 {
		fmt.Fprintf(&out, "and %d more clusters that have used a part of their budget; use --all to show them\n",
			hidden)
	}
	out.WriteString(excludedNote(slices.Concat(a.Objectives, shown)) + exclusions(a.Exclusions, s) +
		gaps(a.Gaps, most, s))
	return out.String()
}

func sinceTitle(d time.Duration) string { return strings.ToUpper(duration.ShortHumanDuration(d)) }

func objectiveCells(b budgets.Budget) []term.Cell {
	return []term.Cell{{Text: b.SLI}, {Text: b.Target + " %"}, {Text: term.OrDash(b.Period)}, leftCell(b), burnCell(b)}
}

// leftCell has what would be left without excluded time in parentheses, where there is some.
func leftCell(b budgets.Budget) term.Cell {
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

func hasExcluded(b budgets.Budget) bool {
	return b.Left != nil && b.LeftExcluding != nil && *b.Left != *b.LeftExcluding
}

// excludedNote says what is in parentheses, if anything is.
func excludedNote(shown []budgets.Budget) string {
	if !slices.ContainsFunc(shown, hasExcluded) {
		return ""
	}
	return "\nIn parentheses: what would be left without the time that AlertSilences exclude.\n"
}

// exclusions lists the AlertSilences that excluded time.
func exclusions(all []budgets.Exclusion, s term.Style) string {
	if len(all) == 0 {
		return ""
	}
	t := &term.Table{Header: []string{"EXCLUDED BY", "OWNER", "REASON"}, Wrap: true}
	for _, e := range all {
		t.Add(term.PlainCells(e.Namespace+"/"+e.Silence, e.Owner, e.Reason)...)
	}
	return "\n" + t.Render(s)
}

// gaps lists the clusters whose budgets rest on less than all slices, at most so many; 0:
// all.
func gaps(all []budgets.Gap, most int, s term.Style) string {
	if len(all) == 0 {
		return ""
	}
	shown := all
	if most > 0 && len(shown) > most {
		shown = shown[:most]
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

func burnCell(b budgets.Budget) term.Cell {
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

func trendCell(b budgets.Budget) term.Cell {
	tone := term.Plain
	if b.Left != nil && *b.Left <= 0 {
		tone = term.Bad
	}
	return term.Cell{Text: sparkline(b.Trend), Tone: tone}
}

// sparkline draws what was left, from none to all of it.
func sparkline(points []*float64) string {
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
	return term.OrDash(out.String())
}

// firingCell names the worst alert, and where the others are.
func firingCell(b budgets.Budget) term.Cell {
	if len(b.Firing) == 0 {
		return term.Cell{Text: "-", Tone: term.Dim}
	}
	clusters, absent, exhausted := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var parts []string
	tone, first := term.Warn, budgets.Alert{}
	for _, a := range b.Firing {
		switch {
		case a.Absent():
			absent[a.Cluster] = true
			continue
		case a.Exhausted():
			exhausted[a.Cluster] = true
			continue
		case a.Scope == series.ScopeRelease:
			parts = append(parts, fmt.Sprintf("%s: release %s", a.Kind(), cmp.Or(a.Version, "of several versions")))
		default:
			clusters[a.Cluster] = true
			if first.Name == "" {
				first = a
			}
		}
		if a.Kind() == series.Page {
			tone = term.Bad
		}
	}
	if first.Name != "" {
		parts = append(parts, first.Kind()+where(b, clusters))
	}
	if len(exhausted) > 0 {
		parts = append(parts, "budget spent"+where(b, exhausted))
	}
	if len(absent) > 0 {
		parts = append(parts, "no data"+where(b, absent))
	}
	return term.Cell{Text: strings.Join(parts, ", "), Tone: tone}
}

// where says on how many clusters, if it is more than the one of the row.
func where(b budgets.Budget, clusters map[string]bool) string {
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

// KnownObjectives are the objectives in force as the hub knows them, without their budgets.
func KnownObjectives(o *v1alpha1.OperatorSLO, s term.Style) string {
	if o == nil || len(o.Status.Objectives) == 0 {
		return "The hub knows of no objectives in force.\n"
	}
	t := &term.Table{Header: []string{"OBJECTIVE", "TARGET", "PERIOD", "BUDGET LEFT"}, Wrap: true}
	for _, objective := range o.Status.Objectives {
		t.Add(term.Cell{Text: objective.SLI}, term.Cell{Text: term.OrDash(objective.Target)},
			term.Cell{Text: term.OrDash(objective.Period)}, term.Warn.Cell("not known"))
	}
	return t.Render(s)
}
