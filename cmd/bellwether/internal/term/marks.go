// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import "github.com/bellwether-dev/bellwether/explain"

// MarksCell returns the marks of an object in a list.
func MarksCell(s explain.MarkSet) Cell {
	text := s.String()
	if text == "" {
		return Dim.Cell("-")
	}
	return Warn.Cell(text)
}

// AddMarks adds a row with the marks of an object to the table facts, if the object has marks.
func AddMarks(facts *Table, s explain.MarkSet) {
	if text := s.Details(); text != "" {
		facts.Add(Cell{Text: "Marks:"}, Warn.Cell(text))
	}
}
