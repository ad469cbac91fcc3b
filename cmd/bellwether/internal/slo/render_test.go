// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestLeftCell(t *testing.T) {
	for left, want := range map[float64]term.Cell{
		1: {Text: "100 %", Tone: term.Good}, 0.29: {Text: "29 %", Tone: term.Good},
		0.005: {Text: "0.5 %", Tone: term.Warn}, 0: {Text: "0 %", Tone: term.Bad},
		-0.003: {Text: "-0.3 %", Tone: term.Bad},
	} {
		if got := buildLeftCell(budgets.Budget{Left: &left, LeftExcluding: &left}); got != want {
			t.Errorf("%g is %+v, want %+v", left, got, want)
		}
	}
}
