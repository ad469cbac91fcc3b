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

// scraping is the processor time of a round in which nothing is evaluated.
func scraping(all []result) time.Duration {
	for _, r := range all {
		if r.name == idle {
			return time.Duration(float64(r.cpu) / r.rounds)
		}
	}
	return 0
}

// evaluated is how many rounds' worth of evaluations there were. On a machine with too much to do it is less than the rounds
// that passed: Prometheus leaves out what it does not get to.
func (r result) evaluated() float64 {
	if due := r.due(); due > 0 {
		return float64(r.evaluations) / due
	}
	return r.rounds
}

// evaluating is the processor time of a round's evaluations alone.
func (r result) evaluating(scraping time.Duration) figure.Quantity {
	if len(r.groups) == 0 {
		return figure.Quantity{}
	}
	return figure.Duration(time.Duration((float64(r.cpu) - r.rounds*float64(scraping)) / r.evaluated()))
}

func (r result) rules() figure.Quantity { return figure.Count(r.Recording + r.Alerting) }

func (r result) mostMemory() figure.Quantity { return figure.Bytes(r.memory) }

func report(o Options, all []result) figure.Section {
	by := map[string]result{}
	for _, r := range all {
		by[r.name] = r
	}
	idling := scraping(all)
	var rows []figure.Row
	compare := func(what string, peer result, value func(result) figure.Quantity, promise figure.Promise) {
		a, b := value(by[bellwether]), value(peer)
		rows = append(rows, figure.Row{
			Name: fmt.Sprintf("%s, and %s %s", what, peer.name, versions[peer.name]), Ours: a, Peer: b, Ratio: figure.Ratio(a, b), Promise: promise, Runs: 1,
		})
	}
	for _, peer := range []string{sloth, pyrra, slothFleet} {
		fewer, cheaper := figure.AtMost(ruleRatio), figure.AtMost(cpuRatio)
		if peer == slothFleet {
			// Nobody promised anything about objectives that are no operator's.
			fewer, cheaper = figure.Promise{}, figure.Promise{}
		}
		compare("rules", by[peer], result.rules, fewer)
		compare("processor time of a round of evaluations", by[peer], func(r result) figure.Quantity { return r.evaluating(idling) }, cheaper)
		compare("peak memory of Prometheus", by[peer], result.mostMemory, figure.Promise{})
	}
	return figure.Section{Key: "slo", Title: "Rules of SLOs, against those of sloth and pyrra", Rows: rows, Detail: detail(o, all, idling)}
}

func detail(o Options, all []result, idling time.Duration) string {
	grid := [][]string{{"Prometheus with", "groups", "rules", "rounds evaluated", "of", "processor time", "of a round of evaluations", "peak memory", "alerts"}}
	for _, r := range all {
		grid = append(grid, []string{
			r.name, fmt.Sprint(r.Groups), r.rules().String(), fmt.Sprintf("%.1f", r.evaluated()), fmt.Sprintf("%.1f", r.rounds),
			figure.Duration(r.cpu).String(), r.evaluating(idling).String(), r.mostMemory().String(), fmt.Sprint(r.alerts),
		})
	}
	how := "All ran at the same time, but for pyrra, which ran after them."
	if o.InTurn {
		how = "One ran after the other."
	}
	return fmt.Sprintf("%d operators with %d objectives each on %d clusters, %d days of history at every minute, rounds of %s. %s\n\n%s",
		o.Fleet.Operators, len(objectives()), o.Fleet.Clusters, o.Fleet.History/(24*60), o.Round, how, figure.Grid(grid))
}
