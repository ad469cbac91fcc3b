// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw draws a dashboard as SVG: its rows, its variables, and its panels with the results of their queries. The
// results are recorded in a run of the testbed, in the folder data. The package is pure. The pictures are for the
// documentation; they differ from Grafana in details.
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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	// cellWidth and cellHeight are the size of a cell in Grafana's grid.
	cellWidth, cellHeight = 40.0, 17.0
	margin                = 16.0
	header                = 64.0
	gap                   = 3.0
	// letterWidth is the average width of a letter in a title.
	letterWidth = 6.6
)

//go:embed style.html
var style string

// SVG returns the picture of a dashboard with data. The picture has a light and a dark style,
// according to the reader's settings.
func SVG(d dashboards.Dashboard, data Data) []byte {
	bottom := uint32(0)
	for _, p := range d.Panels {
		if p.Panel != nil && p.Panel.GridPos != nil {
			bottom = max(bottom, p.Panel.GridPos.Y+p.Panel.GridPos.H)
		}
	}
	width, height := 24*cellWidth+2*margin, header+float64(bottom)*cellHeight+margin
	title := ptr.Deref(d.Title, "")
	pic := &picture{minutes: data.Minutes}
	pic.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" aria-labelledby=\"title "+
		"desc\">\n", width, height)
	pic.printf("<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n%s", html.EscapeString(title),
		html.EscapeString(ptr.Deref(d.Description, "")), style)
	pic.printf("<rect class=\"page\" width=\"%g\" height=\"%g\"/>\n", width, height)
	pic.printf("<text class=\"h1\" x=\"%g\" y=\"26\">%s</text>\n", margin, html.EscapeString(title))
	pic.drawVariables(d.Templating.List)
	for _, p := range d.Panels {
		switch {
		case p.RowPanel != nil:
			pic.printf("<text class=\"row\" x=\"%g\" y=\"%g\">▾ %s</text>\n", margin,
				header+float64(p.RowPanel.GridPos.Y)*cellHeight+13, html.EscapeString(ptr.Deref(p.RowPanel.Title, "")))
		case p.Panel != nil && p.Panel.GridPos != nil:
			pic.drawPanel(p.Panel, data.Queries[ptr.Deref(p.Panel.Title, "")])
		}
	}
	pic.printf("</svg>\n")
	return []byte(pic.String())
}

// picture is the SVG text of a dashboard.
type picture struct {
	strings.Builder
	minutes float64
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// drawVariables draws the variables of a dashboard below its title.
func (p *picture) drawVariables(all []dashboard.VariableModel) {
	x := margin
	for _, v := range all {
		text := ptr.Deref(v.Label, v.Name) + " ▾"
		w := float64(len([]rune(text)))*letterWidth + 16
		p.printf("<rect class=\"pill\" x=\"%g\" y=\"37\" width=\"%.0f\" height=\"20\" rx=\"4\"/><text class=\"soft\" "+
			"x=\"%g\" y=\"51\">%s</text>\n", x, w, x+8, html.EscapeString(text))
		x += math.Round(w) + 8
	}
}

// box is the area for the content of a panel.
type box struct{ x, y, w, h float64 }

// drawPanel draws the frame, the title and the content of a panel. answers has the
// results by the letter of the query.
func (p *picture) drawPanel(panel *dashboard.Panel, answers map[string]Answer) {
	g := panel.GridPos
	b := box{margin + float64(g.X)*cellWidth + gap, header + float64(g.Y)*cellHeight + gap,
		float64(g.W)*cellWidth - 2*gap, float64(g.H)*cellHeight - 2*gap}
	p.printf("<g><title>%s</title><rect class=\"panel\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"4\"/>\n",
		html.EscapeString(ptr.Deref(panel.Description, "")), b.x, b.y, b.w, b.h)
	p.printf("<text x=\"%g\" y=\"%g\">%s</text>\n", b.x+8, b.y+16,
		html.EscapeString(truncate(ptr.Deref(panel.Title, ""), b.w-16)))
	p.drawContent(box{b.x + 10, b.y + 26, b.w - 20, b.h - 34}, newContent(panel, answers))
	p.printf("</g>\n")
}

// drawContent draws the data of a panel, or a text if there is no data.
func (p *picture) drawContent(b box, c panelContent) {
	switch {
	case !c.recorded:
		p.drawNote(b, "not recorded")
	case len(c.series) == 0:
		p.drawNote(b, c.noData)
	case c.panel.Type == "stat":
		p.drawNumbers(b, c)
	case c.panel.Type == "table":
		p.drawTable(b, c)
	case c.panel.Type == "bargauge":
		p.drawBars(b, c)
	case c.panel.Type == "state-timeline" || c.panel.Type == "status-history":
		p.drawCells(b, c)
	default:
		p.drawLines(b, c)
	}
}

// drawNote draws a text in the middle of an empty panel.
func (p *picture) drawNote(b box, text string) {
	p.printf("<text class=\"soft\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n", b.x+b.w/2, b.y+b.h/2+4,
		html.EscapeString(truncate(text, b.w)))
}

// truncate shortens a text to a width.
func truncate(text string, width float64) string {
	return phrase.Truncate(text, int(width/letterWidth))
}
