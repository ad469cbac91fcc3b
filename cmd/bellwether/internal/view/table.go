// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Cell is one field of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Table is aligned text. The last column is cut where the line would be wider
// than the style allows.
type Table struct {
	Header []string
	Rows   [][]Cell
}

const columnGap = 3

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Render returns the table's lines, each ended by a newline.
func (t *Table) Render(s Style) string {
	widths := t.widths()
	var out strings.Builder
	if len(t.Header) > 0 {
		header := make([]Cell, len(t.Header))
		for i, name := range t.Header {
			header[i] = Cell{Text: name, Tone: Dim}
		}
		writeRow(&out, s, widths, header)
	}
	for _, row := range t.Rows {
		writeRow(&out, s, widths, row)
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

func writeRow(out *strings.Builder, s Style, widths []int, row []Cell) {
	for len(row) > 0 && row[len(row)-1].Text == "" {
		row = row[:len(row)-1]
	}
	at := 0
	for i, c := range row {
		text := c.Text
		last := i == len(row)-1
		if last && s.Width > 0 {
			text = fit(text, max(s.Width-at, 8))
		}
		out.WriteString(s.Paint(c.Tone, text))
		if !last {
			out.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(text)+columnGap))
			at += widths[i] + columnGap
		}
	}
	out.WriteByte('\n')
}

// plain makes cells without a tone.
func plain(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i] = Cell{Text: text}
	}
	return cells
}

// orDash shows that there is nothing.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
