// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// pair is one upgrade of each kind, one right after the other.
type pair struct{ ours, alone timeline }

func (p pair) ratio(at phase) float64 { return float64(p.ours[at]) / float64(p.alone[at]) }

// report writes the figures of all pairs: medians, and the median of the pairs' ratios.
func report(pairs []pair) figure.Section {
	ours := func(at phase) []time.Duration { return times(pairs, func(p pair) time.Duration { return p.ours[at] }) }
	alone := func(at phase) []time.Duration { return times(pairs, func(p pair) time.Duration { return p.alone[at] }) }
	ratios := ratiosAt(pairs, succeeded)
	row := func(name string, at phase) figure.Row {
		return figure.Row{
			Name: name, Ours: figure.Duration(figure.Median(ours(at))), Peer: figure.Duration(figure.Median(alone(at))),
			Ratio: figure.Median(ratiosAt(pairs, at)), Runs: len(pairs),
		}
	}
	rows := []figure.Row{
		row("upgrade, admission to CSV Succeeded", succeeded),
		row("upgrade, admission to new CSV created", created),
		{Name: "upgrade, admission to the hub's knowledge of it", Ours: figure.Duration(figure.Median(ours(reported))),
			Runs: len(pairs)},
	}
	rows[0].Promise = figure.AtMost(maxRatio)
	detail := fmt.Sprintf("Ratios are medians of the pairs' ratios. To CSV Succeeded these were between %.2f and "+
		"%.2f; what OLM takes from the new CSV to Succeeded varies that much from run to run.\n\n", slices.Min(ratios),
		slices.Max(ratios))
	detail += "When each step was reached, medians:\n\n" + figure.Grid(steps(ours, alone))
	return figure.Section{Key: "upgrade", Title: "Upgrade through the hub and the agent, against OLM alone", Rows: rows,
		Detail: detail}
}

func ratiosAt(pairs []pair, at phase) []float64 {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		out[i] = p.ratio(at)
	}
	return out
}

func times(pairs []pair, of func(pair) time.Duration) []time.Duration {
	out := make([]time.Duration, len(pairs))
	for i, p := range pairs {
		out[i] = of(p)
	}
	return out
}

// steps tells where the time goes.
func steps(ours, alone func(phase) []time.Duration) [][]string {
	cells := [][]string{{"step", "with Bellwether", "OLM alone"}}
	for at, name := range phaseNames {
		row := []string{name}
		for _, of := range []func(phase) []time.Duration{ours, alone} {
			text := ""
			if median := figure.Median(of(phase(at))); median > 0 {
				text = figure.Duration(median).String()
			}
			row = append(row, text)
		}
		cells = append(cells, row)
	}
	return cells
}
