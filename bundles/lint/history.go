// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// FindPredecessor returns the version that b upgrades: the version in its spec.replaces, or else the highest version
// below b; nil if there is neither.
func FindPredecessor(b *bundles.Bundle, history []*bundles.Bundle) *bundles.Bundle {
	replaced := slices.IndexFunc(history, func(old *bundles.Bundle) bool {
		return b.CSV.Spec.Replaces != "" && old.Name == b.CSV.Spec.Replaces
	})
	if replaced >= 0 {
		return history[replaced]
	}
	var highest *bundles.Bundle
	for _, old := range history {
		if old.Version.LT(b.Version) && (highest == nil || highest.Version.LT(old.Version)) {
			highest = old
		}
	}
	return highest
}

// Reduce returns a published version with only the data that rules need, so that long histories use little memory. It
// returns nil if the published version is b itself. archive is the same as in Input.
func Reduce(archive *crd.Archive, b, published *bundles.Bundle) *bundles.Bundle {
	if published.Name == b.Name && hasSameContent(published, b) {
		return nil
	}
	return archive.Reduce(published)
}

// SortHistory sorts versions from the oldest to the newest and removes b itself, which is a version with the same name
// and the same content.
func SortHistory(b *bundles.Bundle, all []*bundles.Bundle) []*bundles.Bundle {
	out := slices.DeleteFunc(slices.Clone(all),
		func(old *bundles.Bundle) bool { return old.Name == b.Name && hasSameContent(old, b) })
	slices.SortStableFunc(out, func(x, y *bundles.Bundle) int { return x.Version.Compare(y.Version) })
	return out
}

// hasSameContent reports whether two bundles have equal objects in the same order.
func hasSameContent(a, b *bundles.Bundle) bool {
	return slices.EqualFunc(a.Objects, b.Objects,
		func(x, y *bundles.Object) bool { return equality.Semantic.DeepEqual(x.Object, y.Object) })
}
