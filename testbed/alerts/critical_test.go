// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

// begin is the sample at which failures of critical operators begin: the whole minute 10. Samples of these scenarios
// are 15 s apart, so that spans and lengths of fleets are numbers of samples and not of minutes.
const begin = 40

// critical has one critical operator, echo, and two others that are critical too.
var critical = slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 999_000}, {SLI: slo.Probe, Target: 999_000}},
	Operators: []slo.Operator{
		{Namespace: "fleet", Name: "echo", Criticality: slo.Critical},
		{Namespace: "fleet", Name: "operator-0", Criticality: slo.Critical},
		{Namespace: "fleet", Name: "operator-1", Criticality: slo.Critical},
	}}

// quickScenario is a scenario with samples of 15 s.
type quickScenario struct {
	fleet  fleet
	alerts map[alert]float64
	// pages are the samples at which each page fires, of those that are looked at.
	pages map[int][]alert
	open  []alert
}

// oneBad is an outage of csv on one cluster of three.
func oneBad(samples int, spans ...span) fleet {
	return fleet{minutes: samples, installs: clusters(2, func(i int, in *install) {
		in.onlyCSV = true
		if i == 0 {
			in.bad = failing("csv", spans...)
		}
	})}
}

// hours is how long an operator is bad for a minute in every 20.
var hours = long.Cases(2, 8)

// flaps returns these minutes.
func flaps() []span {
	var out []span
	for s := begin; s < begin+hours*60*slicesPerMinute; s += 20 * slicesPerMinute {
		out = append(out, span{s, s + slicesPerMinute})
	}
	return out
}

func csvOnly(_ int, in *install) { in.onlyCSV = true }

var pageOfEcho = ofInstallOf("c0", "csv", "page")

var criticalScenarios = map[string]quickScenario{
	"an outage of 10 minutes": {
		fleet:  oneBad(360, span{begin, begin + 40}),
		alerts: map[alert]float64{pageOfEcho: 1},
		// It fires with the third slice, which is 30 s after the first one, and goes on for half an hour.
		pages: map[int][]alert{begin + 1: nil, begin + 2: {pageOfEcho}, begin + 40 + 25*4: {pageOfEcho},
			begin + 40 + 40*4: nil},
	},
	"one bad sample":              {fleet: oneBad(160, span{begin, begin + 1})},
	"two bad samples":             {fleet: oneBad(160, span{begin, begin + 2})},
	"a bad sample in each minute": {fleet: oneBad(160, span{begin, begin + 1}, span{begin + 4, begin + 5})},
	"1 bad minute in 20, for hours": {
		fleet:  oneBad(begin+hours*60*slicesPerMinute+400, flaps()...),
		alerts: map[alert]float64{pageOfEcho: 1},
		pages:  map[int][]alert{begin + 2: {pageOfEcho}},
	},
	"a bad release on 10 clusters, then its fix": {
		fleet: fleet{minutes: 300, installs: clusters(10, func(_ int, in *install) {
			in.onlyCSV = true
			in.versions = []change{{0, "1.0.0"}, {begin, "2.0.0"}, {begin + 80, "2.0.1"}}
			in.bad = failing("csv", span{begin, begin + 80})
		})},
		alerts: map[alert]float64{ofRelease("2.0.0", "csv", "page"): 1},
	},
	"a release fails a minute earlier on one cluster": {
		fleet: fleet{minutes: 300, installs: clusters(5, func(i int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{begin + 4, begin + 80})
			if i == 0 {
				in.bad = failing("csv", span{begin, begin + 80})
			}
		})},
		alerts: map[alert]float64{pageOfEcho: 1, ofRelease("1.0.0", "csv", "page"): 1},
	},
	"clusters of a release recover one after the other": {
		fleet: fleet{minutes: 360, installs: clusters(4, func(i int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{begin, begin + 40 + 40*i})
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
	},
	"three critical operators of a cluster": {
		fleet: fleet{minutes: 300, installs: append(onAll(1, 2, 1, span{begin, begin + 80}),
			install{cluster: "c0", operator: "echo", onlyCSV: true, bad: failing("csv", span{begin, begin + 80})})},
		alerts: map[alert]float64{ofCluster("c0"): 1},
	},
	"a critical operator and others of a cluster": {
		fleet: fleet{minutes: 300, installs: append(onAll(1, 6, 1, span{begin, begin + 80})[3:],
			install{cluster: "c0", operator: "echo", onlyCSV: true, bad: failing("csv", span{begin, begin + 100})})},
		alerts: map[alert]float64{ofCluster("c0"): 1},
	},
	"two operators of a cluster": {
		fleet: fleet{minutes: 260, installs: append(onAll(1, 3, 1, span{begin, begin + 40})[2:],
			install{cluster: "c0", operator: "echo", onlyCSV: true, bad: failing("csv", span{begin, begin + 40})})},
		alerts: map[alert]float64{pageOfEcho: 1,
			{name: "BellwetherOperatorSLOBurn", severity: "page", cluster: "c0", operator: "operator-2",
				sli: "csv"}: 1},
		// The operator that is not critical pages after the first slice of 60 s that is confirmed.
		pages: map[int][]alert{begin + 3: {pageOfEcho}, begin + 4: {pageOfEcho,
			{name: "BellwetherOperatorSLOBurn", severity: "page", cluster: "c0", operator: "operator-2", sli: "csv"}}},
		open: nil,
	},
	"a cluster goes dark during a page": {
		fleet: fleet{minutes: 300, installs: clusters(4, func(i int, in *install) {
			in.onlyCSV = true
			if i == 0 {
				in.bad = failing("csv", span{begin, 340})
				in.dark = []span{{begin + 4, 340}}
			}
		})},
		alerts: map[alert]float64{pageOfEcho: 1, ofCluster("c0"): 1},
		open:   []alert{pageOfEcho, ofCluster("c0")},
	},
	"an agent that is scraped each minute has one bad sample": {
		fleet: fleet{minutes: 160, extra: scrapedEachMinute(200, begin, begin+4)},
	},
	"an agent that is scraped each minute has two bad samples": {
		fleet:  fleet{minutes: 160, extra: scrapedEachMinute(200, begin, begin+8)},
		alerts: map[alert]float64{pageOfEcho: 1},
		pages:  map[int][]alert{begin + 3: nil, begin + 4: {pageOfEcho}},
		open:   []alert{pageOfEcho},
	},
	"a probe fails inside and outside": {
		fleet: fleet{minutes: 360, extra: []testInput{
			probeOf("cluster", 400, begin, begin+40), probeOf("hub", 400, begin, begin+40),
			{probeSeries("probe_interval_seconds", "cluster"), "15x400"},
			{probeSeries("probe_interval_seconds", "hub"), "15x400"}}, installs: clusters(2, csvOnly)},
		alerts: map[alert]float64{ofInstallOf("c0", "probe:api", "page"): 1},
		pages:  map[int][]alert{begin + 2: {ofInstallOf("c0", "probe:api", "page")}},
	},
	"a probe of a minute fails once": {
		fleet: fleet{minutes: 160, installs: clusters(2, csvOnly), extra: []testInput{
			probeOf("cluster", 200, begin, begin+4), {probeSeries("probe_interval_seconds", "cluster"), "60x200"}}},
	},
}

func probeSeries(metric, vantage string) string {
	return id(metric, `cluster="c0",operator_namespace="fleet",operator="echo"`,
		[]string{`probe="api"`, fmt.Sprintf("vantage=%q", vantage)})
}

func probeOf(vantage string, samples, from, to int) testInput {
	return testInput{probeSeries(probe, vantage), slo.Samples(samples, func(i int) string {
		if i >= from && i < to {
			return "0"
		}
		return "1"
	})}
}

// scrapedEachMinute is the operator echo on c0, bad from one sample to another, whose agent is scraped each minute.
func scrapedEachMinute(samples, from, to int) []testInput {
	of := `cluster="c0",operator_namespace="fleet",operator="echo"`
	var values []string
	for i := 0; i < samples; i += slicesPerMinute {
		value := "1"
		if i >= from && i < to {
			value = "0"
		}
		values = append(values, value+" _ _ _")
	}
	return []testInput{{id(csv, of, nil), strings.Join(values, " ")},
		{id(info, of, []string{`namespace="ns"`, `csv="v1"`, `version="1.0.0"`}), fmt.Sprintf("1x%d", samples)},
		{"bellwether_operator_expected{" + of + "}", fmt.Sprintf("1x%d", samples)}}
}

func seconds(sample int) string { return fmt.Sprintf("%ds", sample*15) }

func (q quickScenario) test(name string) testCase {
	const firing = `ALERTS{alertstate="firing",severity=~"page|ticket"}`
	const identity = "alertname, severity, cluster, operator, sli, version"
	last := seconds(q.fleet.minutes - 1)
	began := testExpr{At: last, Expr: fmt.Sprintf("sum by (%s) (count_over_time((%s unless (%s offset 15s))[%s:15s]))",
		identity, firing, firing, last)}
	for _, a := range slices.SortedFunc(maps.Keys(q.alerts), compareAlerts) {
		began.Samples = append(began.Samples, testSample{a.labels(), q.alerts[a]})
	}
	now := func(at int, alerts []alert) testExpr {
		out := testExpr{At: seconds(at), Expr: fmt.Sprintf("count by (%s) (%s)", identity, firing)}
		for _, a := range alerts {
			out.Samples = append(out.Samples, testSample{a.labels(), 1})
		}
		return out
	}
	out := testCase{Name: name, Series: q.fleet.series(), Exprs: []testExpr{began, now(q.fleet.minutes-1, q.open)}}
	for _, at := range slices.Sorted(maps.Keys(q.pages)) {
		out.Exprs = append(out.Exprs, now(at, q.pages[at]))
	}
	return out
}

// runQuick plays cases with samples and slices of 15 s.
func runQuick(t *testing.T, set slo.Set, parts []slo.Part, cases ...testCase) {
	t.Helper()
	if err := playQuick(t, set, parts, "", "", cases...); err != nil {
		t.Error(err)
	}
}

// playQuick does so with some text of the rules replaced.
func playQuick(t *testing.T, set slo.Set, parts []slo.Part, from, to string, cases ...testCase) error {
	t.Helper()
	return playGroups(t, "15s", set, parts, quickGroups, from, to, cases...)
}

// quickGroups are those of a part that are played with slices of 15 s.
func quickGroups(rules *slo.Rules, part slo.Part) (groups []monitoringv1.RuleGroup, order []string) {
	groups = withoutLong(rules.All())
	if part == slo.Hub {
		groups = withoutProbes(groups)
	}
	groups = hold(groups)
	for _, g := range groups {
		order = append(order, g.Name)
	}
	return groups, order
}

// TestCriticalOperators counts, over whole runs, how often each alert begins to fire, and looks at when.
func TestCriticalOperators(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(criticalScenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runQuick(t, critical, []slo.Part{slo.Whole}, criticalScenarios[name].test(name))
		})
	}
}

// TestCriticalOperatorsInParts expects the same of both parts of the rules. The hub part is evaluated 30 s later, about
// the same times.
func TestCriticalOperatorsInParts(t *testing.T) {
	for _, name := range []string{"an outage of 10 minutes", "one bad sample",
		"three critical operators of a cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runQuick(t, critical, inParts, criticalScenarios[name].test(name))
		})
	}
}
