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

func (p pair) ratio() float64 { return float64(p.ours[succeeded]) / float64(p.alone[succeeded]) }

// report writes the figures of all pairs: medians, and the median of the pairs' ratios.
func report(pairs []pair) figure.Section {
	ours := func(at phase) []time.Duration { return times(pairs, func(p pair) time.Duration { return p.ours[at] }) }
	alone := func(at phase) []time.Duration { return times(pairs, func(p pair) time.Duration { return p.alone[at] }) }
	ratios := make([]float64, len(pairs))
	for i, p := range pairs {
		ratios[i] = p.ratio()
	}
	quick, known := figure.Median(ours(succeeded)), figure.Median(ours(reported))
	rows := []figure.Row{
		{
			Name: "upgrade, admission to CSV Succeeded", Ours: figure.Duration(quick), Peer: figure.Duration(figure.Median(alone(succeeded))),
			Ratio: figure.Median(ratios), Promise: figure.AtMost(maxRatio), Runs: len(pairs),
		},
		{Name: "the same until the hub knows", Ours: figure.Duration(known), Runs: len(pairs)},
	}
	detail := fmt.Sprintf("The ratio is the median of the pairs' ratios, which were between %.2f and %.2f.\n\n", slices.Min(ratios), slices.Max(ratios))
	detail += "When each step was reached, medians:\n\n" + figure.Grid(steps(ours, alone))
	return figure.Section{Key: "upgrade", Title: "Upgrade through the hub and the agent, against OLM alone", Rows: rows, Detail: detail}
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
