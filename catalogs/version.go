// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"

	"github.com/blang/semver/v4"
)

// CompareVersions orders versions as semantic versions; a leading v is allowed. A text that is not a version comes
// before all versions; such texts are ordered as text.
func CompareVersions(a, b string) int {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	case errX == nil:
		return 1
	case errY == nil:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}
