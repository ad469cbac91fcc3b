// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "encoding/json"

// PropertyRollback is a bundle's property that says, for each bundle it can directly replace, how one gets back. Its
// value is a list of Rollback.
const PropertyRollback = "bellwether.dev/rollback"

// RollbackClass says what it takes to go back from a version to the one before.
type RollbackClass string

const (
	// RollbackInPlace needs nothing: the older version is installed over the newer one, and no stored object is harmed.
	RollbackInPlace RollbackClass = "in-place"
	// RollbackNeedsBackup loses data unless the custom resources were saved before the upgrade.
	RollbackNeedsBackup RollbackClass = "needs-backup"
	// RollbackOneWay cannot be done.
	RollbackOneWay RollbackClass = "one-way"
)

// Rollback is the way back along one edge of the upgrade graph.
type Rollback struct {
	// From names the older bundle, to which the way back leads.
	From   string        `json:"from"`
	Class  RollbackClass `json:"class"`
	Reason string        `json:"reason"`
}

// Rollbacks returns the ways back that the catalog knows of; a property that does not parse says nothing.
func (b *Bundle) Rollbacks() []Rollback {
	var out []Rollback
	for _, p := range b.Properties {
		var ways []Rollback
		if p.Type == PropertyRollback && json.Unmarshal(p.Value, &ways) == nil {
			out = append(out, ways...)
		}
	}
	return out
}
