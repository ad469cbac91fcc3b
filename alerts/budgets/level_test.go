// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package budgets_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
)

func TestLeftText(t *testing.T) {
	t.Parallel()
	for left, want := range map[float64]string{
		1: "100 % left", 0.9999: "99.9 % left", 0.29: "29 % left", 0.57: "57 % left", 0.005: "0.5 % left",
		0.0004: "less than 0.1 % left", 0: "spent", -0.003: "overspent by 0.3 %", -2: "overspent by 200 %",
	} {
		if got := budgets.LeftText(&left); got != want {
			t.Errorf("%g is %q, want %q", left, got, want)
		}
	}
	if got := budgets.LeftText(nil); got != "no data" {
		t.Errorf("what is not known is %q", got)
	}
}
