// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// scenario is a story of a fleet with all alerts that may fire in it: how often each one begins to fire over the whole
// run, and which of them still fire at the end. A page and a ticket of the same identity never fire at once.
type scenario struct {
	set    *slo.Set // default: strict
	fleet  fleet
	alerts map[alert]float64
	open   []alert
}

func (s scenario) test(name string) testCase {
	began := testExpr{Expr: byIdentity(s.fleet.minutes), At: strconv.Itoa(s.fleet.minutes-1) + "m"}
	for _, a := range slices.SortedFunc(maps.Keys(s.alerts), compareAlerts) {
		began.Samples = append(began.Samples, testSample{a.labels(), s.alerts[a]})
	}
	open := testExpr{Expr: `count by (alertname, severity, cluster, operator, sli, version) ` +
		`(ALERTS{alertstate="firing",severity=~"page|ticket"})`, At: began.At}
	for _, a := range s.open {
		open.Samples = append(open.Samples, testSample{a.labels(), 1})
	}
	return testCase{Name: name, Series: s.fleet.series(), Exprs: []testExpr{began, open, neverAtOnce(s.fleet.minutes)}}
}

func compareAlerts(a, b alert) int {
	switch {
	case a.labels() < b.labels():
		return -1
	case a.labels() > b.labels():
		return 1
	}
	return 0
}

// onAll are installs of several operators on each of several clusters, of which the first ones are bad for a while.
func onAll(nClusters, nOperators, broken int, when span) []install {
	var out []install
	for c := range nClusters {
		for o := range nOperators {
			in := install{cluster: fmt.Sprintf("c%d", c), operator: fmt.Sprintf("operator-%d", o), onlyCSV: true}
			if c < broken {
				in.bad = failing("csv", when)
			}
			out = append(out, in)
		}
	}
	return out
}

// outage is one cluster of three that is bad for a while.
func outage(minutes, lasts int) scenario {
	return scenario{
		fleet: fleet{minutes: minutes, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.bad = failing("csv", span{60, 60 + lasts})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1},
	}
}

// exhausts adds an alert about a budget that is spent, which goes on until the end.
func (s scenario) exhausts(a alert) scenario {
	s.alerts[a] = 1
	s.open = append(s.open, a)
	return s
}

// scenarios are the rows of the table in docs/decisions/0025.
var scenarios = map[string]scenario{
	"outage of 5 minutes":  outage(600, 5),
	"outage of 10 minutes": outage(600, 10),
	// A month's budget is 43 minutes.
	"outage of 60 minutes": outage(900, 60).exhausts(ofBudget("c0", "csv")),

	"flapping for 8 hours": {
		fleet: fleet{minutes: 1080, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.bad = failing("csv", every(20, 60, 540)...)
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1},
	},

	"a release burns one SLI, and a cluster burns another": {
		fleet: fleet{minutes: 420, installs: clusters(10, func(i int, in *install) {
			in.bad = failing("catalog", span{60, 360})
			if i == 0 {
				in.bad["available"] = []span{{60, 360}}
			}
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "catalog", "page"): 1, ofInstallOf("c0", "available", "page"): 1},
	},

	"a bad release and then the fix": {
		fleet: fleet{minutes: 500, installs: clusters(20, func(_ int, in *install) {
			in.versions = []change{{0, "1.0.0"}, {60, "2.0.0"}, {180, "2.0.1"}}
			in.bad = failing("csv", span{60, 180})
		})},
		alerts: map[alert]float64{ofRelease("2.0.0", "csv", "page"): 1},
	},

	"2 of 200 clusters are bad, then a third": {
		set: &onlyCSV, fleet: fleet{minutes: 400, installs: clusters(200, func(i int, in *install) {
			in.onlyCSV = true
			switch i {
			case 0, 1:
				in.bad = failing("csv", span{60, 400})
			case 2:
				in.bad = failing("csv", span{360, 400})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofInstallOf("c1", "csv", "page"): 1,
			ofInstallOf("c2", "csv", "page"): 1},
		open: []alert{ofInstallOf("c0", "csv", "page"), ofInstallOf("c1", "csv", "page"),
			ofInstallOf("c2", "csv", "page")},
	},

	"a quota on one cluster after bad slices on another": {
		fleet: fleet{minutes: 300, installs: clusters(20, func(i int, in *install) {
			switch i {
			case 0:
				in.bad = failing("csv", span{60, 62})
			case 1:
				in.bad = failing("csv", span{82, 300})
			}
		})},
		// Two bad minutes are a twentieth of the month's budget.
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofInstallOf("c1", "csv", "page"): 1},
		open:   []alert{ofInstallOf("c1", "csv", "page")},
	},

	"1 cluster with 30 operators is broken": {
		set: &onlyCSV, fleet: fleet{minutes: 420, installs: onAll(1, 30, 1, span{60, 180})},
		alerts: map[alert]float64{ofCluster("c0"): 1},
	},

	"3 of 20 clusters with all of their 12 operators are broken": {
		set: &onlyCSV, fleet: fleet{minutes: 300, installs: onAll(20, 12, 3, span{60, 180})},
		alerts: map[alert]float64{ofCluster("c0"): 1, ofCluster("c1"): 1, ofCluster("c2"): 1},
	},

	"all scraping is lost during a page": {
		fleet: fleet{minutes: 300, hubDark: []span{{90, 300}}, installs: clusters(5, func(i int, in *install) {
			in.dark = []span{{90, 300}}
			if i == 0 {
				in.bad = failing("csv", span{60, 300})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, hubDown: 1},
		open:   []alert{ofInstallOf("c0", "csv", "page"), hubDown},
	},

	"a cluster goes dark during a page": {
		fleet: fleet{minutes: 300, installs: clusters(5, func(i int, in *install) {
			if i == 0 {
				in.bad = failing("csv", span{60, 300})
				in.dark = []span{{90, 300}}
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofCluster("c0"): 1},
		open:   []alert{ofInstallOf("c0", "csv", "page"), ofCluster("c0")},
	},
}

// TestScenarios counts, over whole runs, how often each alert begins to fire.
func TestScenarios(t *testing.T) { play(t, scenarios, slo.Whole) }

func play(t *testing.T, scenarios map[string]scenario, parts ...slo.Part) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenarios[name]
			set := strict
			if s.set != nil {
				set = *s.set
			}
			runParts(t, set, parts, s.test(name))
		})
	}
}

// onlyCSV are the objectives of scenarios with many operators.
var onlyCSV = slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 999_000}}}

// single are events that call for nobody, and one that does: series and the alerts about them by SLI.
var single = map[string]struct {
	series []testInput
	pages  map[string]float64
}{
	"one webhook error": {series: []testInput{{ofPod(webhook, `code="200"`), "0+6x300"},
		{ofPod(webhook, `code="500"`), "0x60 1x240"}}},
	"two webhook errors within an hour": {series: []testInput{{ofPod(webhook, `code="200"`), "0+6x300"},
		{ofPod(webhook, `code="500"`), "0x60 1x29 2x210"}}},
	"one panic": {series: []testInput{{ofPod(panics), "0x60 1x240"}}},
	"a webhook that fails": {
		series: []testInput{{ofPod(webhook, `code="500"`), "0x60 0+6x60 360x180"}},
		pages:  map[string]float64{"webhook": 1},
	},
	"an operator that restarts": {series: []testInput{{ofPod(total), "9000+60x60 0+60x240"},
		{ofPod(reconcileErrors), "800+0x60 0+0x240"}, {ofPod(webhook, `code="200"`), "500+6x60 0+6x240"}}},
	"one failed run of a probe every 10 minutes": {series: []testInput{
		{of(probe, `probe="api"`, `vantage="cluster"`), "1x59 0x9 1x240"},
		{of("probe_interval_seconds", `probe="api"`, `vantage="cluster"`), "600x300"}}},
	"a probe every 10 minutes that fails": {
		series: []testInput{{of(probe, `probe="api"`, `vantage="cluster"`), "1x59 0x59 1x180"},
			{of("probe_interval_seconds", `probe="api"`, `vantage="cluster"`), "600x300"}},
		pages: map[string]float64{"probe:api": 1},
	},
	"selected targets that fail one after the other": {
		series: []testInput{{of(probe, `probe="api"`, `target="a"`, `vantage="cluster"`), "1x59 0x59 1x180"},
			{of(probe, `probe="api"`, `target="b"`, `vantage="cluster"`), "1x89 0x59 1x150"},
			{of(probe, `probe="api"`, `target="c"`, `vantage="cluster"`), "1x300"}},
		pages: map[string]float64{"probe:api": 1},
	},
	"a failing target that is deleted": {series: []testInput{
		{of(probe, `probe="api"`, `target="a"`, `vantage="cluster"`), "1x60 0 stale _x238"},
		{of(probe, `probe="api"`, `target="b"`, `vantage="cluster"`), "1x300"}}},
	"a drain: 2 of 3 replicas for 3 minutes": {series: []testInput{{of(desired, `deployment="d"`), "3x300"},
		{of(available, `deployment="d"`), "3x59 2x2 3x240"}}},
}

// TestSingleEvents plays events after which nobody is called, beside failures of the same SLIs.
func TestSingleEvents(t *testing.T) {
	t.Parallel()
	var cases []testCase
	for name, in := range single {
		const pages = `ALERTS{alertstate="firing",slo!="",severity="page"}`
		began := testExpr{At: "299m", Expr: fmt.Sprintf("sum by (sli) "+
			"(count_over_time((%s unless (%s offset 1m))[300m:1m]))", pages, pages)}
		for sli, n := range in.pages {
			began.Samples = append(began.Samples, testSample{fmt.Sprintf("{sli=%q}", sli), n})
		}
		exprs := []testExpr{began}
		if len(in.pages) == 0 { // nor is there a ticket, but for the series that the events leave out
			exprs = append(exprs, testExpr{At: "299m", Expr: `count by (alertname, sli) (count_over_time(` +
				`ALERTS{alertstate="firing",slo!="",alertname!="BellwetherSLIAbsent"}[300m]))`})
		}
		cases = append(cases, testCase{Name: name, Exprs: exprs, Series: append([]testInput{
			{`bellwether_fleet_clusters{state="online"}`, "1x300"}, {of("bellwether_operator_expected"), "1x300"},
			{of(csv), "1x300"}, {of(info, `namespace="ns"`, `csv="echo.v1"`, `version="1.0.0"`), "1x300"},
		}, in.series...)})
	}
	run(t, slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 999_000}, {SLI: "available", Target: 999_000},
		{SLI: "redundancy", Target: 990_000}, {SLI: "panic", Target: 999_000}, {SLI: "webhook", Target: 999_000},
		{SLI: "reconcile", Target: 990_000}, {SLI: slo.Probe, Target: 999_000}}}, cases...)
}
