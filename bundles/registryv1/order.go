// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

import "github.com/blang/semver/v4"

// CompareVersions orders versions as OLM v1 does: as semantic versions and then, which those forbid, by build metadata.
// To OLM v0, versions that differ in their build metadata only are equal: upgrades between them have to name bundles.
func CompareVersions(a, b semver.Version) int {
	if c := a.Compare(b); c != 0 {
		return c
	}
	x, y := release(a), release(b)
	if len(x) == 0 || len(y) == 0 {
		return len(x) - len(y)
	}
	return semver.Version{Pre: x}.Compare(semver.Version{Pre: y})
}

// release is build metadata as OLM v1 orders by it; empty if it cannot.
func release(v semver.Version) []semver.PRVersion {
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
