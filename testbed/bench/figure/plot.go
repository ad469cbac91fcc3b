// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
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
	Points []Point
}

// Point is one of a line.
type Point struct{ X, Y float64 }

// Sizes in pixels. The area of the lines begins at plotLeft and plotTop.
const (
	plotWidth, plotHeight  = 760, 420
	plotLeft, plotTop      = 70, 56
	plotRight, plotBottom  = 560, 360
	legendLeft, legendStep = 580, 22
)

// plotColours tell lines apart on light and dark ground.
var plotColours = []string{"#2f7ed8", "#d9822b", "#2e9e5b", "#b1469b", "#c0392b", "#7a6a53"}

// SVG draws the plot.
func (p Plot) SVG() string {
	x, y := p.axes()
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-label="%s" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight, plotWidth, plotHeight,
		escape(p.Title))
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&out, `<text x="%d" y="30" font-size="16" fill="#222">%s</text>`+"\n", plotLeft, escape(p.Title))
	for _, at := range x.ticks() {
		fmt.Fprintf(&out, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle" `+
			`fill="#444">%s</text>`+"\n", x.place(at), plotTop, plotBottom, x.place(at), plotBottom+18, number(at))
	}
	for _, at := range y.ticks() {
		fmt.Fprintf(&out, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end" `+
			`fill="#444">%s</text>`+"\n", plotLeft, y.place(at), plotRight, plotLeft-8, y.place(at)+4, number(at))
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle" fill="#222">%s</text>`+"\n", (plotLeft+plotRight)/2,
		plotBottom+42, escape(p.X))
	fmt.Fprintf(&out, `<text x="%d" y="%d" fill="#222">%s</text>`+"\n", plotLeft-50, plotTop-10, escape(p.Y))
	for i, line := range p.Lines {
		p.draw(&out, i, line, x, y)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func (p Plot) draw(out *strings.Builder, i int, line Line, x, y axis) {
	colour, dash := plotColours[i%len(plotColours)], ""
	if line.Dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	points := line.drawn()
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	var path strings.Builder
	for n, at := range points {
		fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[n == 0], x.place(at.X), y.place(at.Y))
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.place(at.X), y.place(at.Y), colour)
	}
	if path.Len() > 0 {
		fmt.Fprintf(out, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", path.String(), colour, dash)
	}
	row := plotTop + 10 + i*legendStep
	fmt.Fprintf(out, `<path d="M%d %dh24" stroke="%s" stroke-width="2"%s/>`+
		`<text x="%d" y="%d" fill="#222">%s</text>`+"\n", legendLeft, row,
		colour, dash, legendLeft+30, row+4, escape(line.Name))
}

// drawn are the points that have a place on logarithmic axes.
func (l Line) drawn() []Point {
	return slices.DeleteFunc(slices.Clone(l.Points), func(p Point) bool { return !(p.X > 0 && p.Y > 0) })
}

// axis is logarithmic, between whole powers of ten, and lies between two pixels.
type axis struct {
	from, to    float64 // exponents
	first, last float64
}

func (p Plot) axes() (x, y axis) {
	x = axis{math.Inf(1), math.Inf(-1), plotLeft, plotRight}
	y = axis{math.Inf(1), math.Inf(-1), plotBottom, plotTop}
	for _, line := range p.Lines {
		for _, at := range line.drawn() {
			x.cover(at.X)
			y.cover(at.Y)
		}
	}
	return x.closed(), y.closed()
}

func (a *axis) cover(value float64) {
	a.from, a.to = min(a.from, math.Floor(math.Log10(value))), max(a.to, math.Ceil(math.Log10(value)))
}

func (a axis) closed() axis {
	switch {
	case a.from > a.to:
		a.from, a.to = 0, 1
	case a.from == a.to:
		a.to++
	}
	return a
}

func (a axis) place(value float64) float64 {
	return a.first + (math.Log10(value)-a.from)/(a.to-a.from)*(a.last-a.first)
}

func (a axis) ticks() []float64 {
	var all []float64
	for e := a.from; e <= a.to; e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

func number(value float64) string {
	text := fmt.Sprintf("%g", value)
	if value >= 1000 && value < 1e9 {
		text = fmt.Sprintf("%.0f", value)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	return text
}

func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a strings.Builder takes everything
	return out.String()
}
