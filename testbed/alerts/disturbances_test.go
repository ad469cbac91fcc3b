// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// staggered has each install recover five minutes after the one before.
func staggered(installs []install) []install {
	for i := range installs {
		installs[i].bad = failing("csv", span{60, 120 + 5*i})
	}
	return installs
}

var fleetSilent = alert{name: "BellwetherFleetSilent", severity: "page"}

// disturbances are orders of failure and recovery, changes of versions in the middle of an outage, and data that is
// late, odd or missing.
var disturbances = map[string]scenario{
	"a release fails a minute earlier on one cluster": {
		fleet: fleet{minutes: 420, installs: clusters(10, func(i int, in *install) {
			in.bad = failing("csv", span{61, 180})
			if i == 0 {
				in.bad = failing("csv", span{60, 180})
			}
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
	},
	"a canary fails, and its wave is judged failed": {
		fleet: fleet{minutes: 420, extra: []testInput{
			{`bellwether_rollout_wave_failed{operator_namespace="fleet",operator="echo",wave="canary",version="2.0.0",` +
				`release="of 2.0.0"}`, "_x58 1x300 stale"},
		}, installs: clusters(10, func(i int, in *install) {
			if i == 0 {
				in.versions = []change{{0, "1.0.0"}, {50, "2.0.0"}, {180, "1.0.0"}}
				in.bad = failing("csv", span{60, 180})
			}
		})},
		alerts: map[alert]float64{ofRelease("2.0.0", "csv", "page"): 1, ofFailedWave: 1},
	},
	"one cluster goes on failing after its release is fixed": {
		fleet: fleet{minutes: 420, installs: clusters(10, func(i int, in *install) {
			in.versions = []change{{0, "2.0.0"}, {180, "2.0.1"}}
			in.bad = failing("csv", span{60, 180})
			if i == 0 {
				in.bad = failing("csv", span{60, 420})
			}
		})},
		alerts: map[alert]float64{ofRelease("2.0.0", "csv", "page"): 1, ofInstallOf("c0", "csv", "page"): 1},
		open:   []alert{ofInstallOf("c0", "csv", "page")},
	},
	"the fix is bad too": {
		fleet: fleet{minutes: 480, installs: clusters(10, func(_ int, in *install) {
			in.versions = []change{{0, "2.0.0"}, {180, "2.0.1"}}
			in.bad = failing("csv", span{60, 300})
		})},
		alerts: map[alert]float64{ofRelease("2.0.0", "csv", "page"): 1, ofRelease("2.0.1", "csv", "page"): 1},
	},
	"all versions fail": {
		fleet: fleet{minutes: 480, installs: clusters(10, func(i int, in *install) {
			in.versions = []change{{0, fmt.Sprintf("%d.0.0", i%2)}}
			in.bad = failing("csv", span{60, 180})
		})},
		alerts: map[alert]float64{ofRelease("", "csv", "page"): 1},
	},
	"a budget that is spent, and fails again": {
		fleet: fleet{minutes: 1120, installs: clusters(1, func(_ int, in *install) {
			in.bad = failing("csv", span{60, 120}, span{700, 710})
		})},
		// The second outage pages at its second bad scrape, before the ticket about the day's burn rate would begin.
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 2, ofBudget("c0", "csv"): 1},
		open:   []alert{ofBudget("c0", "csv")},
	},
	"clusters recover one after the other": {
		fleet: fleet{minutes: 480, installs: clusters(10, func(i int, in *install) {
			in.bad = failing("csv", span{60, 120 + 10*i})
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
	},
	"operators of a cluster recover one after the other": {
		set: &onlyCSV, fleet: fleet{minutes: 480, installs: staggered(onAll(1, 6, 1, span{60, 120}))},
		alerts: map[alert]float64{ofCluster("c0"): 1},
	},
	"an upgrade in the middle of an outage": {
		fleet: fleet{minutes: 600, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.versions = []change{{0, "1.0.0"}, {90, "2.0.0"}}
				in.bad = failing("csv", span{60, 120})
			}
		})},
		// The budget of a month is 43 minutes. That it is spent is a ticket 6 hours after the page.
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofBudget("c0", "csv"): 1},
		open:   []alert{ofBudget("c0", "csv")},
	},
	"gaps in scraping": {
		fleet: fleet{minutes: 600, installs: clusters(3, func(i int, in *install) {
			in.dark = append(every(7, 0, 600), span{300, 308})
			if i == 0 {
				in.bad = failing("csv", span{60, 120}, span{290, 320})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 2},
	},
	"a value that is not a number": {
		fleet: fleet{minutes: 300, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.nan = failing("csv", span{60, 120})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1},
	},
	"a cluster joins that is broken": {
		fleet: fleet{minutes: 240, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.joins = 60
				in.bad = failing("csv", span{60, 240})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1},
		open:   []alert{ofInstallOf("c0", "csv", "page")},
	},
	"a cluster leaves the fleet during a page": {
		fleet: fleet{minutes: 240, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.leaves = 90
				in.bad = failing("csv", span{60, 240})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1},
	},
	"most clusters go silent": {
		fleet: fleet{minutes: 180, installs: clusters(5, func(i int, in *install) {
			if i > 0 {
				in.dark = []span{{60, 180}}
			}
		})},
		alerts: map[alert]float64{fleetSilent: 1},
		open:   []alert{fleetSilent},
	},
	"only the hub is lost": {
		fleet:  fleet{minutes: 180, hubDark: []span{{60, 120}}, installs: clusters(3, nil)},
		alerts: map[alert]float64{hubDown: 1},
	},
	"a Prometheus that never scraped the hub": {
		fleet: fleet{minutes: 120, hubDark: []span{{0, 120}}, installs: clusters(3, nil)},
	},
}

// TestDisturbances counts, over whole runs, how often each alert begins to fire.
func TestDisturbances(t *testing.T) { play(t, withOnlyCSV(disturbances), slo.Whole) }

// withOnlyCSV leaves out the series and the objectives of the other SLIs, which are good in all of them: that takes a
// third of the time.
func withOnlyCSV(all map[string]scenario) map[string]scenario {
	out := map[string]scenario{}
	for name, s := range all {
		s.set, s.fleet.installs = &onlyCSV, slices.Clone(s.fleet.installs)
		for i := range s.fleet.installs {
			s.fleet.installs[i].onlyCSV = true
		}
		out[name] = s
	}
	return out
}
