// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Manifests returns the manifests of the older bundle from as they are installed
// over the bundle to, as JSON: the definitions that Kept names are those of the
// newer bundle.
func Manifests(from, to *bundles.Bundle, history []*bundles.Bundle, stored Stored) ([][]byte, error) {
	kept := Kept(from, to, history, stored)
	back := *from
	back.Objects = slices.Clone(from.Objects)
	for i, o := range back.Objects {
		if newer := to.CRDObject(o.GetName()); newer != nil && from.CRDObject(o.GetName()) == o &&
			slices.Contains(kept, o.GetName()) {
			back.Objects[i] = newer
		}
	}
	return back.Manifests()
}

// Consent is what permits a rollback that loses data.
type Consent struct {
	// BackedUp says that the custom resources were saved before the upgrade, and
	// that the backup was verified.
	BackedUp bool
	// Forced says that a person accepts the loss.
	Forced bool
}

// Refusal says why a rollback must not be carried out; empty where it may be.
// Nothing permits one that is impossible.
func Refusal(way registryv1.Rollback, to string, consent Consent) string {
	switch {
	case way.Class == registryv1.RollbackInPlace:
		return ""
	case way.Class == registryv1.RollbackNeedsBackup && (consent.BackedUp || consent.Forced):
		return ""
	case way.Class == registryv1.RollbackNeedsBackup:
		return fmt.Sprintf("Going back from %s to %s may lose data of custom resources, and there is no verified "+
			"backup of them: %s.", to, way.From, way.Reason)
	default:
		return fmt.Sprintf("It is impossible to go back from %s to %s: %s.", to, way.From, way.Reason)
	}
}
