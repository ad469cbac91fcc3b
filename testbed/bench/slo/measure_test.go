// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package slo

import (
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// TestMeasure runs the benchmark with rounds of seconds: its figures are worth nothing, but every rule of every side
// has to load, to be evaluated without an error, and to find the trouble that the fleet has.
func TestMeasure(t *testing.T) {
	o := Options{
		Fleet: fleet.Size{Operators: fleet.LeastOperators, Clusters: fleet.LeastClusters, History: 26 * 60, Ahead: 60,
			Seed: 1},
		Round: 3 * time.Second, Rounds: 4, Together: true, Clusters: []int{2 * fleet.LeastClusters},
		Hub: 2 * fleet.LeastClusters,
	}
	results, err := claimed(t.Context(), t.Output(), o, (*bench).compare)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.rules() != r.Recording+r.Alerting {
			t.Errorf("%s: %d rules are loaded, want %d", r.name, r.Recording+r.Alerting, r.rules())
		}
		if (r.alerts > 0) != (len(r.groups) > 0) {
			t.Errorf("%s: %d alerts", r.name, r.alerts)
		}
		if cpu := r.after.cpu - r.before.cpu; cpu <= 0 || r.memory <= 0 {
			t.Errorf("%s: processor time %s, memory %d", r.name, cpu, r.memory)
		}
	}
	section := report(o, results)
	if len(section.Rows) != 9+1 {
		t.Errorf("%d rows, want 10", len(section.Rows))
	}
	larger, err := MeasureSizes(t.Context(), t.Output(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Bellwether, hub part | 8 |", "| 24 (extrapolated) |", "bellwether-sli | 1m0s |"} {
		if !strings.Contains(larger.Detail, part) {
			t.Errorf("the details do not say %q:\n%s", part, larger.Detail)
		}
	}
	t.Log(section.Detail)
}
