// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// What is promised of the hub's memory, and of its start.
const (
	perCluster  = 64 << 10
	perOperator = 16 << 10
	restartIn   = 15 * time.Second
)

// ratios are how many times as long as the floor a rollout may take, by the number of clusters.
var ratios = map[int]float64{1000: 1.5, 10_000: 2}

func report(o Options, all fleets) figure.Section {
	section := figure.Section{Key: "scale", Title: "Large fleets: rollouts, memory, and a fleet at rest"}
	for _, c := range all.rollouts {
		row := figure.Row{
			Name: fmt.Sprintf("%s, %s", c.size, wavesOf(c.waves)), Ours: figure.Duration(c.took),
			Peer: figure.Duration(c.floor), Runs: 1,
		}
		row.Ratio = figure.Ratio(row.Ours, row.Peer)
		if most, ok := ratios[c.clusters]; ok {
			row.Promise = figure.AtMost(most)
		}
		section.Rows = append(section.Rows, row)
	}
	for _, r := range all.restarts {
		row := figure.Row{Name: fmt.Sprintf("%s, hub restarted to caught up", r.size), Ours: figure.Duration(r.took),
			Runs: 1}
		if r.clusters <= 1000 {
			row.Promise = figure.Below(figure.Duration(restartIn))
		}
		section.Rows = append(section.Rows, row)
	}
	memory, rows := memoryOf(all.rests, all.unmeasured)
	section.Rows = append(section.Rows, rows...)
	section.Detail = strings.Join([]string{converging(all.rollouts), memory, resting(o, all.rests)}, "\n\n")
	section.Pictures = map[string]figure.Plot{
		"scale-rollout.svg": rolloutPlot(all.rollouts), "scale-memory.svg": memoryPlot(all.rests),
	}
	return section
}

func wavesOf(n int) string {
	if n == 1 {
		return "one wave"
	}
	return strconv.Itoa(n) + " waves"
}

func converging(all []converged) string {
	cells := [][]string{{"clusters × operators", "waves", "writes", "writes per install", "writes per second",
		"floor's", "left out of the floor"}}
	for _, c := range all {
		n := total(c.writes)
		cells = append(cells, []string{c.String(), strconv.Itoa(c.waves), strconv.Itoa(n),
			fmt.Sprintf("%.1f", float64(n)/float64(c.installs())), fmt.Sprintf("%.0f", float64(n)/c.took.Seconds()),
			fmt.Sprintf("%.0f", float64(n-total(c.left))/c.floor.Seconds()), strconv.Itoa(total(c.left))})
	}
	text := "![How long rollouts take, against the floor](images/bench/scale-rollout.svg)\n\n" + figure.Grid(cells)
	if len(all) == 0 {
		return text
	}
	text += "\nProcessor seconds during the rollouts. The agents of all clusters are in the process of the " +
		"benchmark:\n\n" + processors(all)
	last := all[len(all)-1]
	text += fmt.Sprintf("\nThe writes of %s, %s:\n\n", last.size, wavesOf(last.waves))
	kinds := [][]string{{"write", "number", "per install"}}
	for _, o := range slices.SortedFunc(maps.Keys(last.writes), func(a, b operation) int {
		return last.writes[b] - last.writes[a]
	}) {
		if n := last.writes[o]; n*100 >= last.installs() {
			kinds = append(kinds, []string{o.String(), strconv.Itoa(n),
				fmt.Sprintf("%.2f", float64(n)/float64(last.installs()))})
		}
	}
	return text + figure.Grid(kinds)
}

// processors lists the processor time of each process during each rollout.
func processors(all []converged) string {
	cells := [][]string{{"clusters × operators", "waves", "hub", "API server", "etcd", "agents"}}
	for _, c := range all {
		cells = append(cells, []string{c.String(), strconv.Itoa(c.waves), fmt.Sprintf("%.1f", c.cpu[build.Hub]),
			fmt.Sprintf("%.1f", c.cpu[build.KubeAPIServer]), fmt.Sprintf("%.1f", c.cpu[build.Etcd]),
			fmt.Sprintf("%.1f", c.cpu[agents])})
	}
	return figure.Grid(cells)
}

// memoryOf fits the hub's memory to clusters and installs, and extrapolates it to what was not measured.
func memoryOf(rests []rest, unmeasured []size) (string, []figure.Row) {
	cells := [][]string{{"clusters × operators", "installs", "resident", "live heap", "resident, by the fit",
		"API server, resident"}}
	var clusters, installs, resident, heap []float64
	for _, r := range rests {
		n := 0
		if r.installed {
			n = r.installs()
		}
		clusters, installs = append(clusters, float64(r.clusters)), append(installs, float64(n))
		resident, heap = append(resident, float64(r.resident)), append(heap, float64(r.heap))
	}
	fit, ok := fitPlane(clusters, installs, resident)
	live, _ := fitPlane(clusters, installs, heap)
	for i, r := range rests {
		cells = append(cells, []string{r.String(), fmt.Sprintf("%.0f", installs[i]),
			fmt.Sprintf("%.1f MiB", mebi(r.resident)), fmt.Sprintf("%.1f MiB", mebi(r.heap)),
			fmt.Sprintf("%.1f MiB", fit.at(clusters[i], installs[i])/(1<<20)),
			fmt.Sprintf("%.1f MiB", mebi(r.apiServer))})
	}
	for _, s := range unmeasured {
		if ok {
			cells = append(cells, []string{s.String(), strconv.Itoa(s.installs()), "not measured", "not measured",
				fmt.Sprintf("%.1f MiB, extrapolated", fit.at(float64(s.clusters), float64(s.installs()))/(1<<20)),
				"not measured"})
		}
	}
	text := "![The hub's memory](images/bench/scale-memory.svg)\n\n" + figure.Grid(cells)
	if !ok {
		return text, nil
	}
	text += fmt.Sprintf("\nBy least squares, the hub's resident memory is %.1f MiB, %.1f KiB per cluster and %.1f "+
		"KiB per OperatorInstall; its live heap is %.1f MiB, %.1f KiB and %.1f KiB.", fit.base/(1<<20), fit.x/1024,
		fit.y/1024, live.base/(1<<20), live.x/1024, live.y/1024)
	return text, []figure.Row{
		{Name: "hub's resident memory per cluster", Ours: figure.Kibibytes(fit.x),
			Promise: figure.Below(figure.Kibibytes(perCluster)), Runs: len(rests)},
		{Name: "hub's resident memory per OperatorInstall", Ours: figure.Kibibytes(fit.y),
			Promise: figure.Below(figure.Kibibytes(perOperator)), Runs: len(rests)},
	}
}

func resting(o Options, rests []rest) string {
	cells := [][]string{{"clusters × operators", "installed", "requests of the agent", "requests of the hub",
		"writes to etcd", "processor seconds of the hub", "of the API server"}}
	for _, r := range rests {
		cells = append(cells, []string{r.String(), map[bool]string{true: "yes", false: "no"}[r.installed],
			fmt.Sprintf("%.0f", r.agentRequests), fmt.Sprintf("%.1f", r.hubRequests), fmt.Sprintf("%.0f", r.etcdWrites),
			fmt.Sprintf("%.2f", r.hubCPU), fmt.Sprintf("%.2f", r.apiCPU)})
	}
	return fmt.Sprintf("A fleet at rest, observed for %s, per cluster and hour, with a renewal of each Lease every "+
		"%s. What does not depend on the fleet, such as the hub's own Lease and the API server's housekeeping, is in "+
		"it, and shows in small fleets:\n\n", o.Idle, o.LeaseEvery) + figure.Grid(cells)
}
