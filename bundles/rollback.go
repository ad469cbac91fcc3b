// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

// RollbackClass is the effort that is needed to return from a version to an older version.
type RollbackClass string

const (
	// RollbackInPlace needs no preparation: the older version is installed over the newer version, and stored objects
	// stay valid.
	RollbackInPlace RollbackClass = "in-place"
	// RollbackNeedsBackup loses data unless the custom resources were saved before the upgrade.
	RollbackNeedsBackup RollbackClass = "needs-backup"
	// RollbackOneWay means that a rollback is impossible.
	RollbackOneWay RollbackClass = "one-way"
)

// Rollback describes the rollback along one edge of the upgrade graph.
type Rollback struct {
	// From is the name of the older bundle, which is the target of the rollback.
	From   string        `json:"from"`
	Class  RollbackClass `json:"class"`
	Reason string        `json:"reason"`
}
