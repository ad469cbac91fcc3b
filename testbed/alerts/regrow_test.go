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
	"a failed canary, and then all": {set: &onlyCSV,
		fleet: afterFailedWave(58, regrown(1, []span{{60, 66}}, []span{{80, 85}})),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 2,
			ofRelease("1.0.0", "", "page"): 2}},
}

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
