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

	"github.com/bellwether-dev/bellwether/phrase"
)

// Measures of the picture, in pixels at its own size.
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
	maxNext    = 48 // columns
)

// style supports light and dark mode. Colour is never the only sign.
//
//go:embed style.css
var style string

// laneColours is how many colours lanes have; the next one is for versions in no channel.
const laneColours = 5

// SVG draws the graph. It needs no script and no font of its own, follows the viewer's colour scheme, and can be read
// at its own size; every version tells about itself in a tooltip.
func SVG(g *Graph) []byte {
	p := &picture{Graph: g, layout: newLayout(g)}
	p.page()
	p.header()
	for i := range g.Rows {
		p.band(i)
	}
	for l := range g.Lanes {
		p.edges(l)
	}
	for i := range g.Rows {
		p.row(i)
	}
	p.legend()
	p.printf("</svg>\n")
	return []byte(p.out.String())
}

// picture is an SVG under way.
type picture struct {
	*Graph
	layout
	out strings.Builder
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.out, format, args...) }

func (p *picture) text(x, y int, class, content string) {
	p.printf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, escape(content))
}

func (p *picture) page() {
	p.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"role=\"img\" aria-labelledby=\"t d\">\n",
		p.width, p.height, p.width, p.height)
	p.printf("<title id=\"t\">Upgrade graph of %s</title>\n<desc id=\"d\">%s</desc>\n<style>%s</style>\n",
		escape(p.Package), escape(p.Describe()), style)
	p.printf("<defs>\n")
	for l := range min(len(p.Lanes), laneColours) {
		p.printf("<marker id=\"a%d\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "+
			"markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"f%d\" d=\"M0 .5 8 4 0 7.5z\"/></marker>\n", l,
			l)
	}
	p.printf("</defs>\n<rect class=\"page\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", p.width, p.height)
}

func (p *picture) header() {
	p.text(margin, margin+14, "h1", p.Package)
	p.text(margin, margin+34, "soft", p.Summary())
	if p.Deprecation != "" {
		p.text(margin+textWidth(p.Package, 17, 0.6)+16, margin+14, "warn",
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
			escape(laneTitle(p.Graph, lane)), x+9, y-2, escape(name))
	}
	y := p.y(0) - rowHeight/2 - 8
	p.text(p.versionX, y, "col", "VERSION")
	if p.Clusters >= 0 {
		p.text(p.clustersX, y, "col", "CLUSTERS")
	}
	p.text(p.nextX, y, "col", "NEXT")
}

func laneTitle(g *Graph, lane Lane) string {
	text := "channel " + lane.Name + ", head " + g.version(lane.Head)
	if lane.Deprecation != "" {
		text += "; deprecated: " + phrase.OneLine(lane.Deprecation)
	}
	return text
}

func (p *picture) band(i int) {
	if i%2 == 0 {
		p.printf("<rect class=\"band\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", margin-12,
			p.y(i)-rowHeight/2, p.width-2*margin+24, rowHeight)
	}
}

func (p *picture) row(i int) {
	r := p.Rows[i]
	y := p.y(i)
	p.printf("<g><title>%s</title>\n", escape(p.tooltip(r)))
	homeless := true
	for l, place := range r.Places {
		if place.Role != Absent {
			homeless = false
			p.node(r, l, place, y)
		}
	}
	if homeless {
		p.homeless(r, y)
	}
	class := "mono"
	switch {
	case r.Folded > 1:
		class = "soft"
	case len(p.HeadOf(r)) > 0:
		class = "mono strong"
	case !r.Listed || len(p.skippedIn(r)) > 0:
		class = "mono soft"
	}
	p.text(p.versionX, y+4, class, p.label(r))
	p.clusters(r, y)
	if r.Folded == 1 {
		p.text(p.nextX, y+4, "soft", truncate(p.Next(r), maxNext))
	}
	p.pills(r, y)
	p.printf("</g>\n")
}

func (p *picture) tooltip(r Row) string {
	lines := []string{r.title()}
	if r.Folded == 1 {
		lines[0] += " (" + r.Bundle + ")"
		if next := p.Next(r); next != "" {
			lines = append(lines, "next: "+next)
		}
	}
	if p.Clusters >= 0 && r.Folded == 1 {
		lines = append(lines, phrase.Count(r.Clusters, "cluster"))
	}
	for _, n := range p.notes(r) {
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

func (p *picture) clusters(r Row, y int) {
	if p.Clusters <= 0 || r.Clusters == 0 {
		return
	}
	class := "bar"
	if r.Stranded {
		class = "bar fillbad"
	}
	width := max(2, barWidth*r.Clusters/p.most)
	number := fmt.Sprint(r.Clusters)
	p.printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"8\" rx=\"2\"/>\n", class,
		p.clustersX+p.numberWidth+6, y-4, width)
	p.printf("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", p.clustersX+p.numberWidth, y+4, number)
}

func (p *picture) pills(r Row, y int) {
	x := p.notesX
	for _, n := range p.notes(r) {
		w := pillWidth(n)
		p.printf("<g><title>%s</title><rect class=\"pill %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\" "+
			"rx=\"9\"/><text class=\"small %s\" x=\"%d\" y=\"%d\">%s</text></g>\n",
			escape(n.long), n.tone, x, y-9, w, n.tone, x+9, y+4, escape(pillText(n)))
		x += w + 6
	}
}

// maxPill is how many runes of a note are drawn; the rest is in its tooltip.
const maxPill = 64

// pillText gives the reason of what is wrong as far as there is room.
func pillText(n note) string {
	if n.short == "blocked" || n.short == "deprecated" || n.tone == other {
		return truncate(n.long, maxPill)
	}
	return truncate(n.short, maxPill)
}

func pillWidth(n note) int { return textWidth(pillText(n), 11, 0.545) + 18 }

// textWidth estimates; em is the mean width of a character of the font.
func textWidth(s string, size, em float64) int {
	return int(float64(runewidth.StringWidth(s))*size*em) + 1
}

func truncate(s string, columns int) string { return runewidth.Truncate(s, columns, "…") }

// escape makes a text fit for XML, which allows neither markup nor most control characters.
func escape(s string) string {
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
