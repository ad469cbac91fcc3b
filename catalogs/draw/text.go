// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Text draws the graph as text: a column for each channel, and a line for each version.
func Text(g *Graph) string { return TextWithin(g, 0) }

// TextWithin draws the same for a terminal of so many columns; 0 means that there is no limit. Notes that do not fit
// beside a version are below it. Names are not broken, and may be longer.
func TextWithin(g *Graph, columns int) string {
	p := textPage{columns: columns}
	p.line("", "", []string{g.Package + ": " + g.Summary()})
	if g.Deprecation != "" {
		p.line("", "", []string{"deprecated: " + phrase.OneLine(g.Deprecation)})
	}
	p.out.WriteString("\n")
	for l, lane := range g.Lanes {
		left := strings.Repeat("│ ", l)
		text := left + "┌ " + lane.Name
		if lane.Default && len(g.Lanes) > 1 {
			text += " (default)"
		}
		if lane.Deprecation == "" {
			p.line(text, "", nil)
			continue
		}
		p.line(text+"; ", left+"│   ", []string{"deprecated: " + phrase.OneLine(lane.Deprecation)})
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
		line += "  " + runewidth.FillRight(textNext(g, r), next) + "  "
		var notes []string
		for _, n := range g.notes(r) {
			notes = append(notes, "["+n.long+"]")
		}
		p.line(line, textBelow(g, i)+"   ", notes)
	}
	p.out.WriteString("\n")
	p.line("", "", []string{textLegend(g)})
	return p.out.String()
}

// textPage is a text of limited width.
type textPage struct {
	out     strings.Builder
	columns int
}

// line writes a head and what follows it: beside it if all of that fits, or else below it, behind a margin.
func (p *textPage) line(head, margin string, items []string) {
	whole := strings.TrimRight(head+strings.Join(items, "  "), " ")
	if p.columns <= 0 || len(items) == 0 || runewidth.StringWidth(whole) <= p.columns {
		p.out.WriteString(whole + "\n")
		return
	}
	if head = strings.TrimRight(head, "; "); head != "" {
		p.out.WriteString(head + "\n")
	}
	room := max(p.columns-runewidth.StringWidth(margin), minColumns)
	for _, item := range items {
		p.out.WriteString(margin + strings.Join(phrase.Wrap(item, room), "\n"+margin) + "\n")
	}
}

// minColumns is what a note gets in any case, however many channels there are.
const minColumns = 20

// textBelow continues the lines of the channels that have a version below the row.
func textBelow(g *Graph, row int) string {
	var out strings.Builder
	for l := range g.Lanes {
		mark := " "
		for _, r := range g.Rows[row+1:] {
			if r.Places[l].Role != Absent {
				mark = "│"
			}
		}
		out.WriteString(mark + " ")
	}
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
	return strings.Join(parts, "   ")
}
