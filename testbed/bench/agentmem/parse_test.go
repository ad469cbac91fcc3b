// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentmem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresOfABenchmark(t *testing.T) {
	const output = `goos: linux
BenchmarkResidentMemory
    agentmem_test.go:80: resident memory: idle 40.1 MiB
BenchmarkResidentMemory-2   	       1	105309171 ns/op	        70.50 30-operators-MiB	        40.10 idle-MiB	        99.00 upgraded-MiB	        80.00 restarted-MiB
PASS
`
	want := map[string]float64{"ns/op": 105309171, "30-operators-MiB": 70.5, "idle-MiB": 40.1, "upgraded-MiB": 99,
		"restarted-MiB": 80}
	metrics := parse(output)
	if diff := cmp.Diff(want, metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	small := map[string]float64{"idle-MiB": 1, "30-operators-MiB": 1, "upgraded-MiB": 1, "restarted-MiB": 1}
	missed := report([]map[string]float64{small, metrics}).Missed()
	if diff := cmp.Diff([]string{"agent, 30 operators, all just upgraded"}, missed); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
	if missed := report([]map[string]float64{nil}).Missed(); len(missed) != 4 {
		t.Errorf("without figures, missed %q, want all of them", missed)
	}
}
