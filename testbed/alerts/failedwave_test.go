// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

const failedWaveMinutes = 200

// canary is a fleet of three clusters, of which the first one gets 2.0.0 in minute 60.
type canary struct {
	// back is when it runs 1.0.0 again. Zero: never.
	back int
	// bad are the minutes in which 2.0.0, or what runs after it, is bad.
	bad []span
	// judged is from when on the hub says that the wave failed. Zero: never.
	judged int
}

func (c canary) scenario(alerts ...alert) scenario {
	s := scenario{set: &onlyCSV, alerts: map[alert]float64{}, fleet: fleet{minutes: failedWaveMinutes}}
	for _, a := range alerts {
		s.alerts[a] = 1
	}
	if c.judged > 0 {
		s.fleet.extra = []testInput{{`bellwether_rollout_wave_failed{operator_namespace="fleet",operator="echo",` +
			`wave="canary",version="2.0.0",release="of 2.0.0"}`, slo.Samples(failedWaveMinutes, func(m int) string {
			if m < c.judged {
				return ""
			}
			return "1"
		})}}
	}
	s.fleet.installs = clusters(3, func(i int, in *install) {
		in.onlyCSV = true
		if i > 0 {
			return
		}
		in.versions, in.bad = []change{{0, "1.0.0"}, {60, "2.0.0"}}, failing("csv", c.bad...)
		if c.back > 0 {
			in.versions = append(in.versions, change{c.back, "1.0.0"})
		}
	})
	return s
}

var ofFailedWave = ofRelease("2.0.0", "", "page")

var failedWaves = map[string]scenario{
	"a canary that is rolled back after two bad minutes": canary{back: 63, bad: []span{{61, 63}}, judged: 62}.
		scenario(ofFailedWave),
	"a verdict that is scraped after the rollback": canary{back: 63, bad: []span{{61, 63}}, judged: 64}.
		scenario(ofFailedWave),
	"a canary that is bad for a slice after the rollback, too": canary{back: 63, bad: []span{{61, 65}}, judged: 62}.
		scenario(ofFailedWave),
	"two bad minutes without a verdict": canary{back: 63, bad: []span{{61, 63}}}.scenario(),
	"a verdict without a bad minute":    canary{back: 63, judged: 62}.scenario(),
	"a bad minute long after the verdict, where 2.0.0 stayed": canary{bad: []span{{110, 111}}, judged: 62}.
		scenario(),
	// The page about the SLI is of the same incident.
	"a canary that stays bad": canary{bad: []span{{61, 120}}, judged: 62}.
		scenario(ofFailedWave, ofRelease("2.0.0", "csv", "page")),
	"a canary that is bad now and then": canary{bad: []span{{61, 63}, {70, 71}, {78, 79}}, judged: 62}.
		scenario(ofFailedWave),
}

// TestFailedWaves plays canaries whose wave was judged failed.
func TestFailedWaves(t *testing.T) { play(t, failedWaves, slo.Whole) }

// TestFailedWaveEnds looks when the page ends: soon after a rollback, and later where the version stays.
func TestFailedWaveEnds(t *testing.T) {
	t.Parallel()
	at := func(minute string, firing float64) testExpr {
		return testExpr{Expr: `count(ALERTS{alertname="BellwetherReleaseSLOBurn",alertstate="firing"}) or vector(0)`,
			At: minute, Samples: []testSample{{"{}", firing}}}
	}
	back := canary{back: 63, bad: []span{{61, 63}}, judged: 62}.scenario().fleet.series()
	stays := canary{bad: []span{{61, 63}}, judged: 62}.scenario().fleet.series()
	run(t, onlyCSV,
		testCase{Name: "rolled back", Series: back, Exprs: []testExpr{at("61m", 0), at("62m", 1), at("64m", 1),
			at("65m", 0)}},
		testCase{Name: "stays", Series: stays, Exprs: []testExpr{at("62m", 1), at("71m", 1), at("72m", 0)}})
}
