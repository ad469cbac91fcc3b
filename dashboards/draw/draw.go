// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw makes a picture of how a dashboard is laid out: its rows, panels
// and variables, as SVG. What is in the panels is a symbol of their kind and no
// data. The package is pure; the documentation shows what it makes.
package draw

import (
	_ "embed"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// across and down are the size of a cell of Grafana's grid.
	across, down = 40.0, 17.0
	margin       = 16.0
	header       = 64.0
	gap          = 3.0
	// perLetter is how wide a letter of a title is on average.
	perLetter = 6.6
)

//go:embed style.html
var style string

// SVG is a picture of a dashboard's layout, in light or dark as the reader has it.
func SVG(d dashboards.Dashboard) []byte {
	bottom := uint32(0)
	for _, p := range d.Panels {
		if p.Panel != nil && p.Panel.GridPos != nil {
			bottom = max(bottom, p.Panel.GridPos.Y+p.Panel.GridPos.H)
		}
	}
	width, height := 24*across+2*margin, header+float64(bottom)*down+margin
	title := ptr.Deref(d.Title, "")
	pic := &picture{}
	pic.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" aria-labelledby=\"title "+
		"desc\">\n", width, height)
	pic.printf("<title id=\"title\">%s: layout</title>\n<desc id=\"desc\">%s</desc>\n%s", html.EscapeString(title),
		html.EscapeString(ptr.Deref(d.Description, "")), style)
	pic.printf("<rect class=\"page\" width=\"%g\" height=\"%g\"/>\n", width, height)
	pic.printf("<text class=\"h1\" x=\"%g\" y=\"26\">%s</text>\n", margin, html.EscapeString(title))
	pic.variables(d.Templating.List)
	for _, p := range d.Panels {
		switch {
		case p.RowPanel != nil:
			pic.printf("<text class=\"row\" x=\"%g\" y=\"%g\">▾ %s</text>\n", margin,
				header+float64(p.RowPanel.GridPos.Y)*down+13, html.EscapeString(ptr.Deref(p.RowPanel.Title, "")))
		case p.Panel != nil && p.Panel.GridPos != nil:
			pic.panel(p.Panel)
		}
	}
	pic.printf("</svg>\n")
	return []byte(pic.String())
}

type picture struct{ strings.Builder }

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *picture) variables(all []dashboard.VariableModel) {
	x := margin
	for _, v := range all {
		text := ptr.Deref(v.Label, v.Name) + " ▾"
		w := float64(len([]rune(text)))*perLetter + 16
		p.printf("<rect class=\"pill\" x=\"%g\" y=\"37\" width=\"%.0f\" height=\"20\" rx=\"4\"/><text class=\"soft\" "+
			"x=\"%g\" y=\"51\">%s</text>\n", x, w, x+8, html.EscapeString(text))
		x += math.Round(w) + 8
	}
}

// box is where a panel's content goes.
type box struct{ x, y, w, h float64 }

func (p *picture) panel(panel *dashboard.Panel) {
	g := panel.GridPos
	b := box{margin + float64(g.X)*across + gap, header + float64(g.Y)*down + gap, float64(g.W)*across - 2*gap,
		float64(g.H)*down - 2*gap}
	title := ptr.Deref(panel.Title, "")
	p.printf("<g><title>%s</title><rect class=\"panel\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"4\"/>\n",
		html.EscapeString(ptr.Deref(panel.Description, "")), b.x, b.y, b.w, b.h)
	p.printf("<text x=\"%g\" y=\"%g\">%s</text>\n", b.x+8, b.y+16, html.EscapeString(fit(title, b.w-16)))
	inner := box{b.x + 10, b.y + 26, b.w - 20, b.h - 34}
	switch panel.Type {
	case "stat":
		p.printf("<text class=\"big\" x=\"%g\" y=\"%g\" text-anchor=\"middle\">–</text>\n", b.x+b.w/2,
			inner.y+inner.h/2+8)
	case "table":
		p.table(inner, titles(panel))
	case "bargauge":
		p.bars(inner)
	case "state-timeline", "status-history":
		p.cells(inner, panel.Type == "status-history")
	default:
		p.lines(inner)
	}
	p.printf("</g>\n")
}

// fit shortens a text to a width.
func fit(text string, width float64) string { return phrase.Truncate(text, int(width/perLetter)) }

func (p *picture) lines(b box) {
	for i := range 4 {
		y := b.y + b.h*float64(i)/3
		p.printf("<path class=\"grid\" d=\"M%.0f %.1fh%.0f\"/>", b.x, y, b.w)
	}
	for i, class := range []string{"a", "b", "c"} {
		var points []string
		for x := 0.0; x <= 1.001; x += 0.02 {
			wave := math.Sin(x*9+float64(i)*2)*0.12 + math.Sin(x*23+float64(i))*0.05
			y := b.y + b.h*(0.3+0.2*float64(i)+wave*0.8)
			points = append(points, fmt.Sprintf("%.0f,%.1f", b.x+b.w*x, y))
		}
		p.printf("<polyline class=\"%s\" points=\"%s\"/>", class, strings.Join(points, " "))
	}
	p.printf("\n")
}

// titles are those of a table's columns, from the left.
func titles(panel *dashboard.Panel) []string {
	for _, t := range panel.Transformations {
		options, _ := t.Options.(map[string]any)
		order, _ := options["indexByName"].(map[string]int)
		names, _ := options["renameByName"].(map[string]string)
		if len(order) == 0 {
			continue
		}
		return slices.Collect(func(yield func(string) bool) {
			for _, field := range slices.SortedFunc(maps.Keys(order),
				func(a, b string) int { return order[a] - order[b] }) {
				if !yield(names[field]) {
					return
				}
			}
		})
	}
	return nil
}

func (p *picture) table(b box, titles []string) {
	w := b.w / float64(len(titles))
	for i, title := range titles {
		x := b.x + w*float64(i)
		p.printf("<text class=\"col\" x=\"%.0f\" y=\"%.0f\">%s</text>", x, b.y+6, html.EscapeString(fit(title, w-4)))
		for y, n := 18.0, 0; y+8 <= b.h; y, n = y+18, n+1 {
			p.printf("<rect class=\"bar\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"7\" rx=\"3\"/>", x, b.y+y,
				w*(0.45+0.07*float64((n*3+i*2)%5)))
		}
	}
	p.printf("\n")
}

func (p *picture) bars(b box) {
	for y, n := 0.0, 0; y+12 <= b.h; y, n = y+20, n+1 {
		p.printf("<rect class=\"faint\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"12\" rx=\"2\"/>", b.x, b.y+y,
			b.w*(0.9-0.13*float64(n%6)))
	}
	p.printf("\n")
}

// cells are good, but for a few; small ones for a heat map.
func (p *picture) cells(b box, small bool) {
	columns, rowHeight := 8, 20.0
	if small {
		columns, rowHeight = 48, 16
	}
	w := b.w / float64(columns)
	for y, n := 0.0, 0; y+rowHeight-4 <= b.h; y, n = y+rowHeight, n+1 {
		for i := range columns {
			class := "faint"
			if (i*7+n*5)%23 == 3 {
				class = "bad"
			}
			p.printf("<rect class=\"%s\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\"/>", class,
				b.x+w*float64(i), b.y+y, w-1, rowHeight-4)
		}
	}
	p.printf("\n")
}
