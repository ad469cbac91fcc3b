// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Manifests returns the manifests of the older bundle from, as JSON, in the form in which they are installed over the
// bundle to: the definitions that Kept names come from the newer bundle.
func Manifests(from, to *bundles.Bundle, history []*bundles.Bundle, stored Stored) ([][]byte, error) {
	kept := ListKeptDefinitions(from, to, history, stored)
	rolledBack := *from
	rolledBack.Objects = slices.Clone(from.Objects)
	for i, o := range rolledBack.Objects {
		if newer := to.CRDObject(o.GetName()); newer != nil && from.CRDObject(o.GetName()) == o &&
			slices.Contains(kept, o.GetName()) {
			rolledBack.Objects[i] = newer
		}
	}
	return rolledBack.Manifests()
}

// Consent is the permission for a rollback that loses data.
type Consent struct {
	// BackedUp is true if the custom resources were saved before the upgrade and the backup was verified.
	BackedUp bool
	// Forced is true if a person accepts the loss.
	Forced bool
}

// FormatRefusal returns the reason why a planned rollback must not be executed; empty if it is permitted. to is the
// version or the name of the newer bundle, for the text. An impossible rollback is never permitted.
func FormatRefusal(planned bundles.Rollback, to string, consent Consent) string {
	switch {
	case planned.Class == bundles.RollbackInPlace:
		return ""
	case planned.Class == bundles.RollbackNeedsBackup && (consent.BackedUp || consent.Forced):
		return ""
	case planned.Class == bundles.RollbackNeedsBackup:
		return fmt.Sprintf("Going back from %s to %s may lose data of custom resources, and there is no verified "+
			"backup of them: %s.", to, planned.From, planned.Reason)
	default:
		return fmt.Sprintf("It is impossible to go back from %s to %s: %s.", to, planned.From, planned.Reason)
	}
}
