// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSimulate(t *testing.T) {
	s := Simulation{Objective: Objective{Target: 999_000}, Seed: 7, Runs: 40}
	got, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Simulate(s)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("the same seed gives another result:\n%s", diff)
	}
	for _, tm := range got.Timings {
		if tm.Formula < 0 {
			if tm.Detected >= 0 {
				t.Errorf("tier %s at %v: detected after %v, and never is right", tm.Tier, tm.Ratio, tm.Detected)
			}
			continue
		}
		// A slice more than the formula, spread by the ratio; or the guard's three.
		latest := math.Max((tm.Formula*tm.Ratio+1)/tm.Ratio, Guard/tm.Ratio) + 1
		if tm.Detected < tm.Formula || tm.Detected > latest {
			t.Errorf("tier %s at %v: detected after %v, formula %v", tm.Tier, tm.Ratio, tm.Detected, tm.Formula)
		}
		if math.Abs(tm.Reset-tm.ResetFormula) > 1/tm.Ratio+1 {
			t.Errorf("tier %s at %v: reset after %v, formula %v", tm.Tier, tm.Ratio, tm.Reset, tm.ResetFormula)
		}
	}
	if got.Noise.Unguarded < 10 || got.Noise.Guarded > 1 {
		t.Errorf("noise: %+v; the guard should leave less than one page in 30 days of more than ten", got.Noise)
	}
	if in := got.Incidents; in.Severe < 100 || in.Recall < 0.99 || in.Precision < 0.9 {
		t.Errorf("incidents: %+v", in)
	}
	if _, err := Simulate(Simulation{Objective: Objective{Target: One}}); !errors.Is(err, ErrTarget) {
		t.Errorf("a target of 100: %v", err)
	}
}
