// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Text draws the graph for a terminal: a column for each channel, and a line for each version.
func Text(g *Graph) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", g.Package, g.Summary())
	if g.Deprecation != "" {
		fmt.Fprintf(&out, "deprecated: %s\n", phrase.OneLine(g.Deprecation))
	}
	out.WriteString("\n")
	for l, lane := range g.Lanes {
		text := lane.Name
		if lane.Default && len(g.Lanes) > 1 {
			text += " (default)"
		}
		if lane.Deprecation != "" {
			text += "; deprecated: " + phrase.OneLine(lane.Deprecation)
		}
		fmt.Fprintf(&out, "%s┌ %s\n", strings.Repeat("│ ", l), text)
	}
	versions, next := 0, 0
	for _, r := range g.Rows {
		versions = max(versions, runewidth.StringWidth(textLabel(r)))
		next = max(next, runewidth.StringWidth(textNext(g, r)))
	}
	for i, r := range g.Rows {
		line := textLanes(g, i) + " " + runewidth.FillRight(textLabel(r), versions)
		if g.Clusters > 0 {
			line += fmt.Sprintf("  %*s", len(fmt.Sprint(g.Clusters))+9, textClusters(r))
		}
		line += "  " + runewidth.FillRight(textNext(g, r), next)
		for _, n := range g.notes(r) {
			line += "  [" + n.long + "]"
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	out.WriteString("\n" + textLegend(g))
	return out.String()
}

func textLabel(r Row) string {
	if r.Folded > 1 {
		return fmt.Sprintf("… %d more, down to %s", r.Folded, r.Lowest)
	}
	return r.Version
}

func textNext(g *Graph, r Row) string {
	if next := g.Next(r); r.Folded == 1 && next != "" {
		return "→ " + next
	}
	return ""
}

func textClusters(r Row) string {
	if r.Clusters == 0 {
		return ""
	}
	return phrase.Count(r.Clusters, "cluster")
}

// textLanes draws a row's marks, and lines of channels that continue past the
// row.
func textLanes(g *Graph, row int) string {
	var out strings.Builder
	for l := range g.Lanes {
		out.WriteString(textMark(g, row, l) + " ")
	}
	return out.String()
}

func textMark(g *Graph, row, lane int) string {
	r := g.Rows[row]
	role := r.Places[lane].Role
	switch {
	case role != Absent && r.Folded > 1:
		return "┊"
	case role != Absent && r.Block != nil:
		return "✗"
	case role == Head:
		return "◉"
	case role == Gone:
		return "◌"
	case role != Absent && r.Deprecation != "":
		return "◇"
	case role == Skipped:
		return "○"
	case role == Offered:
		return "●"
	}
	for i := row; i < len(g.Rows); i++ {
		if g.Rows[i].Places[lane].Role != Absent {
			return "│"
		}
	}
	return " "
}

func textLegend(g *Graph) string {
	var parts []string
	seen := map[string]bool{}
	for i := range g.Rows {
		for l := range g.Lanes {
			seen[textMark(g, i, l)] = true
		}
	}
	for _, m := range [][2]string{
		{"◉", "head"}, {"●", "offered"}, {"○", "skipped: no cluster is upgraded to it"}, {"◇", "deprecated"},
		{"✗", "blocked"},
		{"◌", "left the channel"}, {"┊", "plain versions, one after another"},
	} {
		if seen[m[0]] {
			parts = append(parts, m[0]+" "+m[1])
		}
	}
	return strings.Join(parts, "   ") + "\n"
}
