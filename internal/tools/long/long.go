// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package long says whether the long tests run: they run with the build tag "long", which make test-long sets. Tests
// that take minutes are in files with that tag. Tests with random cases run more cases.
package long

// Cases returns how many random cases a test runs: few in make test, many in make test-long.
func Cases(few, many int) int {
	if enabled {
		return many
	}
	return few
}
