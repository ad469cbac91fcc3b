// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
	"unicode"
)

// DOT draws the graph for Graphviz.
func DOT(g *Graph) string {
	var out strings.Builder
	fmt.Fprintf(&out, "digraph %s {\n  rankdir=BT;\n  label=%s;\n  labelloc=t;\n  fontname=\"Helvetica\";\n",
		quoteDOT(g.Package), quoteDOT(g.Package+": "+g.Summary()))
	out.WriteString("  node [shape=box, style=rounded, fontname=\"Helvetica\", fontsize=11];\n  edge " +
		"[fontname=\"Helvetica\", fontsize=9];\n")
	for l, lane := range g.Lanes {
		fmt.Fprintf(&out, "  subgraph cluster_%d {\n    label=%s;\n    style=dashed;\n", l,
			quoteDOT(formatLaneLabel(g, lane)))
		for i := len(g.Rows) - 1; i >= 0; i-- {
			r := g.Rows[i]
			if role := r.Places[l].Role; role != Absent {
				fmt.Fprintf(&out, "    %s [label=%s, tooltip=%s%s];\n", formatNodeID(l, i),
					quoteDOT(formatNodeLabel(g, r, "\n")), quoteDOT(r.Bundle), formatDOTStyle(r, role))
			}
		}
		out.WriteString("  }\n")
		for _, e := range g.listDrawnEdges(l) {
			fmt.Fprintf(&out, "  %s -> %s%s;\n", formatNodeID(l, e.From), formatNodeID(l, e.To), formatDOTEdge(g, e))
		}
	}
	out.WriteString("}\n")
	return out.String()
}

// formatDOTStyle returns the attributes of a node that show its state.
func formatDOTStyle(r Row, role Role) string {
	switch {
	case r.Block != nil:
		return `, shape=octagon, style=solid, color="#cf222e"`
	case r.Deprecation != "":
		return `, style="rounded,dashed", color="#9a6700"`
	case role == Head:
		return `, peripheries=2, color="#1a7f37"`
	case role == Gone, role == Skipped:
		return `, style="rounded,dotted"`
	case r.Folded > 1:
		return `, shape=box3d, style=solid`
	}
	return ""
}

// formatDOTEdge returns the attributes of an edge: its style and its label.
func formatDOTEdge(g *Graph, e Edge) string {
	switch e.Kind {
	case Skips:
		return ` [style=dashed, label="skips"]`
	case Ranges:
		// With a constraint, a range would change the ranks of the versions between its ends.
		return fmt.Sprintf(" [style=dotted, constraint=false, label=%s]", quoteDOT(e.Range))
	}
	if n, ok := g.newRollbackNote(e.Back); ok {
		return fmt.Sprintf(" [label=%s, arrowtail=tee, dir=both]", quoteDOT(n.short))
	}
	return ""
}

// quoteDOT quotes a text; in Graphviz a backslash begins an escape.
func quoteDOT(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case unicode.IsControl(r):
			out.WriteByte(' ')
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
