// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
)

// legend explains one mark; draw draws the mark around a point.
type legend struct {
	text string
	draw func(p *picture, x, y int)
}

// drawEdges draws the edges of a lane: straight edges within the lane, other edges beside it.
func (p *picture) drawEdges(lane int) {
	x, colour := p.laneX[lane], lane%laneColours
	for _, e := range p.Lanes[lane].Edges {
		if e.Kind != Replaces || !p.isAdjacent(lane, e) {
			continue
		}
		from, to := p.y(e.From), p.y(e.To)
		up := 1 // the sign of the direction; y grows downwards
		if e.From < e.To {
			up = -1
		}
		p.printf("<path class=\"edge l%d\" d=\"M%d %dV%d\" marker-end=\"url(#a%d)\"/>\n", colour, x, from-up*glyph,
			to+up*(glyph+3), colour)
		p.drawRollbackMark(e, x, from-up*(glyph+4))
	}
	for _, t := range p.tracks[lane] {
		p.drawTrack(t, x, colour)
	}
}

// drawTrack draws a line beside a lane, with an arrow at each version that is the target of an edge and a plain end
// at other versions.
func (p *picture) drawTrack(t track, x, colour int) {
	side := x - laneWidth/2 - t.distance*trackWidth
	class := [...]string{Replaces: "edge", Skips: "edge skips", Ranges: "edge range"}[t.kind]
	top, bottom := t.span()
	p.printf("<path class=\"%s l%d\" d=\"M%d %dV%d\"/>\n", class, colour, side, p.y(bottom)-5, p.y(top)+5)
	for _, row := range t.rows {
		y := p.y(row)
		// Corners are rounded towards the middle of the line.
		turn := -5
		if row == top {
			turn = 5
		}
		arrow, end := "", x-glyph-1
		if slices.ContainsFunc(t.edges, func(e Edge) bool { return e.To == row }) {
			arrow, end = " marker-end=\"url(#a"+string(rune('0'+colour))+")\"", x-glyph-3
		}
		p.printf("<path class=\"%s l%d\" d=\"M%d %dQ%d %d %d %dH%d\"%s/>\n", class, colour, side, y+turn, side, y,
			side+5, y, end, arrow)
	}
	for _, e := range t.edges {
		if e.Kind == Replaces {
			p.drawRollbackMark(e, side, (p.y(e.From)+p.y(e.To))/2)
		}
	}
}

// drawRollbackMark marks an edge whose rollback is impossible or needs a backup.
func (p *picture) drawRollbackMark(e Edge, x, y int) {
	switch e.Back.Class {
	case bundles.RollbackOneWay:
		p.printf("<g><title>%s</title><rect class=\"fillbad\" x=\"%d\" y=\"%d\" width=\"14\" height=\"3\" "+
			"rx=\"1\"/></g>\n", escapeXML(p.describeRollback(e)), x-7, y-2)
	case bundles.RollbackNeedsBackup:
		p.printf("<g><title>%s</title><rect class=\"fillwarn\" x=\"%d\" y=\"%d\" width=\"5\" height=\"3\" "+
			"rx=\"1\"/><rect class=\"fillwarn\" x=\"%d\" y=\"%d\" width=\"5\" height=\"3\" rx=\"1\"/></g>\n",
			escapeXML(p.describeRollback(e)), x-7, y-2, x+2, y-2)
	}
}

func (p *picture) describeRollback(e Edge) string {
	n, _ := p.newRollbackNote(e.Back)
	return n.long
}

// drawNode draws the mark of a version in a lane. If several marks apply, it draws the first in the order of the cases.
func (p *picture) drawNode(r Row, lane int, place Place, y int) {
	x, colour := p.laneX[lane], lane%laneColours
	switch {
	case r.Folded > 1:
		p.drawFold(x, y, colour)
	case r.Block != nil:
		p.drawBlocked(x, y)
	case place.Role == Head:
		p.drawHead(x, y, colour)
		if r.Deprecation != "" { // a small mark of a deprecated version within the mark of the head
			p.printf("<path class=\"hole l%d\" d=\"M%d %dl4 4-4 4-4-4z\"/>\n", colour, x, y-4)
		}
	case place.Role == Gone:
		p.drawGone(x, y)
	case r.Deprecation != "":
		p.drawDeprecated(x, y, colour)
	case place.Role == Skipped:
		p.drawSkipped(x, y, colour)
	default:
		p.drawOffered(x, y, colour)
	}
}

func (p *picture) drawOffered(x, y, colour int) {
	p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"5.5\"/>\n", colour, x, y)
}

func (p *picture) drawSkipped(x, y, colour int) {
	p.printf("<circle class=\"hole l%d\" cx=\"%d\" cy=\"%d\" r=\"4.5\"/>\n", colour, x, y)
}

func (p *picture) drawGone(x, y int) {
	p.printf("<circle class=\"ghost quiet\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", x, y)
}

func (p *picture) drawHead(x, y, colour int) {
	p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"5.5\"/><circle class=\"ring l%d\" cx=\"%d\" cy=\"%d\" "+
		"r=\"9\"/>\n", colour, x, y, colour, x, y)
}

func (p *picture) drawDeprecated(x, y, colour int) {
	p.printf("<path class=\"hole l%d\" d=\"M%d %dl6.5 6.5-6.5 6.5-6.5-6.5z\"/>\n", colour, x, y-7)
}

func (p *picture) drawBlocked(x, y int) {
	p.printf("<rect class=\"fillbad\" x=\"%d\" y=\"%d\" width=\"13\" height=\"13\" rx=\"3\"/><path class=\"cross\" "+
		"d=\"M%d %dl6 6m0-6l-6 6\"/>\n", x-6, y-6, x-3, y-3)
}

func (p *picture) drawFold(x, y, colour int) {
	for _, dy := range []int{-6, 0, 6} {
		p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"2\"/>\n", colour, x, y+dy)
	}
}

// drawOutsideChannels draws a version that is in no channel.
func (p *picture) drawOutsideChannels(r Row, y int) {
	x := p.laneX[len(p.laneX)-1]
	if r.Block != nil {
		p.drawBlocked(x, y)
		return
	}
	p.drawGone(x, y)
}

// listLegends returns the legends of the marks that are in the picture.
func listLegends(g *Graph, tracks [][]track) []legend {
	hasRole := func(role Role) func(Row) bool {
		return func(r Row) bool {
			return r.Folded == 1 && slices.ContainsFunc(r.Places, func(p Place) bool { return p.Role == role })
		}
	}
	hasTrack := func(kind Kind) bool {
		return slices.ContainsFunc(slices.Concat(tracks...), func(t track) bool { return t.kind == kind })
	}
	hasRollback := func(class bundles.RollbackClass) bool {
		return slices.ContainsFunc(g.Lanes, func(l Lane) bool {
			return slices.ContainsFunc(l.Edges, func(e Edge) bool { return e.Back.Class == class })
		})
	}
	drawLine := func(class string) func(p *picture, x, y int) {
		return func(p *picture, x, y int) {
			p.printf("<path class=\"%s l0\" d=\"M%d %dH%d\" marker-end=\"url(#a0)\"/>\n", class, x-12, y, x+12)
		}
	}
	var out []legend
	add := func(isUsed bool, text string, draw func(p *picture, x, y int)) {
		if isUsed {
			out = append(out, legend{text, draw})
		}
	}
	hasRow := func(matches func(Row) bool) bool { return slices.ContainsFunc(g.Rows, matches) }
	add(hasRow(hasRole(Head)), "head", func(p *picture, x, y int) { p.drawHead(x, y, 0) })
	add(hasRow(hasRole(Offered)), "offered", func(p *picture, x, y int) { p.drawOffered(x, y, 0) })
	add(hasRow(func(r Row) bool { return r.Block == nil && r.Deprecation == "" && hasRole(Skipped)(r) }), "skipped",
		func(p *picture, x, y int) { p.drawSkipped(x, y, 0) })
	add(hasRow(func(r Row) bool { return r.Deprecation != "" && r.Block == nil }), "deprecated",
		func(p *picture, x, y int) { p.drawDeprecated(x, y, 0) })
	add(hasRow(func(r Row) bool { return r.Block != nil }), "blocked", (*picture).drawBlocked)
	add(hasRow(hasRole(Gone)) || hasRow(isOutsideChannels), "not in this channel", (*picture).drawGone)
	add(hasRow(func(r Row) bool { return r.Folded > 1 }), "plain versions, one after another",
		func(p *picture, x, y int) { p.drawFold(x, y, 0) })
	add(true, "replaces", drawLine("edge"))
	add(hasTrack(Skips), "skips", drawLine("edge skips"))
	add(hasTrack(Ranges), "skipRange, from the lowest version on", drawLine("edge range"))
	add(hasRollback(bundles.RollbackNeedsBackup), "rollback needs a backup", func(p *picture, x, y int) {
		p.drawRollbackMark(Edge{Back: bundles.Rollback{Class: bundles.RollbackNeedsBackup}}, x, y)
	})
	add(hasRollback(bundles.RollbackOneWay), "no rollback", func(p *picture, x, y int) {
		p.drawRollbackMark(Edge{Back: bundles.Rollback{Class: bundles.RollbackOneWay}}, x, y)
	})
	return out
}

func (p *picture) drawLegends() {
	for i, item := range p.legends {
		point := p.legendPoints[i]
		item.draw(p, point.x+12, point.y)
		p.drawText(point.x+30, point.y+4, "small", item.text)
	}
}
