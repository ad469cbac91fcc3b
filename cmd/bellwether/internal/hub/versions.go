// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// InstalledVersion returns the version that an install reports; empty if there is
// none.
func InstalledVersion(in *v1alpha1.OperatorInstall) string {
	if in.Status.Installed == nil {
		return ""
	}
	return cmp.Or(in.Status.Installed.Version, in.Status.Installed.Bundle)
}

// CompareVersions orders versions; what is no version comes before all that are.
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
