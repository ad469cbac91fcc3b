// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package term renders text for a terminal: tables, colours, durations, and the
// state of an object in a word. It reads nothing and writes nothing.
package term

import (
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Cell is one field of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Cell returns a cell with this tone.
func (t Tone) Cell(text string) Cell { return Cell{Text: text, Tone: t} }

// Table is aligned text. Where a line would be wider than the style allows, the
// last column is cut. If the table wraps, its text is broken into lines instead:
// beside the other columns, or below them where these leave too little room.
// No other column is ever cut: they have names, which people copy.
type Table struct {
	Header []string
	Rows   [][]Cell
	Wrap   bool
}

const columnGap = 3

// oneLine keeps a cell from making rows of its own.
var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Render returns the table's lines, each ended by a newline.
func (t *Table) Render(s Style) string {
	for _, row := range t.Rows {
		for i := range row {
			row[i].Text = oneLine.Replace(Escape(row[i].Text))
		}
	}
	widths := t.widths()
	below := t.isBelow(s, widths)
	var out strings.Builder
	if len(t.Header) > 0 {
		header := make([]Cell, len(t.Header))
		for i, name := range t.Header {
			header[i] = Cell{Text: name, Tone: Dim}
		}
		if below {
			header = header[:len(header)-1]
		}
		t.writeRow(&out, s, widths, header, below)
	}
	for _, row := range t.Rows {
		t.writeRow(&out, s, widths, row, below)
	}
	return out.String()
}

// Markdown is the table in GitHub's Markdown.
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

func (t *Table) widths() []int {
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

// writeRow writes a row, with its last cell below the others if below is set.
func (t *Table) writeRow(out *strings.Builder, s Style, widths []int, row []Cell, below bool) {
	for len(row) > 0 && row[len(row)-1].Text == "" {
		row = row[:len(row)-1]
	}
	for i, c := range row {
		switch {
		case i == len(widths)-1:
			out.WriteString(t.lastCell(s, c, widths, below))
		case i == len(row)-1 || i == len(widths)-2 && below:
			out.WriteString(s.Paint(c.Tone, c.Text))
		default:
			out.WriteString(s.Paint(c.Tone, c.Text))
			out.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(c.Text)+columnGap))
		}
	}
	out.WriteByte('\n')
}

// Limits of a last column that is short of room.
const (
	minLastColumn = 8
	MinWrapped    = 24
	minBeside     = 40
	belowMargin   = "    "
)

// startOfLast is where the last column begins.
func startOfLast(widths []int) int {
	at := 0
	for _, width := range widths[:len(widths)-1] {
		at += width + columnGap
	}
	return at
}

// isBelow tells whether the text of the last column is below the other columns.
func (t *Table) isBelow(s Style, widths []int) bool {
	if !t.Wrap || s.Width == 0 || len(widths) < 2 {
		return false
	}
	room := s.Width - startOfLast(widths)
	return widths[len(widths)-1] > room && (room < minBeside || t.longestWord(len(widths)-1) > room)
}

// longestWord is the width of the longest word of a column.
func (t *Table) longestWord(column int) int {
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

// lastCell fits the cell of the last column to the width.
func (t *Table) lastCell(s Style, c Cell, widths []int, below bool) string {
	at := startOfLast(widths)
	switch {
	case s.Width == 0:
		return s.Paint(c.Tone, c.Text)
	case below && c.Text == "-":
		return ""
	case below:
		margin := "\n" + belowMargin
		return margin + strings.Join(paintLines(s, c, s.Width-len(belowMargin)), margin)
	case t.Wrap:
		return strings.Join(paintLines(s, c, s.Width-at), "\n"+strings.Repeat(" ", at))
	default:
		return s.Paint(c.Tone, Fit(c.Text, max(s.Width-at, minLastColumn)))
	}
}

// paintLines breaks the text of a cell into lines of so many columns.
func paintLines(s Style, c Cell, columns int) []string {
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

// OrDash shows that there is nothing.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
