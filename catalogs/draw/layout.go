// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
)

// layout is where things go, in pixels.
type layout struct {
	width, height int
	// laneX is the middle of each lane; the last one is of versions in no channel, where there are any.
	laneX []int
	// tracks are the lines beside each lane.
	tracks                             [][]track
	top                                int
	versionX, clustersX, nextX, notesX int
	numberWidth, most                  int
	legends                            []legend
	legendAt                           []point
}

type point struct{ x, y int }

// track is a line beside a lane, from several rows to one.
type track struct {
	kind Kind
	to   int
	from []int
	// at is its distance from the lane: 0 is nearest.
	at int
	// edges are those that it represents.
	edges []Edge
}

func (t track) span() (top, bottom int) {
	return min(t.to, slices.Min(t.from)), max(t.to, slices.Max(t.from))
}

// maxTracks is how many lines there may be beside a lane. What is more shares the outermost.
const maxTracks = 8

func newLayout(g *Graph) layout {
	p := layout{top: headHeight + margin + labelLine*max(1, len(g.Lanes)) + 18, most: 1}
	x := margin
	for l := range g.Lanes {
		tracks := laneTracks(g, l)
		p.tracks = append(p.tracks, tracks)
		outer := 0
		for _, t := range tracks {
			outer = max(outer, t.at+1)
		}
		x += outer*trackWidth + laneWidth/2
		p.laneX = append(p.laneX, x)
		x += laneWidth/2 + 6
	}
	if slices.ContainsFunc(g.Rows, homeless) {
		p.laneX = append(p.laneX, x+laneWidth/2)
		x += laneWidth
	}
	p.columns(g, x+10)
	return p
}

// homeless reports whether a version is in none of the shown channels.
func homeless(r Row) bool {
	return !slices.ContainsFunc(r.Places, func(p Place) bool { return p.Role != Absent })
}

func (p *layout) columns(g *Graph, x int) {
	p.versionX = x
	versions, next, notes := 60, 40, 0
	labels := 0
	for _, r := range g.Rows {
		versions = max(versions, textWidth(p.label(r), 13, 0.61))
		if r.Folded == 1 {
			next = max(next, textWidth(truncate(g.Next(r), maxNext), 12.5, 0.55))
		}
		row := 0
		for _, n := range g.notes(r) {
			row += pillWidth(n) + 6
		}
		notes = max(notes, row)
		p.most = max(p.most, r.Clusters)
	}
	p.clustersX = p.versionX + versions + columnGap
	p.nextX = p.clustersX
	if g.Clusters >= 0 {
		p.numberWidth = textWidth(fmt.Sprint(p.most), 12.5, 0.6)
		p.nextX += max(p.numberWidth+6+barWidth, 66) + columnGap
	}
	p.notesX = p.nextX + next + columnGap
	for l, lane := range g.Lanes {
		labels = max(labels, p.laneX[l]+textWidth(lane.Name+" (default), deprecated", 12.5, 0.6))
	}
	summary := margin + textWidth(g.Summary(), 12.5, 0.56)
	p.width = max(p.notesX+notes, labels, summary, 460) + margin
	p.legends = legends(g, p.tracks)
	p.flow(p.y(len(g.Rows)) + 10)
}

// flow gives each legend its place, line by line, and the picture its height.
func (p *layout) flow(y int) {
	x := margin
	for _, item := range p.legends {
		w := 30 + textWidth(item.text, 11, 0.55) + 16
		if x > margin && x+w > p.width-margin {
			x, y = margin, y+20
		}
		p.legendAt = append(p.legendAt, point{x, y})
		x += w
	}
	p.height = y + margin
}

// y is the middle of a row.
func (p *layout) y(row int) int { return p.top + row*rowHeight + rowHeight/2 }

// labelY is the lower end of a channel's name.
func (p *layout) labelY(lane int) int { return headHeight + margin + labelLine*lane + 8 }

func (p *layout) label(r Row) string {
	if r.Folded > 1 {
		return fmt.Sprintf("%d more, down to %s", r.Folded, r.Lowest)
	}
	return truncate(r.Version, 40)
}

// laneTracks bundles the edges that are not straight: skips by what they lead to, ranges by where they begin.
func laneTracks(g *Graph, lane int) []track {
	var out []track
	bundle := func(e Edge, fits func(t track) bool) {
		if i := slices.IndexFunc(out, fits); i >= 0 {
			out[i].edges = append(out[i].edges, e)
			return
		}
		out = append(out, track{kind: e.Kind, edges: []Edge{e}})
	}
	for _, e := range g.Lanes[lane].Edges {
		switch {
		case e.Kind == Replaces && g.adjacent(lane, e):
		case e.Kind == Replaces:
			bundle(e, func(track) bool { return false })
		case e.Kind == Skips:
			bundle(e, func(t track) bool { return t.kind == Skips && t.edges[0].To == e.To })
		default:
			bundle(e, func(t track) bool { return t.kind == Ranges && t.edges[0].From == e.From })
		}
	}
	for i := range out {
		out[i].to = out[i].edges[0].To
		for _, e := range out[i].edges {
			out[i].to = min(out[i].to, e.To)
			out[i].from = append(out[i].from, e.From, e.To)
		}
		out[i].from = slices.Compact(slices.Sorted(slices.Values(out[i].from)))
	}
	place(out)
	return out
}

// place gives each track the nearest place in which nothing else is, the short ones first.
func place(tracks []track) {
	slices.SortStableFunc(tracks, func(a, b track) int {
		aTop, aBottom := a.span()
		bTop, bBottom := b.span()
		return cmp.Or(cmp.Compare(aBottom-aTop, bBottom-bTop), cmp.Compare(aTop, bTop), cmp.Compare(a.kind, b.kind))
	})
	for i := range tracks {
		top, bottom := tracks[i].span()
		taken := map[int]bool{}
		for _, other := range tracks[:i] {
			if t, b := other.span(); t <= bottom && top <= b {
				taken[other.at] = true
			}
		}
		for tracks[i].at < maxTracks-1 && taken[tracks[i].at] {
			tracks[i].at++
		}
	}
}
