// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// rolloutPlot shows the time of rollouts against the number of OperatorInstalls.
func rolloutPlot(all []converged) figure.Plot {
	lines := map[int][2]*figure.Line{}
	plot := figure.Plot{Title: "Rollout of all operators to all clusters", X: "OperatorInstalls", Y: "seconds"}
	for _, waves := range []int{1, 5} {
		lines[waves] = [2]*figure.Line{{Name: wavesOf(waves)}, {Name: "floor of " + wavesOf(waves), Dashed: true}}
	}
	for _, c := range all {
		for i, y := range []float64{c.took.Seconds(), c.floor.Seconds()} {
			lines[c.waves][i].Points = append(lines[c.waves][i].Points, plotter.XY{X: float64(c.installs()), Y: y})
		}
	}
	for _, waves := range []int{1, 5} {
		plot.Lines = append(plot.Lines, *lines[waves][0], *lines[waves][1])
	}
	return plot
}

// memoryPlot shows the hub's resident memory against the number of clusters, a line for each number of operators.
func memoryPlot(rests []rest) figure.Plot {
	plot := figure.Plot{Title: "Resident memory of the hub", X: "clusters", Y: "MiB"}
	index := map[int]int{}
	for _, r := range rests {
		operators := 0
		if r.installed {
			operators = r.operators
		}
		i, ok := index[operators]
		if !ok {
			i, index[operators] = len(plot.Lines), len(plot.Lines)
			plot.Lines = append(plot.Lines, figure.Line{Name: fmt.Sprintf("%d operators", operators)})
		}
		plot.Lines[i].Points = append(plot.Lines[i].Points, plotter.XY{X: float64(r.clusters), Y: mebi(r.resident)})
	}
	return plot
}
