// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Plot is a picture of lines over two logarithmic axes.
type Plot struct {
	Title, X, Y string
	Lines       []Line
}

// Line is a series of points with positive coordinates; others are left out.
type Line struct {
	Name   string
	Dashed bool
	Points plotter.XYs
}

// drawn are the points that have a place on logarithmic axes, from left to right.
func (l Line) drawn() plotter.XYs {
	points := slices.DeleteFunc(slices.Clone(l.Points), func(p plotter.XY) bool { return !(p.X > 0 && p.Y > 0) })
	slices.SortStableFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// SVG draws the plot.
func (p Plot) SVG() (string, error) {
	picture := plot.New()
	picture.Title.Text, picture.X.Label.Text, picture.Y.Label.Text = p.Title, p.X, p.Y
	picture.X.Scale, picture.Y.Scale = plot.LogScale{}, plot.LogScale{}
	picture.X.Tick.Marker, picture.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	picture.Legend.Left, picture.Legend.Top = true, true
	for _, style := range []*text.Style{&picture.Title.TextStyle, &picture.X.Label.TextStyle, &picture.X.Tick.Label,
		&picture.Y.Label.TextStyle, &picture.Y.Tick.Label, &picture.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	picture.Add(plotter.NewGrid())
	for i, l := range p.Lines {
		points := l.drawn()
		if len(points) == 0 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return "", fmt.Errorf("draw %s: %w", l.Name, err)
		}
		line.Color, marks.Color, marks.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		if l.Dashed {
			line.Dashes = plotutil.Dashes(1)
		}
		picture.Add(line, marks)
		picture.Legend.Add(l.Name, line, marks)
	}
	wholePowers(&picture.X)
	wholePowers(&picture.Y)
	canvas, err := picture.WriterTo(18*vg.Centimeter, 10*vg.Centimeter, "svg")
	if err != nil {
		return "", fmt.Errorf("draw %s: %w", p.Title, err)
	}
	var out strings.Builder
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", fmt.Errorf("draw %s: %w", p.Title, err)
	}
	return out.String(), nil
}

// wholePowers has an axis begin and end at powers of ten, also if it has one point or none.
func wholePowers(a *plot.Axis) {
	if a.Min > a.Max {
		a.Min, a.Max = 1, 1
	}
	from, to := math.Floor(math.Log10(a.Min)), math.Ceil(math.Log10(a.Max))
	a.Min, a.Max = math.Pow(10, from), math.Pow(10, max(to, from+1))
}
