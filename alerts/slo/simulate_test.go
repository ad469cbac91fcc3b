// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"math"
	"math/rand/v2"
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
		// A slice more than the formula, spread by the ratio; or the guard's three, or five that are apart.
		latest := math.Max((tm.Formula*tm.Ratio+1)/tm.Ratio, float64(countGuardScrapes(Guard))/tm.Ratio) + 1
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
	if in := got.Incidents; in.Severe < 100 || in.Recall < 0.9 || in.Precision < 0.9 {
		t.Errorf("incidents: %+v", in)
	}
	if _, err := Simulate(Simulation{Objective: Objective{Target: One}}); !errors.Is(err, ErrTarget) {
		t.Errorf("a target of 100: %v", err)
	}
}

// TestFalsePages plays bad scrapes that are independent of each other, one in a thousand, for 30 days each.
func TestFalsePages(t *testing.T) {
	const runs = 150
	for _, each := range []int{1, 2, 4} {
		random := rand.New(rand.NewPCG(3, 0))
		found := 0
		for range runs {
			scrapes := drawIndependent(random, each*int(DefaultPeriod/Step), 0.001)
			found += len(listPages(NewJudge(Objective{Target: 999_000}).Judge(Slices(scrapes, each))))
		}
		t.Logf("%d scrapes in a slice: %d false pages in %d periods", each, found, runs)
		if float64(found)/runs > 0.1 {
			t.Errorf("%d scrapes in a slice: %d false pages in %d periods of 30 days", each, found, runs)
		}
	}
}

// TestSevere checks which incidents need a page: incidents that take more than 2 % of the budget
// of 43 minutes within an hour, or 5 % within six hours, even if no rule could detect them.
func TestSevere(t *testing.T) {
	j := NewJudge(Objective{Target: 999_000})
	apart := func(bad, scrapes int) []Slice {
		out := make([]Slice, bad*scrapes)
		for i := range bad {
			out[i*scrapes] = Bad
		}
		return out
	}
	for name, test := range map[string]struct {
		incident []Slice
		want     bool
	}{
		"one bad scrape":                {apart(1, 1), false},
		"a minute":                      {apart(2, 1), true},
		"two scrapes, 20 minutes apart": {apart(2, 40), true},
		"two scrapes, two hours apart":  {apart(2, 240), false},
		"four in six hours":             {apart(4, 180), false},
		"five in six hours":             {apart(5, 140), true},
	} {
		if got := j.isSevere(test.incident); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
