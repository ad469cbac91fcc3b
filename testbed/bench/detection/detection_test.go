// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package detection

import (
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

func TestReportJudges(t *testing.T) {
	of := func(seconds ...int) []time.Duration {
		var out []time.Duration
		for _, s := range seconds {
			out = append(out, time.Duration(s)*time.Second)
		}
		return out
	}
	sides := func(took, critical []time.Duration) []side {
		return []side{{name: "a", took: took, scrape: scrape, promised: promised},
			{name: "b", took: critical, scrape: criticalScrape, promised: promisedCritical}}
	}
	good := report(sides(of(140, 170, 230), of(40, 50, 90)))
	if missed := good.Missed(); len(missed) != 0 {
		t.Errorf("missed %q", missed)
	}
	if got := good.Rows[3]; got.Ours.String() != "50.00 s" || got.Runs != 3 {
		t.Errorf("the critical operator: %+v", got)
	}
	bad := report(sides(of(140, 180, 190), of(40, 60, 90))).Missed()
	if len(bad) != 2 || !strings.Contains(bad[0], "a: outage to page, median") ||
		!strings.Contains(bad[1], "b: outage to page, median") {
		t.Errorf("missed %q", bad)
	}
}

// TestRules looks for the group of critical operators.
func TestRules(t *testing.T) {
	const group = "bellwether-sli-critical"
	for criticality, want := range map[string]int{"Standard": 0, slo.Critical: 1} {
		rules, err := ruleFile(criticality)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(rules), group); got != want {
			t.Errorf("%s: %d groups %s, want %d", criticality, got, group, want)
		}
	}
}
