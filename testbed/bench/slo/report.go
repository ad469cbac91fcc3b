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

// cpu is the processor time that was measured, for each round that passed.
func (r result) cpu(round time.Duration) time.Duration {
	return time.Duration(float64(r.after.cpu-r.before.cpu) / r.passed(round))
}

// passed is how many rounds passed.
func (r result) passed(round time.Duration) float64 { return float64(r.took) / float64(round) }

// evaluated is how many rounds' worth of evaluations there were. On a machine with too much to do it is less than the
// rounds that passed: Prometheus leaves out what it does not get to. Groups count by how long they take.
func (r result) evaluated() float64 {
	done, due := 0.0, 0.0
	for _, g := range r.groups {
		before, after := r.before.groups[g.Name], r.after.groups[g.Name]
		done += (after.evaluations - before.evaluations) / float64(len(g.Rules)) * after.last
		due += after.last / max(ownInterval(g).Minutes(), 1)
	}
	if due == 0 {
		return 0
	}
	return done / due
}

// evaluating is the processor time of a round's evaluations alone; scraping takes so much in each round that passes.
func (r result) evaluating(round, scraping time.Duration) figure.Quantity {
	rounds := r.evaluated()
	if rounds == 0 {
		return figure.Quantity{}
	}
	return figure.Duration(time.Duration(float64(r.cpu(round)-scraping) * r.passed(round) / rounds))
}

func (r result) loaded() figure.Quantity { return figure.Count(r.Recording + r.Alerting) }

func (r result) mostMemory() figure.Quantity { return figure.Bytes(r.memory) }

func report(o Options, all []result) figure.Section {
	by := map[string]result{}
	for _, r := range all {
		by[r.name] = r
	}
	scraping := by[idle].cpu(o.Round)
	evaluating := func(r result) figure.Quantity { return r.evaluating(o.Round, scraping) }
	var rows []figure.Row
	compare := func(what string, peer result, value func(result) figure.Quantity, promise figure.Promise) {
		a, b := value(by[bellwether]), value(peer)
		rows = append(rows, figure.Row{
			Name: fmt.Sprintf("%s, and %s %s", what, peer.name, versions[peer.name]), Ours: a, Peer: b,
			Ratio: figure.Ratio(a, b), Promise: promise, Runs: 1,
		})
	}
	for _, peer := range []string{sloth, pyrra, slothFleet} {
		if _, measured := by[peer]; !measured {
			continue
		}
		fewer, cheaper := figure.AtMost(ruleRatio), figure.AtMost(cpuRatio)
		if peer == slothFleet {
			// Nobody promised anything about objectives that are no operator's.
			fewer, cheaper = figure.Promise{}, figure.Promise{}
		}
		compare("rules", by[peer], result.loaded, fewer)
		compare("processor time of a round of evaluations", by[peer], evaluating, cheaper)
		compare("peak memory of Prometheus", by[peer], result.mostMemory, figure.Promise{})
	}
	return figure.Section{Key: "slo", Title: "Rules of SLOs, against those of sloth and pyrra", Rows: rows,
		Detail: detail(o, all, evaluating)}
}

func detail(o Options, all []result, evaluating func(result) figure.Quantity) string {
	grid := [][]string{{"Prometheus with", "groups", "rules", "rounds", "evaluated", "processor time of a round",
		"of its evaluations", "peak memory", "alerts"}}
	for _, r := range all {
		grid = append(grid, []string{
			r.name, fmt.Sprint(r.Groups), r.loaded().String(), fmt.Sprintf("%.1f", r.passed(o.Round)),
			fmt.Sprintf("%.1f", r.evaluated()),
			figure.Duration(r.cpu(o.Round)).String(), evaluating(r).String(), r.mostMemory().String(),
			fmt.Sprint(r.alerts),
		})
	}
	return fmt.Sprintf("%d operators with %d objectives each on %d clusters, %d days of history at every minute, "+
		"rounds of %s. All ran at the same time, "+
		"but for pyrra, which was measured after them. Evaluated are as many rounds as the processors got to.\n\n%s",
		o.Fleet.Operators, len(objectives()), o.Fleet.Clusters, o.Fleet.History/(24*60), o.Round, figure.Grid(grid))
}
