// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package term renders text for a terminal: tables, colours, durations, and the state of an object in one word. It does
// no input or output itself.
package term

import (
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Cell is one field of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Cell returns a cell with this tone.
func (t Tone) Cell(text string) Cell { return Cell{Text: text, Tone: t} }

// Table is a text in aligned columns. If a line is wider than the style allows, the last column is cut. If Wrap is
// set, the last column is broken into lines instead: next to the other columns, or below the row if there are too few
// columns left. The other columns are never cut, because they have names that users copy.
type Table struct {
	Header []string
	Rows   [][]Cell
	Wrap   bool
}

const columnGap = 3

// lineBreakReplacer replaces line breaks, so that a cell does not create additional rows.
var lineBreakReplacer = strings.NewReplacer("\n", " ", "\t", " ")

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Render returns the lines of the table, each with a newline at the end. It escapes the texts of the cells in the
// table. If the last column is below the other columns, the header does not have it.
func (t *Table) Render(s Style) string {
	for _, row := range t.Rows {
		for i := range row {
			row[i].Text = lineBreakReplacer.Replace(Escape(row[i].Text))
		}
	}
	widths := t.computeWidths()
	isBelow := t.isLastColumnBelow(s, widths)
	var out strings.Builder
	if len(t.Header) > 0 {
		header := make([]Cell, len(t.Header))
		for i, name := range t.Header {
			header[i] = Cell{Text: name, Tone: Dim}
		}
		if isBelow {
			header = header[:len(header)-1]
		}
		t.writeRow(&out, s, widths, header, isBelow)
	}
	for _, row := range t.Rows {
		t.writeRow(&out, s, widths, row, isBelow)
	}
	return out.String()
}

// Markdown returns the table in GitHub's Markdown.
func (t *Table) Markdown() string {
	out := "| " + strings.Join(t.Header, " | ") + " |\n" + strings.Repeat("| --- ", len(t.Header)) + "|\n"
	for _, row := range t.Rows {
		for _, c := range row {
			out += "| " + strings.ReplaceAll(phrase.Markdown(c.Text), "|", `\|`) + " "
		}
		out += "|\n"
	}
	return out
}

// computeWidths returns the width of the widest cell of each column.
func (t *Table) computeWidths() []int {
	widths := make([]int, len(t.Header))
	for i, name := range t.Header {
		widths[i] = runewidth.StringWidth(name)
	}
	for _, row := range t.Rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(c.Text))
		}
	}
	return widths
}

// writeRow writes a row. If isBelow is set, the last cell is below the other cells.
func (t *Table) writeRow(out *strings.Builder, s Style, widths []int, row []Cell, isBelow bool) {
	for len(row) > 0 && row[len(row)-1].Text == "" {
		row = row[:len(row)-1]
	}
	for i, c := range row {
		isBeforeBreak := isBelow && i == len(widths)-2 // the last cell is on the next line
		isLastInLine := isBeforeBreak || i == len(row)-1
		switch {
		case i == len(widths)-1:
			out.WriteString(t.formatLastCell(s, c, widths, isBelow))
		case isLastInLine:
			out.WriteString(s.Paint(c.Tone, c.Text))
		default:
			out.WriteString(s.Paint(c.Tone, c.Text))
			out.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(c.Text)+columnGap))
		}
	}
	out.WriteByte('\n')
}

// Limits for a last column that does not fit.
const (
	minLastColumn = 8
	MinWrapped    = 24
	minBeside     = 40
	belowMargin   = "    "
)

// computeLastStart returns the column at which the last cell of a row begins.
func computeLastStart(widths []int) int {
	start := 0
	for _, width := range widths[:len(widths)-1] {
		start += width + columnGap
	}
	return start
}

// isLastColumnBelow reports whether the last column is written below the other columns, because its text does not fit
// next to them, and a word does not fit or fewer than minBeside columns are left.
func (t *Table) isLastColumnBelow(s Style, widths []int) bool {
	if !t.Wrap || s.Width == 0 || len(widths) < 2 {
		return false
	}
	columns := s.Width - computeLastStart(widths)
	isTooNarrow := columns < minBeside || t.measureLongestWord(len(widths)-1) > columns
	return isTooNarrow && widths[len(widths)-1] > columns
}

// measureLongestWord returns the width of the longest word in a column.
func (t *Table) measureLongestWord(column int) int {
	longest := 0
	for _, row := range t.Rows {
		if column < len(row) {
			for _, word := range strings.Fields(row[column].Text) {
				longest = max(longest, runewidth.StringWidth(word))
			}
		}
	}
	return longest
}

// formatLastCell returns the text of the cell in the last column, cut or broken to fit the width of the style. A width
// of 0 means no limit.
func (t *Table) formatLastCell(s Style, c Cell, widths []int, isBelow bool) string {
	start := computeLastStart(widths)
	switch {
	case s.Width == 0:
		return s.Paint(c.Tone, c.Text)
	case isBelow && c.Text == "-": // no value, which needs no line
		return ""
	case isBelow:
		margin := "\n" + belowMargin
		return margin + strings.Join(wrapCell(s, c, s.Width-len(belowMargin)), margin)
	case t.Wrap:
		return strings.Join(wrapCell(s, c, s.Width-start), "\n"+strings.Repeat(" ", start))
	default:
		return s.Paint(c.Tone, Fit(c.Text, max(s.Width-start, minLastColumn)))
	}
}

// wrapCell returns the text of a cell, in the tone of the cell, as lines of at most this many columns, or of MinWrapped
// columns if that is more.
func wrapCell(s Style, c Cell, columns int) []string {
	lines := Wrap(c.Text, max(columns, MinWrapped))
	for i := range lines {
		lines[i] = s.Paint(c.Tone, lines[i])
	}
	return lines
}

// PlainCells returns cells without a tone.
func PlainCells(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i] = Cell{Text: text}
	}
	return cells
}

// DashIfEmpty returns the text, or "-" if the text is empty.
func DashIfEmpty(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
