// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"maps"
	"slices"
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
		due += after.last / every(time.Minute)(ownInterval(g)).Minutes()
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

// slowestGroup is the group whose slowest evaluation took the largest share of its interval.
func (r result) slowestGroup() (name string, took, interval time.Duration) {
	worst := -1.0
	for _, g := range r.groups {
		if share := r.slowest[g.Name] / ownInterval(g).Seconds(); share > worst {
			worst, name, interval = share, g.Name, ownInterval(g)
			took = time.Duration(r.slowest[g.Name] * float64(time.Second))
		}
	}
	return name, took, interval
}

// where names a result of ours.
func (r result) where() string {
	return fmt.Sprintf("%s, %d clusters", r.name, r.fleet.Size().Clusters)
}

func report(o Options, all []result) figure.Section {
	by := map[string]result{}
	for _, r := range all {
		by[r.name] = r
	}
	scraping := by[idle].cpu(o.Round)
	evaluating := func(r result) figure.Quantity { return r.evaluating(o.Round, scraping) }
	us := []result{by[bellwether]}
	return figure.Section{Key: "slo", Title: "Rules of SLOs, against those of sloth and pyrra",
		Rows:   append(compared(o, by, evaluating), slowestRows(o, us)...),
		Detail: detail(o, by, evaluating) + "\n\n" + groups(us)}
}

func reportSizes(o Options, all []result) figure.Section {
	return figure.Section{Key: "slo-size", Title: "Rules of SLOs, on larger fleets", Rows: slowestRows(o, all),
		Detail: sizes(o, all) + "\n\n" + groups(all)}
}

// slowestRows promise that each group takes less than half of its interval.
func slowestRows(o Options, all []result) []figure.Row {
	var rows []figure.Row
	for _, r := range all {
		name, took, interval := r.slowestGroup()
		rows = append(rows, figure.Row{
			Name: fmt.Sprintf("slowest group, %s: %s, every %s", r.where(), name, interval),
			Ours: figure.Duration(took), Promise: figure.Below(figure.Duration(interval / 2)), Runs: o.Rounds,
		})
	}
	return rows
}

// compared are the rows with a peer.
func compared(o Options, by map[string]result, evaluating func(result) figure.Quantity) []figure.Row {
	var rows []figure.Row
	compare := func(what string, peer result, value func(result) figure.Quantity, promise figure.Promise) {
		a, b := value(by[bellwether]), value(peer)
		rows = append(rows, figure.Row{
			Name: fmt.Sprintf("%s, and %s %s", what, peer.name, versions[peer.name]), Ours: a, Peer: b,
			Ratio: figure.Ratio(a, b), Promise: promise, Runs: o.Rounds,
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
	return rows
}

func detail(o Options, by map[string]result, evaluating func(result) figure.Quantity) string {
	grid := [][]string{{"Prometheus with", "groups", "rules", "rounds", "evaluated", "processor time of a round",
		"of its evaluations", "series", "peak memory", "alerts"}}
	for _, name := range []string{idle, bellwether, sloth, slothFleet, pyrra} {
		r, measured := by[name]
		if !measured {
			continue
		}
		grid = append(grid, []string{
			r.name, fmt.Sprint(r.Groups), r.loaded().String(), fmt.Sprintf("%.1f", r.passed(o.Round)),
			fmt.Sprintf("%.1f", r.evaluated()),
			figure.Duration(r.cpu(o.Round)).String(), evaluating(r).String(), fmt.Sprint(r.after.series),
			r.mostMemory().String(), fmt.Sprint(r.alerts),
		})
	}
	const day = 24 * 60
	return fmt.Sprintf("%d operators with %d objectives each on %d clusters, rounds of %s. The history of the peers "+
		"is %.1f days of what is scraped and of what they record of 5 minutes. Ours is %d minutes of what is scraped "+
		"and of all slices, which is more than our rules read, and %.1f days of bad slices, which budgets read. All "+
		"ran at the same time, but for pyrra, which was measured after them. Evaluated are as many rounds as the "+
		"processors got to.\n\n%s",
		o.Fleet.Operators, len(objectives()), o.Fleet.Clusters, o.Round, float64(min(slowest, o.Fleet.History))/day,
		min(recent, o.Fleet.History), float64(o.Fleet.History)/day, figure.Grid(grid))
}

// beyond is how many times the clusters that were measured extrapolated figures are for.
const beyond = 3

// sizes are our figures by the number of clusters, and what follows from the largest for more of them.
func sizes(o Options, all []result) string {
	grid := [][]string{{"rules", "clusters", "series", "peak memory", "processor time of a round", "slowest group",
		"took", "of its interval"}}
	row := func(r result, times int, mark string) {
		name, took, interval := r.slowestGroup()
		took *= time.Duration(times)
		grid = append(grid, []string{r.name, fmt.Sprintf("%d%s", r.fleet.Size().Clusters*times, mark),
			fmt.Sprint(r.after.series * times), figure.Bytes(r.memory * int64(times)).String(),
			figure.Duration(r.cpu(o.Round) * time.Duration(times)).String(), name, figure.Duration(took).String(),
			fmt.Sprintf("%.0f %%", 100*took.Seconds()/interval.Seconds())})
	}
	largest := map[string]result{}
	for _, r := range all {
		row(r, 1, "")
		if last, ok := largest[r.name]; !ok || last.fleet.Size().Clusters < r.fleet.Size().Clusters {
			largest[r.name] = r
		}
	}
	for _, name := range slices.Sorted(maps.Keys(largest)) {
		row(largest[name], beyond, " (extrapolated)")
	}
	return fmt.Sprintf("%d operators with %d objectives each. Series are those that are written. The processor time "+
		"is that of the whole Prometheus, with scraping. What is marked as extrapolated was not measured: it is %d "+
		"times what the largest size of the same rules took.\n\n%s", o.Fleet.Operators, len(objectives()), beyond,
		figure.Grid(grid))
}

// groups are the slowest evaluations of each group.
func groups(all []result) string {
	header := []string{"group", "interval"}
	byName := map[string][]string{}
	var order []string
	for i, r := range all {
		header = append(header, r.where())
		for _, g := range r.groups {
			if byName[g.Name] == nil {
				order = append(order, g.Name)
				byName[g.Name] = []string{g.Name, ownInterval(g).String()}
			}
			for len(byName[g.Name]) < 2+i {
				byName[g.Name] = append(byName[g.Name], "")
			}
			took := figure.Duration(time.Duration(r.slowest[g.Name] * float64(time.Second)))
			byName[g.Name] = append(byName[g.Name], took.String())
		}
	}
	grid := [][]string{header}
	for _, name := range order {
		row := byName[name]
		for len(row) < len(header) {
			row = append(row, "")
		}
		grid = append(grid, row)
	}
	return "The slowest evaluation of each group:\n\n" + figure.Grid(grid)
}
