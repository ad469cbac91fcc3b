// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// What was promised: ten times fewer rules, and a fifth of the work.
const (
	ruleRatio = 0.1
	cpuRatio  = 0.2
)

// perRound is the processor time of one round.
func (r result) perRound() time.Duration { return time.Duration(float64(r.cpu) / r.rounds) }

func report(o Options, results []result) figure.Section {
	by := map[string]result{}
	for _, r := range results {
		by[r.name] = r
	}
	us := by[bellwether]
	perRound := func(r result) figure.Quantity {
		return figure.Duration((r.cpu - by[idle].cpu) / time.Duration(r.rounds))
	}
	var rows []figure.Row
	for _, peer := range []result{by[sloth], by[pyrra]} {
		version := map[string]string{sloth: slothVersion, pyrra: pyrraVersion}[peer.name]
		row := func(what string, value func(result) figure.Quantity, promise figure.Promise) {
			a, b := value(us), value(peer)
			rows = append(rows, figure.Row{
				Name: fmt.Sprintf("%s, against %s %s", what, peer.name, version), Ours: a, Peer: b, Ratio: figure.Ratio(a, b), Promise: promise, Runs: 1,
			})
		}
		row("rules", func(r result) figure.Quantity { return figure.Count(r.Recording + r.Alerting) }, figure.AtMost(ruleRatio))
		row("processor time per round", perRound, figure.AtMost(cpuRatio))
		row("memory", func(r result) figure.Quantity { return figure.Bytes(r.memory) }, figure.Promise{})
	}
	grid := [][]string{{"Prometheus with", "groups", "rules", "evaluations", "missed", "processor time per round", "without scraping", "all groups once", "memory", "alerts"}}
	for _, r := range results {
		grid = append(grid, []string{
			r.name, fmt.Sprint(r.Groups), fmt.Sprint(r.Recording + r.Alerting), fmt.Sprint(r.evaluations), fmt.Sprint(r.missed),
			figure.Duration(r.perRound()).String(), perRound(r).String(), figure.Duration(r.last).String(), figure.Bytes(r.memory).String(), fmt.Sprint(r.alerts),
		})
	}
	how := "All but pyrra at the same time"
	if o.InTurn {
		how = "One after the other"
	}
	detail := fmt.Sprintf("%d operators with %d objectives each on %d clusters, %d minutes of history, rounds of %s. %s; processor time is that of "+
		"all cores together, in user and system mode, and memory is anonymous memory at its peak.\n\n",
		o.Fleet.Operators, len(objectives()), o.Fleet.Clusters, o.Fleet.History, o.Round, how)
	return figure.Section{Key: "slo", Title: "Rules of SLOs, against those of sloth and pyrra", Rows: rows, Detail: detail + figure.Grid(grid)}
}
