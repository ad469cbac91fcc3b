// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

// flappingHours is how long something comes and goes.
var flappingHours = long.Cases(10, 24)

// recurring returns spans of some minutes in every period, for flappingHours.
func recurring(lasts, period int) []span {
	var out []span
	for m := 60; m < 60+60*flappingHours; m += period {
		out = append(out, span{m, m + lasts})
	}
	return out
}

// flapping is csv of one cluster of three that is bad for some minutes of every period. A budget may be spent by that,
// but there is no ticket about it within 6 hours of the page.
func flapping(lasts, period int, pages float64) scenario {
	bad := recurring(lasts, period)
	return scenario{
		set: &onlyCSV, fleet: fleet{minutes: bad[len(bad)-1].to + 120, installs: clusters(3, func(i int, in *install) {
			in.onlyCSV = true
			if i == 0 {
				in.bad = failing("csv", bad...)
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): pages},
	}
}

// flapsOf are failures that come and go. The second page of each is held until it is over.
var flapsOf = map[string]scenario{
	"2 bad minutes of 40": flapping(2, 40, 2),
	"3 bad minutes of 60": flapping(3, 60, 2),
	"1 bad minute of 50":  flapping(1, 50, 2),
	"1 bad minute of 20":  flapping(1, 20, 1),
	"a release that is bad for 2 minutes of 40": {
		set: &onlyCSV, fleet: fleet{minutes: 360, installs: clusters(4, func(_ int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{60, 62}, span{100, 102}, span{140, 142}, span{180, 182})
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 2},
	},
	"a release that comes and goes, until its fix": {
		set: &onlyCSV, fleet: fleet{minutes: 240, installs: clusters(4, func(_ int, in *install) {
			in.onlyCSV = true
			in.versions = []change{{0, "1.0.0"}, {110, "1.0.1"}}
			in.bad = failing("csv", span{60, 62}, span{100, 102})
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 2},
	},
	// What was the release's fault is not held as a page of its clusters.
	"a cluster fails twice, and then its release does": {
		set: &onlyCSV, fleet: fleet{minutes: 400, installs: clusters(4, func(i int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{140, 170})
			if i == 0 {
				in.bad = failing("csv", span{60, 62}, span{110, 112}, span{140, 170})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 2, ofRelease("1.0.0", "csv", "page"): 1},
	},
	"a cluster leaves the fleet while a page is held": {
		set: &onlyCSV, fleet: fleet{minutes: 160, installs: clusters(3, func(i int, in *install) {
			in.onlyCSV = true
			if i == 0 {
				in.leaves = 125
				in.bad = failing("csv", span{60, 62}, span{110, 112})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 2},
	},
}

// TestFlapping counts, over whole runs, how often each alert begins to fire.
func TestFlapping(t *testing.T) { play(t, flapsOf, slo.Whole) }

// TestEndsOfPages looks at when pages end: of a single outage with the window of the tier that it takes, and of what
// began twice within 6 hours 65 minutes after the last burn rate.
func TestEndsOfPages(t *testing.T) {
	for name, c := range map[string]struct {
		bad []span
		// last is the last minute in which the page fires.
		last int
	}{
		"an outage of 2 minutes":                {[]span{{60, 62}}, 65},
		"an outage of 10 minutes":               {[]span{{60, 70}}, 99},
		"2 outages of 2 minutes in an hour":     {[]span{{60, 62}, {110, 112}}, 140 + 64},
		"2 outages of 2 minutes, 6 hours apart": {[]span{{60, 62}, {421, 423}}, 426},
		"a second outage that lasts":            {[]span{{60, 62}, {110, 150}}, 178 + 64},
		"one that begins after a page was held": {[]span{{60, 62}, {110, 112}, {200, 202}}, 230 + 64},
		"bad scrapes that are apart":            {[]span{{60, 61}, {62, 63}, {64, 65}, {66, 67}, {68, 69}}, 98},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clusters(2, func(i int, in *install) {
				in.onlyCSV = true
				if i == 0 {
					in.bad = failing("csv", c.bad...)
				}
			})
			const page = `count(ALERTS{alertstate="firing",severity="page"})`
			run(t, onlyCSV, testCase{Name: name, Series: fleet{minutes: c.last + 10, installs: f}.series(),
				Exprs: []testExpr{
					{Expr: page, At: fmt.Sprintf("%dm", c.last), Samples: []testSample{{"{}", 1}}},
					{Expr: page, At: fmt.Sprintf("%dm", c.last+1)},
				}})
		})
	}
}

// heldStory is what a page says at a minute of a fleet that was bad in some spans.
type heldStory struct {
	bad, minute, clusters int
	alert                 string
	labels, says          map[string]string
}

// TestHeldPagesSaySo reads whole pages that are held because they recur.
func TestHeldPagesSaySo(t *testing.T) {
	t.Parallel()
	label := func(scope string, more ...string) map[string]string {
		out := map[string]string{"severity": "page", "scope": scope, "operator_namespace": "fleet", "operator": "echo",
			"sli": "csv", "slo": "fleet/echo/csv"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	held := func(until string) string {
		return "The error budget burned too fast at least twice within 6h, and it does not now. Because this " +
			"recurs, the page is held until 1970-01-01 " + until + " UTC, and longer if it burns again, so that " +
			"each time is not another page."
	}
	for name, story := range map[string]heldStory{
		"an operator on one cluster": {bad: 1, minute: 190, clusters: 3, alert: slo.AlertOperator,
			labels: label("operator", "cluster", "c0"), says: map[string]string{
				"summary": "fleet/echo burned its csv budget 11.1 times too fast on cluster c0 at least twice within 6h; held " +
					"until 1970-01-01 03:25 UTC",
				"description": held("03:25"), "burn": "11.1", "window": "6h", "criticality": "Standard", "budget_left": "90.74%",
				"held_until": "1970-01-01 03:25 UTC", "restarts": "", "custom_resources": "", "look": "bellwether why c0 echo -n fleet",
			}},
		"a release": {bad: 2, minute: 190, clusters: 4, alert: slo.AlertRelease,
			labels: label("release", "version", "1.0.0"), says: map[string]string{
				"summary": "fleet/echo burned its csv budget 11.1 times too fast in version 1.0.0 on 2 clusters at least twice " +
					"within 6h; held until 1970-01-01 03:26 UTC",
				"description": held("03:26"), "burn": "11.1", "window": "6h", "criticality": "Standard", "budget_left": "90.74%",
				"held_until": "1970-01-01 03:26 UTC", "clusters": "c0, c1", "cluster_count": "2", "rollout": "", "wave": "", "change": "", "rollback": "",
				"look": "bellwether operator get echo -n fleet",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet{minutes: story.minute + 1, installs: clusters(story.clusters, func(i int, in *install) {
				in.onlyCSV = true
				if i < story.bad {
					in.bad = failing("csv", span{60, 62}, span{110, 112})
				}
			})}
			run(t, onlyCSV, testCase{Name: name, Series: f.series(), Alerts: []testAlert{{
				At: fmt.Sprintf("%dm", story.minute), Alert: story.alert,
				Alerts: []testFired{{story.labels, story.says}}}}})
		})
	}
}
