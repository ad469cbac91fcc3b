// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package detection

import (
	"strings"
	"testing"
	"time"
)

func TestReportJudges(t *testing.T) {
	of := func(seconds ...int) []time.Duration {
		var out []time.Duration
		for _, s := range seconds {
			out = append(out, time.Duration(s)*time.Second)
		}
		return out
	}
	sides := func(took ...int) []side {
		return []side{{name: "a", took: of(took...), scrape: scrape},
			{name: "b", took: of(40, 50, 90), scrape: quickStep}}
	}
	good := report(sides(140, 170, 230))
	if missed := good.Missed(); len(missed) != 0 {
		t.Errorf("missed %q", missed)
	}
	bad := report(sides(140, 180, 190)).Missed()
	if len(bad) != 1 || !strings.Contains(bad[0], "a: outage to page, median") {
		t.Errorf("missed %q", bad)
	}
	got := good.Rows[3]
	if got.Ours.String() != "50.00 s" || got.Runs != 3 || !strings.Contains(got.Name, "prototype") {
		t.Errorf("the prototype: %+v", got)
	}
}

// TestRules has both rule files, of which the second has one group more.
func TestRules(t *testing.T) {
	shipped, quick, err := ruleFiles()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(shipped), quickAlert) || strings.Count(string(quick), quickAlert) != 1 {
		t.Error("the prototype has to be in the second file only")
	}
}
