// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory defines what is recorded of the fleet, so that its history can be queried in SQL: the tables with
// their columns, and the facts that follow from an object of the hub. It is pure. Package store keeps the facts in a
// database, and answers queries.
//
// A fact is a row of a table: what is known of one thing, such as an operator on a cluster, for as long as it does not
// change. The inventory is a copy of what the hub observed. Nothing reads it to decide what to do.
package inventory

import (
	"fmt"
	"slices"
	"time"
)

// TimeFormat is the format of all times in the inventory: UTC, in whole seconds. Texts in this format are in the order
// of the times.
const TimeFormat = "2006-01-02T15:04:05Z"

// FormatTime returns the text of a time in the inventory.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// ColumnType is the type of a column.
type ColumnType string

const (
	// Text values are strings. Times are texts in TimeFormat. The value of an empty text is NULL.
	Text ColumnType = "TEXT"
	// Integer values are whole numbers. Truth values are 0 and 1.
	Integer ColumnType = "INTEGER"
)

// Column is a column of a table.
type Column struct {
	Name string     `json:"name"`
	Type ColumnType `json:"type"`
	// Doc describes the column to users.
	Doc string `json:"doc"`
	// Follows is true if a change of the value does not begin a new row: the row has the last value of its time. Texts
	// and counts that change often are like that.
	Follows bool `json:"-"`
}

// Source is what the facts of a table are observed from. The inventory records when each source was observed.
type Source string

// FromHub are facts from the objects on the hub.
const FromHub Source = "hub"

// Sources returns all sources.
func Sources() []Source { return []Source{FromHub} }

// Table describes one kind of fact.
type Table struct {
	Name string
	// Doc describes a row to users.
	Doc string
	// Key are the columns that identify what a row is about. All are texts.
	Key []Column
	// Values are the other columns.
	Values []Column
	Source Source
	// IsLog is true if rows are never removed because the hub does not have them any more: they are about the past,
	// such as decisions.
	IsLog bool
	// Cluster names the column of the key that has a cluster from which the facts were reported. They are as old as its
	// last report. Empty: the hub itself observes the facts.
	Cluster string
	// Restricted names the column of the key by which is decided who may see a row: a cluster or a namespace.
	Restricted string
}

// Visible is the part of the inventory that a user may see.
type Visible struct {
	AllClusters, AllNamespaces bool
	// Clusters and Namespaces are the names of those that the user may see, if not all.
	Clusters, Namespaces []string
}

// Facts are the rows of a table that one object determines.
type Facts struct {
	Table *Table
	// Owner are the first values of the key that all rows of the object have. What the table has for the owner and
	// Rows do not have is no longer true.
	Owner []string
	Rows  []Row
}

// Row is one fact: the values of the key, and the other values in the order of the table's columns. A value is nil, a
// string or an int64.
type Row struct {
	Key    []string
	Values []any
}

// Tables returns all tables, in the order in which they are documented.
func Tables() []*Table {
	return []*Table{Clusters, Operators, Installs, Drift, Versions, Channels, Rollouts, Waves, Gates, Decisions}
}

// Check returns an error if the facts do not fit their table, which is a defect of the code that made them.
func (f Facts) Check() error {
	for _, row := range f.Rows {
		if len(row.Key) != len(f.Table.Key) || len(row.Values) != len(f.Table.Values) {
			return fmt.Errorf("a row of %s has %d and %d values, want %d and %d", f.Table.Name, len(row.Key),
				len(row.Values), len(f.Table.Key), len(f.Table.Values))
		}
		if !slices.Equal(row.Key[:len(f.Owner)], f.Owner) {
			return fmt.Errorf("a row of %s has the key %q, which is not of the owner %q", f.Table.Name, row.Key,
				f.Owner)
		}
	}
	return nil
}
