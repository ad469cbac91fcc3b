// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package figure_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// TestPlot draws points whose places are known: the axes are logarithmic and end at whole powers of ten.
func TestPlot(t *testing.T) {
	svg := figure.Plot{Title: "a < b", X: "things", Y: "seconds", Lines: []figure.Line{
		{Name: "ours", Points: []figure.Point{{X: 10_000, Y: 10}, {X: 100, Y: 0.1}, {X: 1000, Y: 1}}},
		{Name: "floor", Dashed: true, Points: []figure.Point{{X: 100, Y: 0}, {X: -1, Y: 5}}},
	}}.SVG()
	for _, part := range []string{
		"a &lt; b", `d="M70.0 360.0L315.0 208.0L560.0 56.0"`, ">10,000<", ">0.1<", "stroke-dasharray", ">floor<",
	} {
		if !strings.Contains(svg, part) {
			t.Errorf("the picture has no %s:\n%s", part, svg)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 3 {
		t.Errorf("%d points are drawn, want 3: those without a logarithm are left out", n)
	}
	wellFormed(t, svg)
}

func TestPlotOfNothing(t *testing.T) {
	for name, plot := range map[string]figure.Plot{
		"no lines": {}, "no points": {Lines: []figure.Line{{Name: "empty"}}},
		"one point": {Lines: []figure.Line{{Points: []figure.Point{{X: 100, Y: 1}}}}},
	} {
		svg := plot.SVG()
		wellFormed(t, svg)
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s:\n%s", name, svg)
		}
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
	}
}
