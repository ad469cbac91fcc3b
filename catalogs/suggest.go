// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest returns a text with the existing names that are most similar to the wanted name.
func suggest(wanted string, existing []string) string {
	if len(existing) == 0 {
		return "there are none"
	}
	if len(existing) <= maxListed {
		return "the catalog has " + strings.Join(existing, ", ")
	}
	byDistance := slices.Clone(existing)
	slices.SortStableFunc(byDistance, func(a, b string) int {
		return cmp.Compare(levenshtein.ComputeDistance(wanted, a), levenshtein.ComputeDistance(wanted, b))
	})
	return "the nearest are " + strings.Join(byDistance[:3], ", ")
}
