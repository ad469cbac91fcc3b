// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw makes a picture of a dashboard as SVG: its rows, panels and
// variables, and in the panels what their queries returned in a run of the testbed,
// which is recorded in the folder data. The package is pure; the documentation
// shows what it makes. It is not Grafana, so details differ.
package draw

import (
	_ "embed"
	"fmt"
	"html"
	"math"
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

// SVG is a picture of a dashboard with data, in light or dark as the reader has it.
func SVG(d dashboards.Dashboard, data Data) []byte {
	bottom := uint32(0)
	for _, p := range d.Panels {
		if p.Panel != nil && p.Panel.GridPos != nil {
			bottom = max(bottom, p.Panel.GridPos.Y+p.Panel.GridPos.H)
		}
	}
	width, height := 24*across+2*margin, header+float64(bottom)*down+margin
	title := ptr.Deref(d.Title, "")
	pic := &picture{minutes: data.Minutes}
	pic.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" aria-labelledby=\"title "+
		"desc\">\n", width, height)
	pic.printf("<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n%s", html.EscapeString(title),
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
			pic.panel(p.Panel, data.Queries[ptr.Deref(p.Panel.Title, "")])
		}
	}
	pic.printf("</svg>\n")
	return []byte(pic.String())
}

type picture struct {
	strings.Builder
	minutes float64
}

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

func (p *picture) panel(panel *dashboard.Panel, answers map[string]Answer) {
	g := panel.GridPos
	b := box{margin + float64(g.X)*across + gap, header + float64(g.Y)*down + gap, float64(g.W)*across - 2*gap,
		float64(g.H)*down - 2*gap}
	p.printf("<g><title>%s</title><rect class=\"panel\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"4\"/>\n",
		html.EscapeString(ptr.Deref(panel.Description, "")), b.x, b.y, b.w, b.h)
	p.printf("<text x=\"%g\" y=\"%g\">%s</text>\n", b.x+8, b.y+16,
		html.EscapeString(fit(ptr.Deref(panel.Title, ""), b.w-16)))
	p.content(box{b.x + 10, b.y + 26, b.w - 20, b.h - 34}, content(panel, answers))
	p.printf("</g>\n")
}

// content draws what a panel shows, or why it shows nothing.
func (p *picture) content(b box, c shown) {
	switch {
	case !c.recorded:
		p.note(b, "not recorded")
	case len(c.series) == 0:
		p.note(b, c.none)
	case c.panel.Type == "stat":
		p.numbers(b, c)
	case c.panel.Type == "table":
		p.table(b, c)
	case c.panel.Type == "bargauge":
		p.bars(b, c)
	case c.panel.Type == "state-timeline" || c.panel.Type == "status-history":
		p.cells(b, c)
	default:
		p.lines(b, c)
	}
}

// note is a text in the middle of an empty panel.
func (p *picture) note(b box, text string) {
	p.printf("<text class=\"soft\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n", b.x+b.w/2, b.y+b.h/2+4,
		html.EscapeString(fit(text, b.w)))
}

// fit shortens a text to a width.
func fit(text string, width float64) string { return phrase.Truncate(text, int(width/perLetter)) }
