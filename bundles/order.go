// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import "github.com/blang/semver/v4"

// CompareVersions orders versions as OLM v1 does: by semantic version and then by build metadata, although the semantic
// version standard ignores build metadata. For OLM v0, versions that differ only in build metadata are equal, so
// upgrades between such versions must name bundles.
func CompareVersions(a, b semver.Version) int {
	if c := a.Compare(b); c != 0 {
		return c
	}
	x, y := parseBuildMetadata(a), parseBuildMetadata(b)
	if len(x) == 0 || len(y) == 0 {
		return len(x) - len(y)
	}
	return semver.Version{Pre: x}.Compare(semver.Version{Pre: y})
}

// parseBuildMetadata returns build metadata in the form that OLM v1 uses for ordering; empty if it cannot be parsed.
func parseBuildMetadata(v semver.Version) []semver.PRVersion {
	var out []semver.PRVersion
	for _, part := range v.Build {
		p, err := semver.NewPRVersion(part)
		if err != nil {
			return nil
		}
		out = append(out, p)
	}
	return out
}
