// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"slices"
	"time"
)

// Listing has the options for the tables of a list.
type Listing struct {
	Now time.Time
	// Wide adds more columns.
	Wide bool
	// Namespaces adds the column with the namespace.
	Namespaces bool
	// Data is set if the list is printed as data, and not as a table.
	Data bool
}

// Table adds the header of the namespace if the listing has namespaces.
func (l Listing) Table(t *Table) *Table {
	if l.Namespaces {
		t.Header = slices.Insert(t.Header, 0, "NAMESPACE")
	}
	return t
}

// Row adds the namespace to a row if the listing has namespaces.
func (l Listing) Row(namespace string, row []Cell) []Cell {
	if l.Namespaces {
		return slices.Insert(row, 0, Cell{Text: namespace})
	}
	return row
}
