// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// TestLoad runs a small load: every probe has the result that it must have, none overlaps itself, and nothing is left
// out.
func TestLoad(t *testing.T) {
	targets, stop, err := Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	// The time-out is long, because a probe that runs into it on a busy machine would be a wrong result.
	l := Load{Probes: 200, Interval: 10 * time.Second, Timeout: 10 * time.Second, For: 12 * time.Second,
		Targets: targets}
	r, err := Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Wrong != 0 || r.Runs < l.Probes || r.Series < 10*l.Probes {
		t.Errorf("%d runs with %d wrong results and %d series", r.Runs, r.Wrong, r.Series)
	}
}

func TestReportJudges(t *testing.T) {
	l := Load{Probes: 5000, Interval: 30 * time.Second}
	good := report(l, []Result{{LateP99: 900 * time.Millisecond, Elapsed: time.Minute}})
	if missed := good.Missed(); len(missed) != 0 {
		t.Errorf("missed %q", missed)
	}
	bad := report(l, []Result{{LateP99: time.Second, Wrong: 1, Elapsed: time.Minute}})
	if missed := bad.Missed(); len(missed) != 2 {
		t.Errorf("missed only %q", missed)
	}
	if got := good.Rows[1].Ours; got != figure.Duration(900*time.Millisecond) {
		t.Errorf("p99 is %s", got)
	}
}
