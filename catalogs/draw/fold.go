// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
)

const (
	// foldAbove is the number of rows up to which all rows are shown.
	foldAbove = 40
	// foldRun is the minimal number of plain versions in a run that is folded; the first and the last of a run stay.
	foldRun = 5
)

// foldRows replaces the middle of each long run of plain versions by one row. A graph with at most foldAbove rows stays
// unchanged.
func (g *Graph) foldRows() {
	if len(g.Rows) <= foldAbove {
		return
	}
	// Routes name bundles, and a folded bundle cannot be found by name. So all texts about bundles are built first.
	signatures := make([]string, len(g.Rows))
	for i := range g.Rows {
		signatures[i] = g.buildSignature(i)
	}
	newIndexes := make([]int, len(g.Rows))
	var rows []Row
	for i := 0; i < len(g.Rows); {
		runEnd := i + 1
		for signatures[i] != "" && runEnd < len(g.Rows) && signatures[runEnd] == signatures[i] {
			runEnd++
		}
		if runEnd-i < foldRun { // a short run, or a version that must be shown
			runEnd = i + 1
			newIndexes[i] = len(rows)
			rows = append(rows, g.Rows[i])
			i = runEnd
			continue
		}
		newIndexes[i], newIndexes[runEnd-1] = len(rows), len(rows)+2
		for k := i + 1; k < runEnd-1; k++ {
			newIndexes[k] = len(rows) + 1
		}
		// The highest and the lowest version stay, and one row represents the versions between them.
		middle := g.Rows[i+1]
		middle.Folded, middle.Lowest = runEnd-i-2, g.Rows[runEnd-2].Version
		rows = append(rows, g.Rows[i], middle, g.Rows[runEnd-1])
		i = runEnd
	}
	g.Rows = rows
	for l := range g.Lanes {
		g.Lanes[l].Edges = foldEdges(g.Lanes[l].Edges, newIndexes)
	}
}

// foldEdges replaces the row indexes of edges by their new indexes in into, and drops the edges within a fold.
func foldEdges(edges []Edge, newIndexes []int) []Edge {
	out := edges[:0]
	for _, e := range edges {
		e.From, e.To = newIndexes[e.From], newIndexes[e.To]
		isSame := func(o Edge) bool { return o.From == e.From && o.To == e.To && o.Kind == e.Kind }
		if e.From != e.To && !slices.ContainsFunc(out, isSame) {
			out = append(out, e)
		}
	}
	return out
}

// buildSignature returns a text that is equal for plain versions that look alike in all lanes, apart from their
// number. It is empty for a version that must be shown, for instance because clusters run it.
func (g *Graph) buildSignature(i int) string {
	r := g.Rows[i]
	if r.Clusters > 0 || r.Deprecation != "" || r.Block != nil || len(r.Differences) > 0 {
		return ""
	}
	if slices.ContainsFunc(r.Back, func(b bundles.Rollback) bool { return b.Class != bundles.RollbackInPlace }) {
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
			case e.From != i && e.To != i: // an edge of other versions
			case e.Kind == Ranges: // one edge represents many versions anyway
			case e.Kind == Replaces && g.isAdjacent(l, e): // the straight edges of all plain versions look alike
			case e.From == i:
				fmt.Fprintf(&out, "%s %d", e.Kind, e.To)
			default: // the version is the target of an edge that must be shown
				return ""
			}
		}
		out.WriteByte(';')
	}
	return out.String()
}

// isAdjacent reports whether no other version of the lane is between the two ends of an edge.
func (g *Graph) isAdjacent(lane int, e Edge) bool {
	for i := min(e.From, e.To) + 1; i < max(e.From, e.To); i++ {
		if g.Rows[i].Places[lane].Role != Absent {
			return false
		}
	}
	return true
}
