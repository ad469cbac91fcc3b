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
// last column is cut, or broken into lines if the table wraps.
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
	var out strings.Builder
	if len(t.Header) > 0 {
		header := make([]Cell, len(t.Header))
		for i, name := range t.Header {
			header[i] = Cell{Text: name, Tone: Dim}
		}
		t.writeRow(&out, s, widths, header)
	}
	for _, row := range t.Rows {
		t.writeRow(&out, s, widths, row)
	}
	return out.String()
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

func (t *Table) writeRow(out *strings.Builder, s Style, widths []int, row []Cell) {
	for len(row) > 0 && row[len(row)-1].Text == "" {
		row = row[:len(row)-1]
	}
	at := 0
	for i, c := range row {
		if i == len(row)-1 {
			out.WriteString(t.lastCell(s, c, at))
			break
		}
		out.WriteString(s.Paint(c.Tone, c.Text))
		out.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(c.Text)+columnGap))
		at += widths[i] + columnGap
	}
	out.WriteByte('\n')
}

// Limits of a last column that is short of room.
const (
	minLastColumn = 8
	MinWrapped    = 24
)

// lastCell fits a cell that starts at a column to the width.
func (t *Table) lastCell(s Style, c Cell, at int) string {
	switch {
	case s.Width == 0:
		return s.Paint(c.Tone, c.Text)
	case t.Wrap && s.Width-at >= MinWrapped:
		lines := phrase.Wrap(c.Text, s.Width-at)
		for i := range lines {
			lines[i] = s.Paint(c.Tone, lines[i])
		}
		return strings.Join(lines, "\n"+strings.Repeat(" ", at))
	default:
		return s.Paint(c.Tone, Fit(c.Text, max(s.Width-at, minLastColumn)))
	}
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
