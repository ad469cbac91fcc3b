// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"slices"
	"time"
)

// Listing is what the tables of a list need besides its objects.
type Listing struct {
	Now time.Time
	// Wide adds columns.
	Wide bool
	// Namespaces adds the namespace.
	Namespaces bool
	// Data says that the list is printed as data, and the table is not.
	Data bool
}

// Table adds the namespace's heading where the listing has namespaces.
func (l Listing) Table(t *Table) *Table {
	if l.Namespaces {
		t.Header = slices.Insert(t.Header, 0, "NAMESPACE")
	}
	return t
}

// Row adds the namespace to a row where all namespaces are listed.
func (l Listing) Row(namespace string, row []Cell) []Cell {
	if l.Namespaces {
		return slices.Insert(row, 0, Cell{Text: namespace})
	}
	return row
}
