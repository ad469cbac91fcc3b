// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package budgets

import "github.com/bellwether-dev/bellwether/internal/phrase"

// Parts of an error budget below which it needs attention.
const (
	// LowBelow is the part below which tables and dashboards show a budget as low.
	LowBelow = 0.25
	// ReportBelow is the part below which a handover report lists a budget as open.
	ReportBelow = 0.2
)

// LeftText returns the remaining part of a budget as text, as in "12 % left". Nil means that it is unknown.
func LeftText(remaining *float64) string {
	switch {
	case remaining == nil:
		return "no data"
	case *remaining > 0:
		return phrase.Percent(*remaining) + " left"
	case *remaining < 0:
		return "overspent by " + phrase.Percent(-*remaining)
	}
	return "spent"
}
