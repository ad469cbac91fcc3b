// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

const (
	// foldAbove is the number of rows up to which everything is shown.
	foldAbove = 40
	// foldRun is how many plain versions in a row are folded; the first and the last of a run stay.
	foldRun = 5
)

// fold replaces long runs of versions with nothing to tell by one row each.
func (g *Graph) fold() {
	if len(g.Rows) <= foldAbove {
		return
	}
	// Routes name bundles, and a folded one can no longer be found by name: so all texts about them come before.
	plain := make([]string, len(g.Rows))
	for i := range g.Rows {
		plain[i] = g.signature(i)
	}
	into := make([]int, len(g.Rows))
	var rows []Row
	for i := 0; i < len(g.Rows); {
		end := i + 1
		for plain[i] != "" && end < len(g.Rows) && plain[end] == plain[i] {
			end++
		}
		if end-i < foldRun {
			end = i + 1
			into[i] = len(rows)
			rows = append(rows, g.Rows[i])
			i = end
			continue
		}
		into[i], into[end-1] = len(rows), len(rows)+2
		for k := i + 1; k < end-1; k++ {
			into[k] = len(rows) + 1
		}
		middle := g.Rows[i+1]
		middle.Folded, middle.Lowest = end-i-2, g.Rows[end-2].Version
		rows = append(rows, g.Rows[i], middle, g.Rows[end-1])
		i = end
	}
	g.Rows = rows
	for l := range g.Lanes {
		g.Lanes[l].Edges = foldEdges(g.Lanes[l].Edges, into)
	}
}

// foldEdges drops the edges within a fold.
func foldEdges(edges []Edge, into []int) []Edge {
	out := edges[:0]
	for _, e := range edges {
		e.From, e.To = into[e.From], into[e.To]
		same := func(o Edge) bool { return o.From == e.From && o.To == e.To && o.Kind == e.Kind }
		if e.From != e.To && !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	return out
}

// signature is empty for a version that has something to tell. Plain versions with the same signature are alike in all
// that a picture shows, but for their number.
func (g *Graph) signature(i int) string {
	r := g.Rows[i]
	if r.Clusters > 0 || r.Deprecation != "" || r.Block != nil || len(r.Differences) > 0 {
		return ""
	}
	if slices.ContainsFunc(r.Back, func(b registryv1.Rollback) bool { return b.Class != registryv1.RollbackInPlace }) {
		return ""
	}
	var out strings.Builder
	for l, lane := range g.Lanes {
		role := r.Places[l].Role
		if role == Head || r.DeadEnd(l) {
			return ""
		}
		fmt.Fprintf(&out, "%d", role)
		for _, e := range lane.Edges {
			switch {
			case e.From != i && e.To != i, e.Kind == Ranges:
			case e.Kind == Replaces && g.adjacent(l, e):
			case e.From == i:
				fmt.Fprintf(&out, "%s %d", e.Kind, e.To)
			default:
				return ""
			}
		}
		out.WriteByte(';')
	}
	return out.String()
}

// adjacent reports whether no other version of the lane is between an edge's two ends.
func (g *Graph) adjacent(lane int, e Edge) bool {
	for i := min(e.From, e.To) + 1; i < max(e.From, e.To); i++ {
		if g.Rows[i].Places[lane].Role != Absent {
			return false
		}
	}
	return true
}
