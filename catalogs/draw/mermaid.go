// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Mermaid draws the graph as a Mermaid flowchart, which Markdown viewers render.
func Mermaid(g *Graph) string {
	var out, links strings.Builder
	fmt.Fprintf(&out, "---\ntitle: %s\n---\nflowchart BT\n", yamlString(g.Package+": "+g.Summary()))
	link := 0
	for l, lane := range g.Lanes {
		fmt.Fprintf(&out, "  subgraph c%d[%s]\n    direction BT\n", l, mermaidString(laneLabel(g, lane)))
		// From the lowest to the highest, the order in which the flow goes.
		for i := len(g.Rows) - 1; i >= 0; i-- {
			r := g.Rows[i]
			if role := r.Places[l].Role; role != Absent {
				left, right := mermaidShape(r, role)
				fmt.Fprintf(&out, "    %s%s%s%s%s\n", nodeID(l, i), left, mermaidString(nodeLabel(g, r, "\n")), right,
					mermaidClass(r, role))
			}
		}
		out.WriteString("  end\n")
		for _, e := range g.bundled(l) {
			arrow, style := mermaidEdge(g, e)
			fmt.Fprintf(&out, "  %s %s %s\n", nodeID(l, e.From), arrow, nodeID(l, e.To))
			if style != "" {
				fmt.Fprintf(&links, "  linkStyle %d %s\n", link, style)
			}
			link++
		}
	}
	out.WriteString(links.String())
	// Colours for light and dark mode; the labels say the same as text.
	out.WriteString("  classDef head stroke:#1a7f37,stroke-width:3px\n  classDef blocked " +
		"stroke:#cf222e,stroke-width:2px\n" +
		"  classDef deprecated stroke:#bf8700,stroke-width:2px\n  classDef gone stroke-dasharray:3 3\n")
	return out.String()
}

func mermaidEdge(g *Graph, e Edge) (arrow, style string) {
	switch e.Kind {
	case Skips:
		return "-. skips .->", "stroke-dasharray:5 3"
	case Ranges:
		return "-. " + mermaidString(e.Range) + " .->", "stroke-dasharray:1 4"
	}
	if n, ok := g.back(e.Back); ok {
		return "-- " + mermaidString(n.short) + " -->", ""
	}
	return "-->", ""
}

func nodeID(lane, row int) string { return fmt.Sprintf("c%dv%d", lane, row) }

func laneLabel(g *Graph, lane Lane) string {
	text := lane.Name
	if lane.Default && len(g.Lanes) > 1 {
		text += " (default)"
	}
	if lane.Deprecation != "" {
		text += ", deprecated"
	}
	return text
}

// nodeLabel is the text of a node, since there are no columns.
func nodeLabel(g *Graph, r Row, newline string) string {
	lines := []string{r.title()}
	if r.Clusters > 0 {
		lines = append(lines, phrase.Count(r.Clusters, "cluster"))
	}
	for _, n := range g.notes(r) {
		// The ways back are on the edges.
		if n.tone != good && !strings.Contains(n.short, "back to") {
			lines = append(lines, truncate(n.short, maxPill))
		}
	}
	return strings.Join(lines, newline)
}

func mermaidShape(r Row, role Role) (left, right string) {
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

func mermaidClass(r Row, role Role) string {
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

// mermaidString quotes a text. Mermaid knows character codes, and reads quoted texts as Markdown and HTML otherwise.
func mermaidString(s string) string {
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

func yamlString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}
