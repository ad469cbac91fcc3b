// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Text draws the graph as text: a column for each channel, and a line for each version.
func Text(g *Graph) string { return TextWithin(g, 0) }

// TextWithin is like Text for a terminal with a number of columns; 0 means no limit. Notes that do not fit beside a
// version are written below it. Names are not wrapped, and can exceed the limit.
func TextWithin(g *Graph, columns int) string {
	p := textPage{columns: columns}
	p.writeLine("", "", []string{g.Package + ": " + g.Summary()})
	if g.Deprecation != "" {
		p.writeLine("", "", []string{"deprecated: " + phrase.OneLine(g.Deprecation)})
	}
	p.out.WriteString("\n")
	for l, lane := range g.Lanes {
		indent := strings.Repeat("│ ", l)
		text := indent + "┌ " + lane.Name
		if lane.Default && len(g.Lanes) > 1 {
			text += " (default)"
		}
		if lane.Deprecation == "" {
			p.writeLine(text, "", nil)
			continue
		}
		p.writeLine(text+"; ", indent+"│   ", []string{"deprecated: " + phrase.OneLine(lane.Deprecation)})
	}
	versions, next := 0, 0
	for _, r := range g.Rows {
		versions = max(versions, runewidth.StringWidth(formatTextLabel(r)))
		next = max(next, runewidth.StringWidth(formatTextNext(g, r)))
	}
	for i, r := range g.Rows {
		line := drawTextMarks(g, i) + " " + runewidth.FillRight(formatTextLabel(r), versions)
		if g.Clusters > 0 {
			line += fmt.Sprintf("  %*s", len(fmt.Sprint(g.Clusters))+9, formatTextClusters(r))
		}
		line += "  " + runewidth.FillRight(formatTextNext(g, r), next) + "  "
		var notes []string
		for _, n := range g.listNotes(r) {
			notes = append(notes, "["+n.long+"]")
		}
		p.writeLine(line, drawLaneLines(g, i)+"   ", notes)
	}
	p.out.WriteString("\n")
	p.writeLine("", "", []string{buildTextLegend(g)})
	return p.out.String()
}

// textPage is a text of limited width.
type textPage struct {
	out     strings.Builder
	columns int
}

// writeLine writes a head and its items: beside the head if everything fits, or else below it, after a margin.
func (p *textPage) writeLine(head, margin string, items []string) {
	whole := strings.TrimRight(head+strings.Join(items, "  "), " ")
	if p.columns <= 0 || len(items) == 0 || runewidth.StringWidth(whole) <= p.columns {
		p.out.WriteString(whole + "\n")
		return
	}
	if head = strings.TrimRight(head, "; "); head != "" {
		p.out.WriteString(head + "\n")
	}
	width := max(p.columns-runewidth.StringWidth(margin), minColumns)
	for _, item := range items {
		p.out.WriteString(margin + strings.Join(phrase.Wrap(item, width), "\n"+margin) + "\n")
	}
}

// minColumns is the minimal width of a note, even if the channels leave less space.
const minColumns = 20

// drawLaneLines continues the lines of the channels that have a version below the row.
func drawLaneLines(g *Graph, row int) string {
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

func formatTextLabel(r Row) string {
	if r.Folded > 1 {
		return fmt.Sprintf("… %d more, down to %s", r.Folded, r.Lowest)
	}
	return r.Version
}

func formatTextNext(g *Graph, r Row) string {
	if next := g.Next(r); r.Folded == 1 && next != "" {
		return "→ " + next
	}
	return ""
}

func formatTextClusters(r Row) string {
	if r.Clusters == 0 {
		return ""
	}
	return phrase.Count(r.Clusters, "cluster")
}

// drawTextMarks draws the marks of a row, and the lines of channels that continue below the row.
func drawTextMarks(g *Graph, row int) string {
	var out strings.Builder
	for l := range g.Lanes {
		out.WriteString(chooseTextMark(g, row, l) + " ")
	}
	return out.String()
}

// chooseTextMark returns the mark of a row in a lane: a line if the row is not in the lane but a lower row is.
func chooseTextMark(g *Graph, row, lane int) string {
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

// buildTextLegend returns the explanations of the marks that the text has.
func buildTextLegend(g *Graph) string {
	var parts []string
	isUsed := map[string]bool{}
	for i := range g.Rows {
		for l := range g.Lanes {
			isUsed[chooseTextMark(g, i, l)] = true
		}
	}
	for _, m := range [][2]string{
		{"◉", "head"}, {"●", "offered"}, {"○", "skipped: no cluster is upgraded to it"}, {"◇", "deprecated"},
		{"✗", "blocked"},
		{"◌", "left the channel"}, {"┊", "plain versions, one after another"},
	} {
		if isUsed[m[0]] {
			parts = append(parts, m[0]+" "+m[1])
		}
	}
	return strings.Join(parts, "   ")
}
