// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package budgets

import "github.com/bellwether-dev/bellwether/phrase"

// Parts of an error budget below which it deserves a look.
const (
	// LowBelow is the part below which tables and dashboards show a budget as low.
	LowBelow = 0.25
	// ReportBelow is the part below which a handover report lists a budget as open.
	ReportBelow = 0.2
)

// LeftText says how much is left of a budget, as in "12 % left"; nil means that it is not known.
func LeftText(left *float64) string {
	switch {
	case left == nil:
		return "no data"
	case *left > 0:
		return phrase.Percent(*left) + " left"
	case *left < 0:
		return "overspent by " + phrase.Percent(-*left)
	}
	return "spent"
}
