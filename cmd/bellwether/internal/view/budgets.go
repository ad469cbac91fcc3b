// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/budgets"
)

// Budgets is the list of error budgets, the worst first. What is left is that of
// the cluster that has the least.
func Budgets(all []budgets.Budget, since time.Duration) *Table {
	t := &Table{Header: []string{"OPERATOR", "SLI", "TARGET", "PERIOD", "BUDGET LEFT", "BURN 1H", "LAST " +
		sinceTitle(since), "WORST ON", "FIRING"}}
	for _, b := range all {
		t.Add(append(append(plain(b.Operator), objectiveCells(b)...), trendCell(b), Cell{Text: orDash(b.Cluster)},
			firingCell(b))...)
	}
	return t
}

// OperatorBudgets is one operator: its objectives, and the clusters that use up
// their budgets. Of those it shows at most so many; 0: all.
func OperatorBudgets(a *budgets.Answer, since time.Duration, most int, s Style) string {
	var out strings.Builder
	name := a.Objectives[0].Operator
	fmt.Fprintf(&out, "%s: %s on %s\n\n", s.Paint(Strong, name),
		plural(len(a.Objectives), "objective"), plural(budgets.CountClusters(a.Clusters), "cluster"))
	t := &Table{Header: []string{"SLI", "TARGET", "PERIOD", "BUDGET LEFT", "BURN 1H", "LAST " + sinceTitle(since),
		"WORST ON", "FIRING"}}
	for _, b := range a.Objectives {
		t.Add(append(objectiveCells(b), trendCell(b), Cell{Text: orDash(b.Cluster)}, firingCell(b))...)
	}
	out.WriteString(t.Render(s))
	var spent []budgets.Budget
	for _, b := range a.Clusters {
		if len(b.Firing) > 0 || b.Left != nil && *b.Left < 1 || b.Burn != nil && *b.Burn > 0 {
			spent = append(spent, b)
		}
	}
	if len(spent) == 0 {
		out.WriteString("\nEvery budget is whole on every cluster that reports.\n")
		return out.String()
	}
	shown := spent
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	clusters := &Table{Header: []string{"CLUSTER", "SLI", "BUDGET LEFT", "BURN 1H", "LAST " + sinceTitle(since),
		"FIRING"}}
	for _, b := range shown {
		clusters.Add(Cell{Text: b.Cluster}, Cell{Text: b.SLI}, leftCell(b), burnCell(b), trendCell(b), firingCell(b))
	}
	out.WriteString("\n" + clusters.Render(s))
	if hidden := len(spent) - len(shown); hidden > 0 {
		fmt.Fprintf(&out, "and %d more that have less than all of their budget; --all shows them\n", hidden)
	}
	return out.String()
}

func sinceTitle(d time.Duration) string { return strings.ToUpper(duration.ShortHumanDuration(d)) }

func objectiveCells(b budgets.Budget) []Cell {
	return []Cell{{Text: b.SLI}, {Text: b.Target + " %"}, {Text: orDash(b.Period)}, leftCell(b), burnCell(b)}
}

// Below these parts of a budget it deserves a look.
const fewLeft = 0.25

// leftCell rounds down, so that 100 % is all of it.
func leftCell(b budgets.Budget) Cell {
	if b.Left == nil {
		return Cell{Text: "no data", Tone: Warn}
	}
	percent := 100 * *b.Left
	text := fmt.Sprintf("%.0f %%", math.Floor(percent))
	if percent > 90 && percent < 100 {
		text = fmt.Sprintf("%.1f %%", math.Floor(10*percent)/10)
	}
	switch {
	case *b.Left <= 0:
		return Cell{Text: text, Tone: Bad}
	case *b.Left < fewLeft:
		return Cell{Text: text, Tone: Warn}
	default:
		return Cell{Text: text, Tone: Good}
	}
}

func burnCell(b budgets.Budget) Cell {
	switch {
	case b.Burn == nil:
		return Cell{Text: "-"}
	case *b.Burn == 0:
		return Cell{Text: "0", Tone: Dim}
	case *b.Burn > 1:
		return Cell{Text: fmt.Sprintf("%.3g×", *b.Burn), Tone: Warn}
	default:
		return Cell{Text: fmt.Sprintf("%.2g×", *b.Burn)}
	}
}

func trendCell(b budgets.Budget) Cell {
	tone := Plain
	if b.Left != nil && *b.Left <= 0 {
		tone = Bad
	}
	return Cell{Text: sparkline(b.Trend), Tone: tone}
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
	return orDash(out.String())
}

// firingCell names the worst alert, and where the others are.
func firingCell(b budgets.Budget) Cell {
	if len(b.Firing) == 0 {
		return Cell{Text: "-", Tone: Dim}
	}
	clusters, absent := map[string]bool{}, map[string]bool{}
	var parts []string
	tone, first := Warn, budgets.Alert{}
	for _, a := range b.Firing {
		switch {
		case a.Absent():
			absent[a.Cluster] = true
			continue
		case a.Scope == series.ScopeRelease:
			parts = append(parts, fmt.Sprintf("%s %s: release %s", a.Severity, a.Tier, a.Version))
		default:
			clusters[a.Cluster] = true
			if first.Name == "" {
				first = a
			}
		}
		if a.Severity == series.Page {
			tone = Bad
		}
	}
	if first.Name != "" {
		parts = append(parts, fmt.Sprintf("%s %s", first.Severity, first.Tier)+where(b, clusters))
	}
	if len(absent) > 0 {
		parts = append(parts, "nothing known"+where(b, absent))
	}
	return Cell{Text: strings.Join(parts, ", "), Tone: tone}
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
	return " on " + plural(len(clusters), "cluster")
}
