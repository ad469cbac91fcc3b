// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// nearest answers a name that does not exist with the one that was probably meant, or with all there are.
func nearest(wanted string, existing []string) string {
	if len(existing) == 0 {
		return "there are none"
	}
	best := slices.MinFunc(existing, func(a, b string) int {
		return cmp.Compare(distance(wanted, a),
			distance(wanted, b))
	})
	if distance(wanted, best) <= max(2, len(wanted)/3) {
		return "did you mean " + best + "?"
	}
	return "there are " + strings.Join(existing, ", ")
}

// distance is the number of edits between two names, whatever their case.
func distance(a, b string) int {
	const longest = 64 // what differs more than this is no typing error
	return levenshtein.ComputeDistance(strings.ToLower(a[:min(len(a), longest)]),
		strings.ToLower(b[:min(len(b), longest)]))
}
