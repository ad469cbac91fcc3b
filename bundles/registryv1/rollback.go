// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

// RollbackClass says what is needed to go back from a version to an older one.
type RollbackClass string

const (
	// RollbackInPlace needs nothing: the older version is installed over the newer one, and no stored object is harmed.
	RollbackInPlace RollbackClass = "in-place"
	// RollbackNeedsBackup loses data unless the custom resources were saved before the upgrade.
	RollbackNeedsBackup RollbackClass = "needs-backup"
	// RollbackOneWay means that going back is impossible.
	RollbackOneWay RollbackClass = "one-way"
)

// Rollback describes how to go back along one edge of the upgrade graph.
type Rollback struct {
	// From is the name of the older bundle, to which one goes back.
	From   string        `json:"from"`
	Class  RollbackClass `json:"class"`
	Reason string        `json:"reason"`
}
