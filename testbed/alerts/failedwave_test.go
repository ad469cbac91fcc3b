// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

const failedWaveMinutes = 130

// canary is a fleet of three clusters, of which the first one gets 2.0.0 in minute 60.
type canary struct {
	// back is when it runs 1.0.0 again. Zero: never.
	back int
	// bad are the minutes in which 2.0.0, or what runs after it, is bad.
	bad []span
	// judged is from when on the hub says that the wave failed. Zero: never.
	judged int
}

func (c canary) fleet() fleet {
	out := fleet{minutes: failedWaveMinutes}
	if c.judged > 0 {
		out.extra = []testInput{{`bellwether_rollout_wave_failed{operator_namespace="fleet",operator="echo",` +
			`wave="canary",version="2.0.0",release="of 2.0.0"}`, slo.Samples(failedWaveMinutes, func(m int) string {
			if m < c.judged {
				return ""
			}
			return "1"
		})}}
	}
	out.installs = clusters(3, func(i int, in *install) {
		in.onlyCSV = true
		if i > 0 {
			return
		}
		in.versions, in.bad = []change{{0, "1.0.0"}, {60, "2.0.0"}}, failing("csv", c.bad...)
		if c.back > 0 {
			in.versions = append(in.versions, change{c.back, "1.0.0"})
		}
	})
	return out
}

// TestFailedWaveEnds looks when the page ends: soon after a rollback, and later where the version stays. One slice is
// bad, so only the wave's judgement begins it.
func TestFailedWaveEnds(t *testing.T) {
	t.Parallel()
	at := func(minute string, firing float64) testExpr {
		return testExpr{Expr: `count(ALERTS{alertname="BellwetherReleaseSLOBurn",alertstate="firing"}) or vector(0)`,
			At: minute, Samples: []testSample{{"{}", firing}}}
	}
	back := canary{back: 63, bad: []span{{61, 62}}, judged: 62}.fleet().series()
	stays := canary{bad: []span{{61, 62}}, judged: 62}.fleet().series()
	run(t, onlyCSV,
		testCase{Name: "rolled back", Series: back, Exprs: []testExpr{at("61m", 0), at("62m", 1), at("63m", 1),
			at("64m", 0)}},
		testCase{Name: "stays", Series: stays, Exprs: []testExpr{at("62m", 1), at("70m", 1), at("71m", 0)}})
}
