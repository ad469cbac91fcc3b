// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"strings"

	"github.com/blang/semver/v4"
)

// VersionInName returns the version in a conventional bundle name such as "demo.v1.2.3" or "demo.1.2.3", and false if
// the name has none.
func VersionInName(name string) (semver.Version, bool) {
	_, text, ok := strings.Cut(name, ".")
	if !ok {
		return semver.Version{}, false
	}
	version, err := semver.ParseTolerant(strings.TrimPrefix(text, "v"))
	return version, err == nil
}
