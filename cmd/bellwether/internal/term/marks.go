// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import "github.com/bellwether-dev/bellwether/explain/marks"

// MarksCell is the marks of an object in a list.
func MarksCell(s marks.Set) Cell {
	text := s.String()
	if text == "" {
		return Dim.Cell("-")
	}
	return Warn.Cell(text)
}

// AddMarks adds a row with the marks of an object to its facts, if it has any.
func AddMarks(facts *Table, s marks.Set) {
	if text := s.Details(); text != "" {
		facts.Add(Cell{Text: "Marks:"}, Warn.Cell(text))
	}
}
