// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Mermaid draws the graph as a Mermaid flowchart, which Markdown viewers render.
func Mermaid(g *Graph) string {
	var out, links strings.Builder
	fmt.Fprintf(&out, "---\ntitle: %s\n---\nflowchart BT\n", quoteYAML(g.Package+": "+g.Summary()))
	link := 0
	for l, lane := range g.Lanes {
		fmt.Fprintf(&out, "  subgraph c%d[%s]\n    direction BT\n", l, quoteMermaid(formatLaneLabel(g, lane)))
		// The flow goes from the lowest version to the highest.
		for i := len(g.Rows) - 1; i >= 0; i-- {
			r := g.Rows[i]
			if role := r.Places[l].Role; role != Absent {
				left, right := formatMermaidShape(r, role)
				fmt.Fprintf(&out, "    %s%s%s%s%s\n", formatNodeID(l, i), left,
					quoteMermaid(formatNodeLabel(g, r, "\n")), right, formatMermaidClass(r, role))
			}
		}
		out.WriteString("  end\n")
		for _, e := range g.listDrawnEdges(l) {
			arrow, style := formatMermaidEdge(g, e)
			fmt.Fprintf(&out, "  %s %s %s\n", formatNodeID(l, e.From), arrow, formatNodeID(l, e.To))
			if style != "" {
				fmt.Fprintf(&links, "  linkStyle %d %s\n", link, style)
			}
			link++
		}
	}
	out.WriteString(links.String())
	// The colours are visible in light and dark mode; the labels have the same information as text.
	out.WriteString("  classDef head stroke:#1a7f37,stroke-width:3px\n  classDef blocked " +
		"stroke:#cf222e,stroke-width:2px\n" +
		"  classDef deprecated stroke:#bf8700,stroke-width:2px\n  classDef gone stroke-dasharray:3 3\n")
	return out.String()
}

// formatMermaidEdge returns the arrow of an edge, and its link style; empty means the default style.
func formatMermaidEdge(g *Graph, e Edge) (arrow, style string) {
	switch e.Kind {
	case Skips:
		return "-. skips .->", "stroke-dasharray:5 3"
	case Ranges:
		return "-. " + quoteMermaid(e.Range) + " .->", "stroke-dasharray:1 4"
	}
	if n, ok := g.newRollbackNote(e.Back); ok {
		return "-- " + quoteMermaid(n.short) + " -->", ""
	}
	return "-->", ""
}

func formatNodeID(lane, row int) string { return fmt.Sprintf("c%dv%d", lane, row) }

func formatLaneLabel(g *Graph, lane Lane) string {
	text := lane.Name
	if lane.Default && len(g.Lanes) > 1 {
		text += " (default)"
	}
	if lane.Deprecation != "" {
		text += ", deprecated"
	}
	return text
}

// formatNodeLabel returns the text of a node with its notes, because flowcharts have no columns.
func formatNodeLabel(g *Graph, r Row, newline string) string {
	lines := []string{r.formatTitle()}
	if r.Clusters > 0 {
		lines = append(lines, phrase.Count(r.Clusters, "cluster"))
	}
	for _, n := range g.listNotes(r) {
		// The shape of the node shows the head, and the edges show the rollbacks.
		if n.tone != toneGood && !strings.Contains(n.short, "back to") {
			lines = append(lines, truncate(n.short, maxPill))
		}
	}
	return strings.Join(lines, newline)
}

// formatMermaidShape returns the brackets that give a node its shape.
func formatMermaidShape(r Row, role Role) (left, right string) {
	switch {
	case r.Block != nil:
		return "{{", "}}"
	case role == Head:
		return "([", "])"
	case r.Folded > 1:
		return "[[", "]]"
	}
	return "[", "]"
}

// formatMermaidClass returns the class of a node, which defines its colour; empty for a plain version.
func formatMermaidClass(r Row, role Role) string {
	switch {
	case r.Block != nil:
		return ":::blocked"
	case r.Deprecation != "":
		return ":::deprecated"
	case role == Head:
		return ":::head"
	case role == Gone:
		return ":::gone"
	}
	return ""
}

// quoteMermaid quotes a text. It writes special characters as character codes, because Mermaid reads quoted texts as
// Markdown and HTML.
func quoteMermaid(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '\n':
			out.WriteString("<br/>")
		case unicode.IsControl(r):
			out.WriteByte(' ')
		case strings.ContainsRune("\"#<>&`*_\\;[]{}|", r):
			fmt.Fprintf(&out, "#%d;", r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func quoteYAML(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}
