// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"fmt"
	"math"
)

// Percent is a part of something, 1 being all of it, in percent. It is rounded towards zero, so that nothing looks
// larger than it is: "100 %" is all, and "0 %" is nothing. Below 1 % and above 90 % it has a digit more, as in "0.5 %"
// and "99.9 %". What is less than nothing is at least "-0.1 %".
func Percent(part float64) string {
	if part < 0 {
		return "-" + Percent(max(-part, 0.001))
	}
	// What is written as 0.29 is a little less than that in binary, and is to be 29 %.
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
