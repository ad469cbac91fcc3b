// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import "testing"

func TestPercent(t *testing.T) {
	for part, want := range map[float64]string{
		0: "0 %", 1e-12: "less than 0.1 %", 0.0004: "less than 0.1 %", 0.001: "0.1 %", 0.003: "0.3 %", 0.005: "0.5 %",
		0.0099: "0.9 %", 0.01: "1 %", 0.019: "1 %", 0.29: "29 %", 0.57: "57 %", 0.9: "90 %", 0.95: "95.0 %",
		0.9999: "99.9 %", 0.999999999999: "99.9 %", 1: "100 %", 1.5: "150 %",
		-0.003: "-0.3 %", -0.0004: "-0.1 %", -0.12: "-12 %", -2: "-200 %",
	} {
		if got := Percent(part); got != want {
			t.Errorf("%g is %q, want %q", part, got, want)
		}
	}
}
