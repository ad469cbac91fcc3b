// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"slices"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// legend explains one mark; draw draws it around a point.
type legend struct {
	text string
	draw func(p *picture, x, y int)
}

// edges draws a lane's edges: straight ones within it, the others beside it.
func (p *picture) edges(l int) {
	x, colour := p.laneX[l], l%laneColours
	for _, e := range p.Lanes[l].Edges {
		if e.Kind != Replaces || !p.adjacent(l, e) {
			continue
		}
		from, to := p.y(e.From), p.y(e.To)
		up := 1
		if e.From < e.To {
			up = -1
		}
		p.printf("<path class=\"edge l%d\" d=\"M%d %dV%d\" marker-end=\"url(#a%d)\"/>\n", colour, x, from-up*glyph,
			to+up*(glyph+3), colour)
		p.oneWay(e, x, from-up*(glyph+4))
	}
	for _, t := range p.tracks[l] {
		p.track(t, x, colour)
	}
}

// track draws a line beside a lane, with an arrow at each version that it leads to and a plain end at the others.
func (p *picture) track(t track, x, colour int) {
	side := x - laneWidth/2 - t.at*trackWidth
	class := [...]string{Replaces: "edge", Skips: "edge skips", Ranges: "edge range"}[t.kind]
	top, bottom := t.span()
	p.printf("<path class=\"%s l%d\" d=\"M%d %dV%d\"/>\n", class, colour, side, p.y(bottom)-5, p.y(top)+5)
	for _, row := range t.from {
		y := p.y(row)
		// Corners are round: towards the line's middle.
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
			p.oneWay(e, side, (p.y(e.From)+p.y(e.To))/2)
		}
	}
}

// oneWay marks an edge that cannot simply be taken back.
func (p *picture) oneWay(e Edge, x, y int) {
	switch e.Back.Class {
	case registryv1.RollbackOneWay:
		p.printf("<g><title>%s</title><rect class=\"fillbad\" x=\"%d\" y=\"%d\" width=\"14\" height=\"3\" "+
			"rx=\"1\"/></g>\n", escape(p.backTitle(e)), x-7, y-2)
	case registryv1.RollbackNeedsBackup:
		p.printf("<g><title>%s</title><rect class=\"fillwarn\" x=\"%d\" y=\"%d\" width=\"5\" height=\"3\" "+
			"rx=\"1\"/><rect class=\"fillwarn\" x=\"%d\" y=\"%d\" width=\"5\" height=\"3\" rx=\"1\"/></g>\n",
			escape(p.backTitle(e)), x-7, y-2, x+2, y-2)
	}
}

func (p *picture) backTitle(e Edge) string {
	n, _ := p.back(e.Back)
	return n.long
}

// node draws a version's mark in a lane.
func (p *picture) node(r Row, lane int, place Place, y int) {
	x, colour := p.laneX[lane], lane%laneColours
	switch {
	case r.Folded > 1:
		p.fold(x, y, colour)
	case r.Block != nil:
		p.blocked(x, y)
	case place.Role == Head:
		p.head(x, y, colour)
		if r.Deprecation != "" {
			p.printf("<path class=\"hole l%d\" d=\"M%d %dl4 4-4 4-4-4z\"/>\n", colour, x, y-4)
		}
	case place.Role == Gone:
		p.gone(x, y)
	case r.Deprecation != "":
		p.deprecated(x, y, colour)
	case place.Role == Skipped:
		p.skipped(x, y, colour)
	default:
		p.offered(x, y, colour)
	}
}

func (p *picture) offered(x, y, colour int) {
	p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"5.5\"/>\n", colour, x, y)
}

func (p *picture) skipped(x, y, colour int) {
	p.printf("<circle class=\"hole l%d\" cx=\"%d\" cy=\"%d\" r=\"4.5\"/>\n", colour, x, y)
}

func (p *picture) gone(x, y int) {
	p.printf("<circle class=\"ghost quiet\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", x, y)
}

func (p *picture) head(x, y, colour int) {
	p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"5.5\"/><circle class=\"ring l%d\" cx=\"%d\" cy=\"%d\" "+
		"r=\"9\"/>\n", colour, x, y, colour, x, y)
}

func (p *picture) deprecated(x, y, colour int) {
	p.printf("<path class=\"hole l%d\" d=\"M%d %dl6.5 6.5-6.5 6.5-6.5-6.5z\"/>\n", colour, x, y-7)
}

func (p *picture) blocked(x, y int) {
	p.printf("<rect class=\"fillbad\" x=\"%d\" y=\"%d\" width=\"13\" height=\"13\" rx=\"3\"/><path class=\"cross\" "+
		"d=\"M%d %dl6 6m0-6l-6 6\"/>\n", x-6, y-6, x-3, y-3)
}

func (p *picture) fold(x, y, colour int) {
	for _, dy := range []int{-6, 0, 6} {
		p.printf("<circle class=\"f%d\" cx=\"%d\" cy=\"%d\" r=\"2\"/>\n", colour, x, y+dy)
	}
}

// homeless draws a version that is in no channel.
func (p *picture) homeless(r Row, y int) {
	x := p.laneX[len(p.laneX)-1]
	if r.Block != nil {
		p.blocked(x, y)
		return
	}
	p.gone(x, y)
}

// legends explain the marks that are in the picture, and no others.
func legends(g *Graph, tracks [][]track) []legend {
	at := func(role Role) func(Row) bool {
		return func(r Row) bool {
			return r.Folded == 1 && slices.ContainsFunc(r.Places, func(p Place) bool { return p.Role == role })
		}
	}
	beside := func(kind Kind) bool {
		return slices.ContainsFunc(slices.Concat(tracks...), func(t track) bool { return t.kind == kind })
	}
	back := func(class registryv1.RollbackClass) bool {
		return slices.ContainsFunc(g.Lanes, func(l Lane) bool {
			return slices.ContainsFunc(l.Edges, func(e Edge) bool { return e.Back.Class == class })
		})
	}
	line := func(class string) func(p *picture, x, y int) {
		return func(p *picture, x, y int) {
			p.printf("<path class=\"%s l0\" d=\"M%d %dH%d\" marker-end=\"url(#a0)\"/>\n", class, x-12, y, x+12)
		}
	}
	var out []legend
	add := func(used bool, text string, draw func(p *picture, x, y int)) {
		if used {
			out = append(out, legend{text, draw})
		}
	}
	has := func(fits func(Row) bool) bool { return slices.ContainsFunc(g.Rows, fits) }
	add(has(at(Head)), "head", func(p *picture, x, y int) { p.head(x, y, 0) })
	add(has(at(Offered)), "offered", func(p *picture, x, y int) { p.offered(x, y, 0) })
	add(has(func(r Row) bool { return r.Block == nil && r.Deprecation == "" && at(Skipped)(r) }), "skipped",
		func(p *picture, x, y int) { p.skipped(x, y, 0) })
	add(has(func(r Row) bool { return r.Deprecation != "" && r.Block == nil }), "deprecated",
		func(p *picture, x, y int) { p.deprecated(x, y, 0) })
	add(has(func(r Row) bool { return r.Block != nil }), "blocked", (*picture).blocked)
	add(has(at(Gone)) || has(homeless), "not in this channel", (*picture).gone)
	add(has(func(r Row) bool { return r.Folded > 1 }), "plain versions, one after another",
		func(p *picture, x, y int) { p.fold(x, y, 0) })
	add(true, "replaces", line("edge"))
	add(beside(Skips), "skips", line("edge skips"))
	add(beside(Ranges), "skipRange, from the lowest version on", line("edge range"))
	add(back(registryv1.RollbackNeedsBackup), "rollback needs a backup", func(p *picture, x, y int) {
		p.oneWay(Edge{Back: registryv1.Rollback{Class: registryv1.RollbackNeedsBackup}}, x, y)
	})
	add(back(registryv1.RollbackOneWay), "no rollback", func(p *picture, x, y int) {
		p.oneWay(Edge{Back: registryv1.Rollback{Class: registryv1.RollbackOneWay}}, x, y)
	})
	return out
}

func (p *picture) legend() {
	for i, item := range p.legends {
		at := p.legendAt[i]
		item.draw(p, at.x+12, at.y)
		p.text(at.x+30, at.y+4, "small", item.text)
	}
}
