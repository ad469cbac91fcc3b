// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Predecessor returns the version that b is an upgrade of: the one that its
// spec.replaces names, or else the highest below it; nil if there is neither.
func Predecessor(b *bundles.Bundle, history []*bundles.Bundle) *bundles.Bundle {
	if i := slices.IndexFunc(history, func(old *bundles.Bundle) bool {
		return b.CSV.Spec.Replaces != "" && old.Name == b.CSV.Spec.Replaces
	}); i >= 0 {
		return history[i]
	}
	var best *bundles.Bundle
	for _, old := range history {
		if old.Version.LT(b.Version) && (best == nil || best.Version.LT(old.Version)) {
			best = old
		}
	}
	return best
}

// Reduce returns a published version as far as rules look at it, so that long histories take little memory; nil if it
// is b itself. The archive is the one of Input.
func Reduce(archive *crd.Archive, b, published *bundles.Bundle) *bundles.Bundle {
	if published.Name == b.Name && sameContent(published, b) {
		return nil
	}
	return archive.Reduce(published)
}

// History sorts versions from the oldest to the newest, and leaves out b
// itself: what has its name and its very content.
func History(b *bundles.Bundle, all []*bundles.Bundle) []*bundles.Bundle {
	out := slices.DeleteFunc(slices.Clone(all),
		func(old *bundles.Bundle) bool { return old.Name == b.Name && sameContent(old, b) })
	slices.SortStableFunc(out, func(x, y *bundles.Bundle) int { return x.Version.Compare(y.Version) })
	return out
}

func sameContent(a, b *bundles.Bundle) bool {
	return slices.EqualFunc(a.Objects, b.Objects,
		func(x, y *bundles.Object) bool { return equality.Semantic.DeepEqual(x.Object, y.Object) })
}
