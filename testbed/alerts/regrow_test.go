// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// regrownMinutes is how long the stories of failures that grow last.
const regrownMinutes = 300

// regrown is a fleet of six clusters, of which some are bad at first, and then all.
func regrown(first int, before, after []span) fleet {
	return fleet{minutes: regrownMinutes, installs: clusters(6, func(i int, in *install) {
		in.onlyCSV, in.bad = true, failing("csv", after...)
		if i < first {
			in.bad = failing("csv", slices.Concat(before, after)...)
		}
	})}
}

// afterFailedWave is that of a version with a wave that was judged failed.
func afterFailedWave(from int, of fleet) fleet {
	of.extra = []testInput{{`bellwether_rollout_wave_failed{operator_namespace="fleet",operator="echo",wave="canary",` +
		`version="1.0.0",release="of 1.0.0"}`, slo.Samples(regrownMinutes, func(m int) string {
		if m < from {
			return ""
		}
		return "1"
	})}}
	return of
}

// regrowing are failures of some clusters that are followed by others while their page still fires. What recovered
// and then fails on more clusters is another page.
var regrowing = map[string]scenario{
	"one cluster, and then all": {set: &onlyCSV, fleet: regrown(1, []span{{60, 70}}, []span{{80, 110}}),
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofRelease("1.0.0", "csv", "page"): 1}},
	"two clusters, and then all": {set: &onlyCSV, fleet: regrown(2, []span{{60, 70}}, []span{{80, 110}}),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 2}},
	"two clusters, then all, and then all again": {set: &onlyCSV,
		fleet:  regrown(2, []span{{60, 70}}, []span{{80, 90}, {105, 110}}),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 2}},
	"two clusters, and then the same": {set: &onlyCSV, fleet: regrown(2, []span{{60, 70}, {80, 90}, {105, 110}}, nil),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1}},
	"two clusters, and all before they recover": {set: &onlyCSV, fleet: regrown(2, []span{{60, 70}}, []span{{70, 90}}),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1}},
	"three of 50 clusters, of which one stays bad, and then 12": {set: &onlyCSV, fleet: chronic(2, 11),
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofRelease("1.0.0", "csv", "page"): 2}},
	"two clusters, and then fewer than 5 % of 50 beside one that stays bad": {set: &onlyCSV, fleet: chronic(2, 2),
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofRelease("1.0.0", "csv", "page"): 1}},
	"ten clusters, hours after a page about 12 that ended": {set: &onlyCSV, fleet: afterLarger(),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 3}},
	"an SLI that makes tickets only, on more clusters while a page is held": {set: &csvAndRedundancy,
		fleet:  thirdReplicaMissing(regrown(2, []span{{60, 70}, {80, 82}}, nil), 90, 120),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1}},
	"a failed canary, and then all": {set: &onlyCSV,
		fleet: afterFailedWave(58, regrown(1, []span{{60, 66}}, []span{{80, 85}})),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 2,
			// Its first bad slice pages anew, before the clusters are confirmed; that is in the first incident.
			ofRelease("1.0.0", "", "page"): 3}},
}

// chronic is a fleet of 50 clusters of which one is always bad, and others for a while.
func chronic(first, then int) fleet {
	return fleet{minutes: regrownMinutes, installs: clusters(50, func(i int, in *install) {
		in.onlyCSV = true
		switch {
		case i == 0:
			in.bad = failing("csv", span{60, 220})
		case i <= first:
			in.bad = failing("csv", span{60, 70}, span{100, 110})
		case i <= then:
			in.bad = failing("csv", span{100, 110})
		}
	})}
}

// thirdReplicaMissing are the series of three clusters that lack a replica for a while.
func thirdReplicaMissing(of fleet, from, to int) fleet {
	for i := range 3 {
		labels := fmt.Sprintf(`{cluster="c%d",operator_namespace="fleet",operator="echo",deployment="d"}`, i)
		constant := func(low string) string {
			return slo.Samples(of.minutes, func(m int) string {
				if m >= from && m < to {
					return low
				}
				return "3"
			})
		}
		of.extra = append(of.extra, testInput{desired + labels, constant("3")},
			testInput{available + labels, constant("2")})
	}
	return of
}

// afterLarger is a fleet of 20 clusters with a page about 12 of them that ended, and a later one about two that fail
// twice and then ten.
func afterLarger() fleet {
	return fleet{minutes: 400, installs: clusters(20, func(i int, in *install) {
		in.onlyCSV = true
		switch {
		case i < 2:
			in.bad = failing("csv", span{60, 62}, span{200, 202}, span{215, 225})
		case i < 10:
			in.bad = failing("csv", span{60, 62}, span{215, 225})
		case i < 12:
			in.bad = failing("csv", span{60, 62})
		}
	})}
}

// csvAndRedundancy has an SLI that makes tickets only.
var csvAndRedundancy = slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 999_000},
	{SLI: "redundancy", Target: 990_000}}}

// TestRegrownFailures counts, over whole runs, how often each alert begins to fire.
func TestRegrownFailures(t *testing.T) { play(t, regrowing, slo.Whole) }

// TestRegrownFailureSaysSo reads the label of a page about a failure that is larger than the one before, which stays
// as long as the page does.
func TestRegrownFailureSaysSo(t *testing.T) {
	t.Parallel()
	query := `count by (recovered_clusters) (ALERTS{alertname="BellwetherReleaseSLOBurn",alertstate="firing"})`
	at := func(minute int, labels string) testExpr {
		return testExpr{Expr: query, At: fmt.Sprintf("%dm", minute), Samples: []testSample{{labels, 1}}}
	}
	run(t, onlyCSV, testCase{Name: "two clusters, and then all",
		Series: regrown(2, []span{{60, 70}}, []span{{80, 110}}).series(), Exprs: []testExpr{at(75, "{}"),
			at(82, `{recovered_clusters="2"}`), at(130, `{recovered_clusters="2"}`)}})
}

// TestTwoSeriesOfARegrownVersion has a series from before Prometheus was restarted beside the one that is recorded: the
// page about the version goes on.
func TestTwoSeriesOfARegrownVersion(t *testing.T) {
	t.Parallel()
	page := `count(group by (sli) (ALERTS{alertname="BellwetherReleaseSLOBurn",alertstate="firing"}))`
	var moments []testExpr
	for minute := 80; minute < 100; minute += 4 {
		moments = append(moments, testExpr{Expr: page, At: fmt.Sprintf("%dm", minute),
			Samples: []testSample{{"{}", 1}}})
	}
	run(t, onlyCSV, testCase{Name: "two series", Exprs: moments,
		Series: append(regrown(2, []span{{60, 70}}, []span{{80, 110}}).series(), testInput{
			`bellwether:release_regrown:bool{operator_namespace="fleet",operator="echo",version="1.0.0",` +
				`recovered_clusters="9"}`, "_x82 1x4"})})
}
