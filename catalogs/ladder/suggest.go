// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggestName returns a hint for a name that does not exist: the existing name that was probably meant, or all
// existing names.
func suggestName(wanted string, existing []string) string {
	if len(existing) == 0 {
		return "there are none"
	}
	best := slices.MinFunc(existing, func(a, b string) int {
		return cmp.Compare(countEdits(wanted, a),
			countEdits(wanted, b))
	})
	if countEdits(wanted, best) <= max(2, len(wanted)/3) {
		return "did you mean " + best + "?"
	}
	return "there are " + strings.Join(existing, ", ")
}

// countEdits returns the number of edits between two names; upper and lower case are equal.
func countEdits(a, b string) int {
	const maxLength = 64 // longer names are cut, because a typing error has few edits
	return levenshtein.ComputeDistance(strings.ToLower(a[:min(len(a), maxLength)]),
		strings.ToLower(b[:min(len(b), maxLength)]))
}
