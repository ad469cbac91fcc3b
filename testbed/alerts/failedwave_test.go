// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"maps"
	"slices"
	"strconv"
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

var (
	// ofFailedWave is the page about a wave that was judged failed, and ofCanary the one about the SLI of its version.
	// Both are of one incident.
	ofFailedWave = ofRelease("2.0.0", "", "page")
	ofCanary     = ofRelease("2.0.0", "csv", "page")
	// ofFirst is the page about the canary alone, which is an incident of its own.
	ofFirst = ofInstallOf("c0", "csv", "page")
)

// failedWaves are canaries. What has a verdict is one incident, and never one more about the canary alone.
var failedWaves = map[string]scenario{
	// The second bad slice is confirmed, which is enough for the page about the SLI.
	"a canary that is rolled back after two bad minutes": canary{back: 63, bad: []span{{61, 63}}, judged: 62}.
		scenario(ofFailedWave, ofCanary),
	// By the time that the verdict is known, no cluster runs the version, and no slice is bad.
	"a verdict that is scraped after the rollback": canary{back: 63, bad: []span{{61, 63}}, judged: 64}.
		scenario(ofFailedWave),
	"a canary that is bad for a slice after the rollback, too": canary{back: 63, bad: []span{{61, 64}}, judged: 62}.
		scenario(ofFailedWave, ofCanary),
	// The two bad scrapes are of two versions.
	"a canary that is bad before and after the rollback": canary{back: 63, bad: []span{{62, 64}}, judged: 64}.
		scenario(ofFailedWave),
	// A version that is new on a cluster pages for it after three slices, and not after two scrapes: see 0086.
	"two bad minutes without a verdict":                    canary{back: 63, bad: []span{{61, 63}}}.scenario(),
	"three bad minutes without a verdict":                  canary{bad: []span{{61, 64}}}.scenario(ofFirst),
	"two bad minutes, more than an hour after the upgrade": canary{bad: []span{{122, 124}}}.scenario(ofFirst),
	"a verdict without a bad minute":                       canary{back: 63, judged: 62}.scenario(),
	"a bad minute long after the verdict, where 2.0.0 stayed": canary{bad: []span{{110, 111}}, judged: 62}.
		scenario(),
	"a canary that stays bad": canary{bad: []span{{61, 100}}, judged: 62}.
		scenario(ofFailedWave, ofCanary).with(ofCanary),
	// The page about the SLI ends some minutes after minute 63. The one about the wave and the incident go on.
	"a canary that is bad now and then": canary{bad: []span{{61, 63}, {70, 71}, {78, 79}}, judged: 62}.
		scenario(ofFailedWave, ofCanary),
}

// incidents counts how often a page begins for which Alertmanager has no group yet: that is a notification, and an
// incident of its own. The labels are those by which the guide groups alerts.
func incidents(minutes int, want float64) testExpr {
	const group = "group by (alertname, scope, operator_namespace, operator, cluster, version, recovered_clusters) " +
		`(ALERTS{alertstate="firing",severity="page"}`
	out := testExpr{At: strconv.Itoa(minutes-1) + "m", Expr: "sum(count_over_time((" + group + ") unless " + group +
		" offset 1m))[" + strconv.Itoa(minutes) + "m:1m]))"}
	if want > 0 {
		out.Samples = []testSample{{"{}", want}}
	}
	return out
}

// ofOneIncident also expects that all pages of a story are one incident.
func (s scenario) ofOneIncident(name string) testCase {
	out := s.test(name)
	out.Exprs = append(out.Exprs, incidents(s.fleet.minutes, min(1, float64(len(s.alerts)))))
	return out
}

// TestFailedWaves plays canaries, most of whose waves were judged failed.
func TestFailedWaves(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(failedWaves)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, onlyCSV, failedWaves[name].ofOneIncident(name))
		})
	}
}

// TestMutantsOfFailedWaves makes mistakes in what has a canary wait for the verdict, one at a time.
func TestMutantsOfFailedWaves(t *testing.T) {
	for name, m := range map[string]struct{ from, to, story string }{
		"the version before": {` or bellwether_operator_info{version!=""} offset 1h`, "",
			"a verdict that is scraped after the rollback"},
		"versions of bad slices": {`last_over_time(bellwether:sli_bad_version:slice{version!=""}[1h])`,
			`last_over_time(bellwether:sli_bad_version:slice{version!=""}[1m])`,
			"a canary that is bad before and after the rollback"},
		"two versions": {"offset 1h)) > 1", "offset 1h)) > 0", "two bad minutes, more than an hour after the upgrade"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story := failedWaves[m.story].ofOneIncident(m.story)
			if playParts(t, onlyCSV, []slo.Part{slo.Whole}, m.from, m.to, story) == nil {
				t.Errorf("%q passes with %q for %q", m.story, m.to, m.from)
			}
		})
	}
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
