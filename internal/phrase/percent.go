// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"fmt"
	"math"
)

// Percent formats a part, with 1 for the whole, in percent. It rounds towards zero, so that no part looks larger than
// it is: "100 %" is the whole, and "0 %" is nothing. Below 1 % and above 90 % it has one more digit, as in "0.5 %" and
// "99.9 %". A negative part is formatted as "-0.1 %" or less.
func Percent(part float64) string {
	if part < 0 {
		return "-" + Percent(max(-part, 0.001))
	}
	// In binary, 0.29 is slightly less than 0.29. The result must be 29 %.
	percent := 100*part + 1e-9
	switch {
	case part == 0:
		return "0 %"
	case percent < 0.1:
		return "less than 0.1 %"
	case percent < 1, percent >= 90.1 && part < 1:
		return fmt.Sprintf("%.1f %%", min(99.9, math.Floor(10*percent)/10))
	default:
		return fmt.Sprintf("%.0f %%", math.Floor(percent))
	}
}
