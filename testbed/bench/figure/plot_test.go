// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package figure_test

import (
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// TestPlot draws a line with points that have no logarithm, and one with no others.
func TestPlot(t *testing.T) {
	svg, err := figure.Plot{Title: "a < b", X: "things", Y: "seconds", Lines: []figure.Line{
		{Name: "ours", Points: plotter.XYs{{X: 10_000, Y: 10}, {X: 100, Y: 0.1}, {X: 1000, Y: 1}, {X: 50, Y: 0}}},
		{Name: "floor", Dashed: true, Points: plotter.XYs{{X: 100, Y: 0}, {X: -1, Y: 5}}},
	}}.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"a &lt; b", ">ours<", ">10000<", ">10<"} {
		if !strings.Contains(svg, part) {
			t.Errorf("the picture has no %s:\n%s", part, svg)
		}
	}
	for _, part := range []string{">floor<", "NaN", "Inf"} {
		if strings.Contains(svg, part) {
			t.Errorf("the picture has %s:\n%s", part, svg)
		}
	}
}

func TestPlotOfNothing(t *testing.T) {
	for name, plot := range map[string]figure.Plot{
		"no lines": {}, "no points": {Lines: []figure.Line{{Name: "empty"}}},
		"one point": {Lines: []figure.Line{{Points: plotter.XYs{{X: 100, Y: 1}}}}},
	} {
		if svg, err := plot.SVG(); err != nil || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %v\n%s", name, err, svg)
		}
	}
}
