// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package backup

import (
	"os"
	"testing"
	"time"
)

// TestMeasure runs the benchmark once, small.
func TestMeasure(t *testing.T) {
	section, err := Measure(t.Context(), os.Stderr, Options{Objects: 300, Runs: 1, Settle: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(section.Rows) != 4 {
		t.Errorf("rows: %+v", section.Rows)
	}
	for _, row := range section.Rows {
		t.Logf("%s: %s against %s", row.Name, row.Ours, row.Peer)
	}
}
