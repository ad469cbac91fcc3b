// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
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

// style holds for light and dark, as the viewer likes it. Nothing is told by colour alone.
const style = `
    text { font-family: ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; font-size: 12.5px; fill: #1f2328; }
    .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: 13px; }
    .h1 { font-size: 17px; font-weight: 600; } .strong { font-weight: 600; } .col { font-size: 11px; letter-spacing: .04em; }
    .soft, .col, .small { fill: #59636e; } .small { font-size: 11px; }
    .page { fill: #ffffff; } .band { fill: #f6f8fa; } .bar { fill: #b6c7db; } .bar.bad { fill: #f1aeb0; }
    .edge { fill: none; stroke-width: 1.8; } .skips { stroke-dasharray: 5 3; stroke-width: 1.5; } .range { stroke-dasharray: .1 4; stroke-linecap: round; stroke-width: 2.2; }
    .leader { stroke-width: 1; opacity: .45; fill: none; }
    .ring { fill: none; stroke-width: 1.6; } .hole { fill: #ffffff; stroke-width: 1.8; } .ghost { fill: #ffffff; stroke-width: 1.4; stroke-dasharray: 2 2; }
    .cross { stroke: #ffffff; stroke-width: 1.8; stroke-linecap: round; }
    .pill { fill: none; stroke-width: 1; }
    .good { stroke: #1a7f37; } text.good { fill: #1a7f37; stroke: none; } .warn { stroke: #9a6700; } text.warn { fill: #7d4e00; stroke: none; }
    .bad { stroke: #cf222e; } text.bad { fill: #cf222e; stroke: none; } .fillbad { fill: #cf222e; stroke: none; } .fillwarn { fill: #bf8700; stroke: none; }
    .quiet { stroke: #818b98; } text.quiet { fill: #59636e; stroke: none; } .other { stroke: #8250df; } text.other { fill: #8250df; stroke: none; }
    .l0 { stroke: #0969da; } .f0 { fill: #0969da; } .l1 { stroke: #8250df; } .f1 { fill: #8250df; } .l2 { stroke: #1b7c83; } .f2 { fill: #1b7c83; }
    .l3 { stroke: #bf3989; } .f3 { fill: #bf3989; } .l4 { stroke: #7a6a00; } .f4 { fill: #7a6a00; } .l5 { stroke: #818b98; } .f5 { fill: #818b98; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; } .soft, .col, .small { fill: #9198a1; }
      .page { fill: #0d1117; } .band { fill: #151b23; } .bar { fill: #33475f; } .bar.bad { fill: #7d2a30; }
      .hole, .ghost { fill: #0d1117; } .cross { stroke: #0d1117; }
      .good { stroke: #3fb950; } text.good { fill: #3fb950; } .warn { stroke: #d29922; } text.warn { fill: #d29922; }
      .bad { stroke: #f85149; } text.bad { fill: #f85149; } .fillbad { fill: #f85149; } .fillwarn { fill: #d29922; }
      .quiet { stroke: #656c76; } text.quiet { fill: #9198a1; } .other { stroke: #ab7df8; } text.other { fill: #ab7df8; }
      .l0 { stroke: #4493f8; } .f0 { fill: #4493f8; } .l1 { stroke: #ab7df8; } .f1 { fill: #ab7df8; } .l2 { stroke: #39c5cf; } .f2 { fill: #39c5cf; }
      .l3 { stroke: #db61a2; } .f3 { fill: #db61a2; } .l4 { stroke: #d4c04a; } .f4 { fill: #d4c04a; } .l5 { stroke: #9198a1; } .f5 { fill: #9198a1; }
    }
`

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
	text := "channel " + lane.Name + " leads to " + g.version(lane.Head)
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
