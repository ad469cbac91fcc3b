// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"slices"
	"strings"
)

// suggest names the existing ones that look most like what was asked for.
func suggest(wanted string, existing []string) string {
	if len(existing) == 0 {
		return "there are none"
	}
	if len(existing) <= maxListed {
		return "the catalog has " + strings.Join(existing, ", ")
	}
	near := slices.Clone(existing)
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance(wanted, a), distance(wanted, b)) })
	return "the nearest are " + strings.Join(near[:3], ", ")
}

// distance is the number of single-byte edits between two names (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
