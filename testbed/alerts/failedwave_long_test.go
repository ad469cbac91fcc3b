// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// scenario has each of the alerts begin once.
func (c canary) scenario(alerts ...alert) scenario {
	s := scenario{set: &onlyCSV, alerts: map[alert]float64{}, fleet: c.fleet()}
	for _, a := range alerts {
		s.alerts[a] = 1
	}
	return s
}

// with has an alert fire at the end.
func (s scenario) with(open alert) scenario {
	s.open = append(s.open, open)
	return s
}

var ofFailedWave = ofRelease("2.0.0", "", "page")

var failedWaves = map[string]scenario{
	"a canary that is rolled back after two bad minutes": canary{back: 63, bad: []span{{61, 63}}, judged: 62}.
		scenario(ofFailedWave),
	"a verdict that is scraped after the rollback": canary{back: 63, bad: []span{{61, 63}}, judged: 64}.
		scenario(ofFailedWave),
	"a canary that is bad for a slice after the rollback, too": canary{back: 63, bad: []span{{61, 64}}, judged: 62}.
		scenario(ofFailedWave),
	"two bad minutes without a verdict": canary{back: 63, bad: []span{{61, 63}}}.scenario(),
	"a verdict without a bad minute":    canary{back: 63, judged: 62}.scenario(),
	"a bad minute long after the verdict, where 2.0.0 stayed": canary{bad: []span{{110, 111}}, judged: 62}.
		scenario(),
	// The page about the SLI is of the same incident.
	"a canary that stays bad": canary{bad: []span{{61, 100}}, judged: 62}.
		scenario(ofFailedWave, ofRelease("2.0.0", "csv", "page")).with(ofRelease("2.0.0", "csv", "page")),
	"a canary that is bad now and then": canary{bad: []span{{61, 63}, {70, 71}, {78, 79}}, judged: 62}.
		scenario(ofFailedWave),
}

// TestFailedWaves plays canaries whose wave was judged failed.
func TestFailedWaves(t *testing.T) { play(t, failedWaves, slo.Whole) }
