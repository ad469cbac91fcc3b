// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFeasible(t *testing.T) {
	for name, test := range map[string]struct {
		objective Objective
		// want are the tiers with findings. Impossible tiers have the prefix !.
		want string
		text string
	}{
		"99.5 %": {Objective{SLI: "csv", Target: 995_000}, "", ""},
		"confirmed": {Objective{SLI: "csv", Target: 999_000}, "1h",
			"exceeded after 1 bad minute, and it alerts when the two newest scrapes were bad,"},
		"guarded": {Objective{SLI: "panic", Target: 999_000}, "1h",
			"exceeded after 1 bad minute, and it alerts after 3,"},
		"two minutes of a month": {Objective{SLI: "csv", Target: 999_950}, "1h 6h 1d 3d", ""},
		"two minutes that are not enough": {Objective{SLI: "panic", Target: 999_950}, "1h 6h 1d 3d !",
			"allows 2 bad minutes of 30d, fewer than the 3 that it takes to alert"},
		"low target":           {Objective{SLI: "csv", Target: 930_000}, "1h", "need 100.8 % of slices"},
		"close to the bound":   {Objective{SLI: "csv", Target: 936_000}, "1h", "instead of 92.16"},
		"no budget at all":     {Objective{SLI: "csv", Target: 999_999}, "1h 6h 1d 3d !", "lower the target"},
		"default profile's 99": {Objective{SLI: "queue", Target: 990_000}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got, texts []string
			for _, f := range Feasible(test.objective) {
				mark := ""
				if f.Impossible {
					mark = "!"
				}
				got, texts = append(got, mark+f.Tier), append(texts, f.Message)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(texts, "\n"), test.text) {
				t.Errorf("no %q in %q", test.text, texts)
			}
		})
	}
}

// TestJudgeKeepsToTheFormulas finds the first minute of every tier's alert in a
// lasting failure by judging it slice by slice.
func TestJudgeKeepsToTheFormulas(t *testing.T) {
	for _, target := range []PPM{900_000, 930_000, 950_000, 990_000, 995_000, 999_000, 999_900} {
		for _, n := range []int{1, 2, 5, 20} { // one slice of n is bad
			timeline := make([]Slice, 4*24*60)
			for i := range timeline {
				// The first slice is good, so that the first bad one ends a whole interval.
				if i%n == n-1 {
					timeline[i] = Bad
				}
			}
			j := NewJudge(Objective{Target: target})
			for _, tier := range Tiers() {
				want, ok := tier.Detection(target, DefaultPeriod, 1/float64(n))
				first := -1
				for i, firing := range j.evaluateTier(tier, Slices(timeline, 1)) {
					if firing {
						first = i + 1
						break
					}
				}
				// A failure whose ratio is at the threshold alerts or not by how its slices fall.
				if near := tier.Threshold(target, DefaultPeriod) * float64(n); near > 0.8 && near < 1.25 {
					continue
				}
				if got := first * int(Step); (first > 0) != ok || ok && got != int(want) {
					t.Errorf("%s, one of %d, tier %s: first alert after %d minutes, want %s (%t)", target, n, tier.Name,
						first, want, ok)
				}
			}
		}
	}
}

func TestRetentionFinding(t *testing.T) {
	for name, tc := range map[string]struct {
		retention, period time.Duration
		found             bool
	}{
		"no limit": {0, 30 * day, false}, "the same": {30 * day, 30 * day, false}, "longer": {40 * day, 30 * day, false},
		"shorter": {15 * day, 30 * day, true},
	} {
		if got := RetentionFinding(tc.retention, tc.period); (got != "") != tc.found {
			t.Errorf("%s: %q", name, got)
		}
	}
}
