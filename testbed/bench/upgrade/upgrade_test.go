// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package upgrade_test

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/upgrade"
)

func TestMeasure(t *testing.T) {
	section, err := upgrade.Measure(t.Context(), t.Output(), upgrade.Options{Pairs: 1, Settle: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range section.Rows {
		if row.Ours.String() == "" || row.Runs != 1 {
			t.Errorf("%s: %+v", row.Name, row)
		}
	}
	t.Log(section.Detail)
}
