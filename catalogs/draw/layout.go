// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
)

// layout has the positions of all parts of the picture, in pixels.
type layout struct {
	width, height int
	// laneX is the middle of each lane. If versions are in no channel, they have a further lane at the end.
	laneX []int
	// tracks are the lines beside each lane.
	tracks                             [][]track
	top                                int
	versionX, clustersX, nextX, notesX int
	numberWidth, maxClusters           int
	legends                            []legend
	legendPoints                       []point
}

type point struct{ x, y int }

// track is a vertical line beside a lane, which joins several rows.
type track struct {
	kind Kind
	// target is the highest target of the edges. rows are all rows that the line joins, the highest version first.
	target int
	rows   []int
	// distance is the distance from the lane: 0 is the nearest.
	distance int
	// edges are the edges that the line represents.
	edges []Edge
}

// span returns the highest and the lowest row of the line.
func (t track) span() (top, bottom int) {
	return min(t.target, slices.Min(t.rows)), max(t.target, slices.Max(t.rows))
}

// maxTracks is the maximal number of lines beside a lane. Further lines share the outermost place.
const maxTracks = 8

// newLayout computes the positions of all parts from the rows, lanes and edges of the graph, and from estimated widths
// of texts.
func newLayout(g *Graph) layout {
	p := layout{top: headHeight + margin + labelLine*max(1, len(g.Lanes)) + 18, maxClusters: 1}
	x := margin
	for l := range g.Lanes {
		tracks := buildTracks(g, l)
		p.tracks = append(p.tracks, tracks)
		outer := 0
		for _, t := range tracks {
			outer = max(outer, t.distance+1)
		}
		x += outer*trackWidth + laneWidth/2
		p.laneX = append(p.laneX, x)
		x += laneWidth/2 + 6
	}
	if slices.ContainsFunc(g.Rows, isOutsideChannels) {
		p.laneX = append(p.laneX, x+laneWidth/2)
		x += laneWidth
	}
	p.placeColumns(g, x+10)
	return p
}

// isOutsideChannels reports whether a version is in none of the shown channels.
func isOutsideChannels(r Row) bool {
	return !slices.ContainsFunc(r.Places, func(p Place) bool { return p.Role != Absent })
}

// placeColumns sets the positions of the columns, beginning at x, and the size of the picture.
func (p *layout) placeColumns(g *Graph, x int) {
	p.versionX = x
	versions, next, notes := 60, 40, 0
	labels := 0
	for _, r := range g.Rows {
		versions = max(versions, estimateWidth(p.formatLabel(r), 13, 0.61))
		if r.Folded == 1 {
			next = max(next, estimateWidth(truncate(g.Next(r), maxNext), 12.5, 0.55))
		}
		row := 0
		for _, n := range g.listNotes(r) {
			row += measurePill(n) + 6
		}
		notes = max(notes, row)
		p.maxClusters = max(p.maxClusters, r.Clusters)
	}
	p.clustersX = p.versionX + versions + columnGap
	p.nextX = p.clustersX
	if g.Clusters >= 0 {
		p.numberWidth = estimateWidth(fmt.Sprint(p.maxClusters), 12.5, 0.6)
		p.nextX += max(p.numberWidth+6+barWidth, 66) + columnGap
	}
	p.notesX = p.nextX + next + columnGap
	for l, lane := range g.Lanes {
		labels = max(labels, p.laneX[l]+estimateWidth(lane.Name+" (default), deprecated", 12.5, 0.6))
	}
	summary := margin + estimateWidth(g.Summary(), 12.5, 0.56)
	p.width = max(p.notesX+notes, labels, summary, 460) + margin
	p.legends = listLegends(g, p.tracks)
	p.placeLegends(p.y(len(g.Rows)) + 10)
}

// placeLegends sets the position of each legend, line by line, and the height of the picture.
func (p *layout) placeLegends(y int) {
	x := margin
	for _, item := range p.legends {
		w := 30 + estimateWidth(item.text, 11, 0.55) + 16
		if x > margin && x+w > p.width-margin {
			x, y = margin, y+20
		}
		p.legendPoints = append(p.legendPoints, point{x, y})
		x += w
	}
	p.height = y + margin
}

// y returns the vertical middle of a row.
func (p *layout) y(row int) int { return p.top + row*rowHeight + rowHeight/2 }

// labelY returns the lower end of a channel's name.
func (p *layout) labelY(lane int) int { return headHeight + margin + labelLine*lane + 8 }

func (p *layout) formatLabel(r Row) string {
	if r.Folded > 1 {
		return fmt.Sprintf("%d more, down to %s", r.Folded, r.Lowest)
	}
	return truncate(r.Version, 40)
}

// buildTracks returns the lines for the edges that are not straight. Skips with the same target share a line, and
// ranges with the same start.
func buildTracks(g *Graph, lane int) []track {
	var out []track
	addToTrack := func(e Edge, matches func(t track) bool) {
		if i := slices.IndexFunc(out, matches); i >= 0 {
			out[i].edges = append(out[i].edges, e)
			return
		}
		out = append(out, track{kind: e.Kind, edges: []Edge{e}})
	}
	for _, e := range g.Lanes[lane].Edges {
		switch {
		case e.Kind == Replaces && g.isAdjacent(lane, e): // drawEdges draws it straight, within the lane
		case e.Kind == Replaces:
			addToTrack(e, func(track) bool { return false })
		case e.Kind == Skips:
			addToTrack(e, func(t track) bool { return t.kind == Skips && t.edges[0].To == e.To })
		default:
			addToTrack(e, func(t track) bool { return t.kind == Ranges && t.edges[0].From == e.From })
		}
	}
	for i := range out {
		out[i].target = out[i].edges[0].To
		for _, e := range out[i].edges {
			out[i].target = min(out[i].target, e.To)
			out[i].rows = append(out[i].rows, e.From, e.To)
		}
		out[i].rows = slices.Compact(slices.Sorted(slices.Values(out[i].rows)))
	}
	placeTracks(out)
	return out
}

// placeTracks gives each track the nearest place without an overlapping track, the short tracks first.
func placeTracks(tracks []track) {
	slices.SortStableFunc(tracks, func(a, b track) int {
		aTop, aBottom := a.span()
		bTop, bBottom := b.span()
		return cmp.Or(cmp.Compare(aBottom-aTop, bBottom-bTop), cmp.Compare(aTop, bTop), cmp.Compare(a.kind, b.kind))
	})
	for i := range tracks {
		top, bottom := tracks[i].span()
		isTaken := map[int]bool{}
		for _, other := range tracks[:i] {
			if t, b := other.span(); t <= bottom && top <= b {
				isTaken[other.distance] = true
			}
		}
		for tracks[i].distance < maxTracks-1 && isTaken[tracks[i].distance] {
			tracks[i].distance++
		}
	}
}
