// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Sizes in the picture, in pixels without scaling.
const (
	margin     = 24
	rowHeight  = 28
	laneWidth  = 26
	trackWidth = 9
	labelLine  = 20
	headHeight = 62
	glyph      = 6
	barWidth   = 72
	columnGap  = 22
	maxNext    = 48 // columns of text
)

// style supports light and dark mode. Every colour has a second sign, such as a shape or a text.
//
//go:embed style.css
var style string

// laneColours is the number of colours of lanes; the next colour is for versions in no channel.
const laneColours = 5

// SVG draws the graph. The image needs no script and no special font, follows the viewer's colour scheme, and is
// readable without scaling. Every version has a tooltip.
func SVG(g *Graph) []byte {
	p := &picture{Graph: g, layout: newLayout(g)}
	p.drawPage()
	p.drawHeader()
	for i := range g.Rows {
		p.drawBand(i)
	}
	for l := range g.Lanes {
		p.drawEdges(l)
	}
	for i := range g.Rows {
		p.drawRow(i)
	}
	p.drawLegends()
	p.printf("</svg>\n")
	return []byte(p.out.String())
}

// picture is an SVG that is being written.
type picture struct {
	*Graph
	layout
	out strings.Builder
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.out, format, args...) }

func (p *picture) drawText(x, y int, class, content string) {
	p.printf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, escapeXML(content))
}

// drawPage begins the SVG: its title, description, style, arrows and background.
func (p *picture) drawPage() {
	p.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"role=\"img\" aria-labelledby=\"t d\">\n",
		p.width, p.height, p.width, p.height)
	p.printf("<title id=\"t\">Upgrade graph of %s</title>\n<desc id=\"d\">%s</desc>\n<style>%s</style>\n",
		escapeXML(p.Package), escapeXML(p.Describe()), style)
	p.printf("<defs>\n")
	for l := range min(len(p.Lanes), laneColours) {
		p.printf("<marker id=\"a%d\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "+
			"markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"f%d\" d=\"M0 .5 8 4 0 7.5z\"/></marker>\n", l,
			l)
	}
	p.printf("</defs>\n<rect class=\"page\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", p.width, p.height)
}

// drawHeader draws the title, the names of the channels, and the titles of the columns.
func (p *picture) drawHeader() {
	p.drawText(margin, margin+14, "h1", p.Package)
	p.drawText(margin, margin+34, "soft", p.Summary())
	if p.Deprecation != "" {
		p.drawText(margin+estimateWidth(p.Package, 17, 0.6)+16, margin+14, "warn",
			"deprecated: "+truncate(phrase.OneLine(p.Deprecation), 80))
	}
	for l, lane := range p.Lanes {
		x, y := p.laneX[l], p.labelY(l)
		name := lane.Name
		if lane.Default && len(p.Lanes) > 1 {
			name += " (default)"
		}
		if lane.Deprecation != "" {
			name += ", deprecated"
		}
		p.printf("<path class=\"leader l%d\" d=\"M%d %dV%d\"/>\n", l%laneColours, x, y-6, p.y(0)-10)
		p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"3\"/>\n", l%laneColours, x, y-6)
		p.printf("<g><title>%s</title><text x=\"%d\" y=\"%d\" class=\"strong\">%s</text></g>\n",
			escapeXML(formatLaneTitle(p.Graph, lane)), x+9, y-2, escapeXML(name))
	}
	y := p.y(0) - rowHeight/2 - 8
	p.drawText(p.versionX, y, "col", "VERSION")
	if p.Clusters >= 0 {
		p.drawText(p.clustersX, y, "col", "CLUSTERS")
	}
	p.drawText(p.nextX, y, "col", "NEXT")
}

func formatLaneTitle(g *Graph, lane Lane) string {
	text := "channel " + lane.Name + ", head " + g.formatVersion(lane.Head)
	if lane.Deprecation != "" {
		text += "; deprecated: " + phrase.OneLine(lane.Deprecation)
	}
	return text
}

func (p *picture) drawBand(i int) {
	if i%2 == 0 {
		p.printf("<rect class=\"band\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", margin-12,
			p.y(i)-rowHeight/2, p.width-2*margin+24, rowHeight)
	}
}

// drawRow draws a version: its marks in the lanes, its columns and its notes.
func (p *picture) drawRow(i int) {
	r := p.Rows[i]
	y := p.y(i)
	p.printf("<g><title>%s</title>\n", escapeXML(p.buildTooltip(r)))
	isOutside := true
	for l, place := range r.Places {
		if place.Role != Absent {
			isOutside = false
			p.drawNode(r, l, place, y)
		}
	}
	if isOutside {
		p.drawOutsideChannels(r, y)
	}
	class := "mono"
	switch {
	case r.Folded > 1:
		class = "soft"
	case len(p.HeadOf(r)) > 0:
		class = "mono strong"
	case !r.Listed || len(p.listSkippingLanes(r)) > 0:
		class = "mono soft"
	}
	p.drawText(p.versionX, y+4, class, p.formatLabel(r))
	p.drawClusters(r, y)
	if r.Folded == 1 {
		p.drawText(p.nextX, y+4, "soft", truncate(p.Next(r), maxNext))
	}
	p.drawPills(r, y)
	p.printf("</g>\n")
}

// buildTooltip returns the full information about a row, with a line for each fact. A row of folded versions has only
// its title and ranges.
func (p *picture) buildTooltip(r Row) string {
	lines := []string{r.formatTitle()}
	if r.Folded == 1 {
		lines[0] += " (" + r.Bundle + ")"
		if next := p.Next(r); next != "" {
			lines = append(lines, "next: "+next)
		}
	}
	if p.Clusters >= 0 && r.Folded == 1 {
		lines = append(lines, phrase.Count(r.Clusters, "cluster"))
	}
	for _, n := range p.listNotes(r) {
		lines = append(lines, n.long)
	}
	for l, lane := range p.Lanes {
		for _, e := range lane.Edges {
			if p.Rows[e.To].Bundle == r.Bundle && e.Kind == Ranges {
				lines = append(lines, "upgrades in "+p.Lanes[l].Name+" from any in "+e.Range)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// drawClusters draws the number of clusters that run a version, and a bar of proportional length.
func (p *picture) drawClusters(r Row, y int) {
	if p.Clusters <= 0 || r.Clusters == 0 {
		return
	}
	class := "bar"
	if r.Stranded {
		class = "bar fillbad"
	}
	width := max(2, barWidth*r.Clusters/p.maxClusters)
	number := fmt.Sprint(r.Clusters)
	p.printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"8\" rx=\"2\"/>\n", class,
		p.clustersX+p.numberWidth+6, y-4, width)
	p.printf("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", p.clustersX+p.numberWidth, y+4, number)
}

// drawPills draws the notes of a version, one beside another.
func (p *picture) drawPills(r Row, y int) {
	x := p.notesX
	for _, n := range p.listNotes(r) {
		w := measurePill(n)
		p.printf("<g><title>%s</title><rect class=\"pill %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\" "+
			"rx=\"9\"/><text class=\"small %s\" x=\"%d\" y=\"%d\">%s</text></g>\n",
			escapeXML(n.long), n.tone, x, y-9, w, n.tone, x+9, y+4, escapeXML(formatPill(n)))
		x += w + 6
	}
}

// maxPill is the maximal number of columns of a note in the picture; its tooltip has the full text.
const maxPill = 64

// formatPill returns the text of a note for the picture. For blocks, deprecations and differences it includes
// the reason.
func formatPill(n note) string {
	if n.short == "blocked" || n.short == "deprecated" || n.tone == toneOther {
		return truncate(n.long, maxPill)
	}
	return truncate(n.short, maxPill)
}

func measurePill(n note) int { return estimateWidth(formatPill(n), 11, 0.545) + 18 }

// estimateWidth estimates the width of a text in pixels; em is the mean width of a character of the font.
func estimateWidth(s string, size, em float64) int {
	return int(float64(runewidth.StringWidth(s))*size*em) + 1
}

func truncate(s string, columns int) string { return runewidth.Truncate(s, columns, "…") }

// escapeXML escapes markup, and replaces control characters that XML does not allow.
func escapeXML(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			out.WriteString("&amp;")
		case r == '<':
			out.WriteString("&lt;")
		case r == '>':
			out.WriteString("&gt;")
		case r == '"':
			out.WriteString("&quot;")
		case r == '\n':
			out.WriteRune(r)
		case unicode.IsControl(r), r == utf8.RuneError, r == 0xFFFE, r == 0xFFFF:
			out.WriteRune('\uFFFD')
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
