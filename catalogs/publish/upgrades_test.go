// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import "testing"

// TestCountsOfUpgradePaths has paths of OLM v1 without a channel, which are compared too, and both differing and
// broken paths.
func TestCountsOfUpgradePaths(t *testing.T) {
	lines := func(n int) []string { return make([]string, n) }
	for name, tc := range map[string]struct {
		packages []upgradeCheck
		verdict  Verdict
		text     string
	}{
		"all agree": {[]upgradeCheck{{routes: 4, unpinned: 3}, {routes: 2}}, Passed,
			"all 6 upgrade paths reach the head, and OLM v0 and OLM v1 agree"},
		"some differ": {[]upgradeCheck{{routes: 4, unpinned: 3, details: lines(6)}, {routes: 2}}, Warning,
			"6 of 9 upgrade paths differ between OLM v0, OLM v1 and the plan"},
		"one is broken": {[]upgradeCheck{{routes: 4, details: lines(1), broken: 1}}, Failed,
			"1 of 4 upgrade paths do not reach the head"},
		"one is broken, others differ": {[]upgradeCheck{{routes: 4, details: lines(2), broken: 1},
			{routes: 2, unpinned: 1, details: lines(1)}}, Failed, "1 of 7 upgrade paths do not reach the head, and 2 " +
			"more differ between OLM v0, OLM v1 and the plan"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarizeUpgrades(tc.packages); got.Verdict != tc.verdict || got.Text != tc.text {
				t.Errorf("%v: %s\nwant %v: %s", got.Verdict, got.Text, tc.verdict, tc.text)
			}
		})
	}
}
