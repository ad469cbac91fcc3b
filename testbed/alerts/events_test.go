// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/read"
)

// formats are the same SLI, without any setting that has a default, in every format that can be read.
var formats = map[string]string{
	"OperatorSLO": `apiVersion: bellwether.dev/v1alpha1
kind: OperatorSLO
metadata: {name: echo, namespace: fleet}
spec:
  operator: echo
  profile: None
  objectives: [{sli: requests, target: "99.9"}]
  own:
  - name: requests
    requestRatio: {counter: http_requests_total, bad: [{label: code, op: "=~", value: "5.."}]}
`,
	"sloth": `version: prometheus/v1
service: echo
slos:
- name: requests
  objective: 99.9
  sli:
    events:
      error_query: sum by (cluster) (rate(http_requests_total{code=~"5.."}[{{.window}}]))
      total_query: sum by (cluster) (rate(http_requests_total[{{.window}}]))
  alerting: {name: Requests}
`,
	"OpenSLO": `apiVersion: openslo/v1
kind: SLO
metadata: {name: requests}
spec:
  service: echo
  budgetingMethod: Occurrences
  timeWindow: [{duration: 30d, isRolling: true}]
  objectives: [{target: 0.999}]
  indicator:
    metadata: {name: requests}
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {type: Prometheus, spec: {query: 'http_requests_total{code=~"5.."}'}}}
        total: {metricSource: {type: Prometheus, spec: {query: 'http_requests_total'}}}
`,
}

// answered and failed are the requests of a cluster.
func answered(cluster, values string) testInput { return ofCode(cluster, "200", values) }
func failed(cluster, values string) testInput   { return ofCode(cluster, "500", values) }

func ofCode(cluster, code, values string) testInput {
	return testInput{fmt.Sprintf("%s{cluster=%q,code=%q}", requests, cluster, code), values}
}

// fewRequests are clusters with little traffic, which are named by what happens there.
var fewRequests = []testInput{
	failed("1 request a minute, and all fail for 10 h", "0x60 1+1x600 601x60"),
	failed("1 request in 5 minutes, and all fail for 10 h", slo.Samples(720, func(m int) string {
		return strconv.Itoa(min(max(m-55, 0), 600) / 5)
	})),
	answered("1 failed request at night", "1000x700 1000+60x20"), failed("1 failed request at night", "0x300 1x420"),
	failed("1 failed request and nothing else", "0x300 1x420"),
	answered("2 failed requests at night", "1000x720"), failed("2 failed requests at night", "0x300 1x29 2x390"),
	answered("1 failed request of 60", "0+1x720"), failed("1 failed request of 60", "0x300 1x420"),
}

// TestFewRequests plays them in every format with all defaults, at a target of 99.9 %.
func TestFewRequests(t *testing.T) {
	page := func(cluster string) testSample {
		return testSample{ofInstallOf(cluster, "requests", "page").labels(), 1}
	}
	story := testCase{Name: "few requests",
		Series: append([]testInput{{
			`bellwether_operator_expected{cluster="1 failed request of 60",operator_namespace="fleet",operator="echo"}`,
			"1x720"},
			{`bellwether_fleet_clusters{state="online"}`, "1x720"}}, fewRequests...),
		Exprs: []testExpr{
			{Expr: byIdentity(720), At: "719m", Samples: []testSample{
				page("1 request a minute, and all fail for 10 h"),
				page("1 request in 5 minutes, and all fail for 10 h"),
			}},
			{Expr: `count(bellwether:slo_budget_left:ratio{cluster=~".*all fail.*"} < 0) by (operator)`, At: "660m",
				Samples: []testSample{{`{operator="echo"}`, 2}}},
		}}
	for format, text := range formats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var set slo.Set
			if report, err := read.File(&set, "fleet", []byte(text)); err != nil || report.Refused != nil {
				t.Fatal(report.Refused, err)
			}
			run(t, set, story)
		})
	}
}

// ofMethod is an SLI of the same requests whose budget is counted in some way.
func ofMethod(name string, change func(*slo.OwnSLI)) slo.OwnSLI {
	out := slo.RequestRatio(name, requests, nil, []slo.Matcher{{Label: "code", Op: "=~", Value: "5.."}})
	change(&out)
	return out
}

// TestBudgetingMethods counts the same requests in each way: what a slice is, and when there is a page at 99 %.
func TestBudgetingMethods(t *testing.T) {
	t.Parallel()
	const gauge = "echo_healthy"
	operator := slo.Operator{Namespace: "fleet", Name: "echo", Own: []slo.OwnSLI{
		ofMethod("occurrences", func(o *slo.OwnSLI) { o.Method = slo.Occurrences }),
		ofMethod("timeslices", func(o *slo.OwnSLI) { o.Method, o.SliceTarget = slo.Timeslices, 950_000 }),
		ofMethod("shares", func(o *slo.OwnSLI) { o.Method = slo.RatioTimeslices }),
		ofMethod("many", func(o *slo.OwnSLI) { o.MinRequests = 100 }),
		ofMethod("many-in-slices", func(o *slo.OwnSLI) { o.Method, o.MinRequests = slo.RatioTimeslices, 100 }),
		slo.BoolGauge("gauge", gauge, []slo.Matcher{{Label: "part", Op: "=", Value: "api"}}),
	}}
	for _, own := range operator.Own {
		operator.Objectives = append(operator.Objectives, slo.Objective{SLI: own.Name, Target: 990_000})
	}
	healthy := func(part, values string) testInput {
		return testInput{fmt.Sprintf("%s{cluster=\"c\",part=%q}", gauge, part), values}
	}
	var cases []testCase
	for name, in := range map[string]struct {
		series []testInput
		// slices at minute 100, and the SLIs that page at some time until minute 240.
		slices map[string]float64
		pages  []string
	}{
		"half of 10 requests a minute": {
			[]testInput{answered("c", "0+10x60 600+5x180"), failed("c", "0x60 5+5x180")},
			map[string]float64{"occurrences": 0.5, "timeslices": 1, "shares": 0.5, "many": 0.5, "many-in-slices": 0},
			[]string{"occurrences", "timeslices", "shares", "many"},
		},
		"1 request a minute, and all fail": {
			[]testInput{failed("c", "0x60 1+1x180")},
			map[string]float64{"occurrences": 1, "timeslices": 1, "shares": 1, "many": 1, "many-in-slices": 0},
			[]string{"occurrences", "timeslices", "shares", "many"},
		},
		"3 of 100 requests a minute": {
			[]testInput{answered("c", "0+100x60 6000+97x180"), failed("c", "0x60 3+3x180")},
			map[string]float64{"occurrences": 0.03, "timeslices": 0, "shares": 0.03, "many": 0.03,
				"many-in-slices": 0.03},
			nil,
		},
		"a gauge that is 0": {[]testInput{healthy("api", "1x60 0x180"), healthy("web", "1x240")},
			map[string]float64{"gauge": 1}, []string{"gauge"}},
		"a gauge that is 0 for 2 minutes": {[]testInput{healthy("api", "1x60 0x1 1x178")},
			map[string]float64{"gauge": 0}, nil},
		"a gauge that is no number": {[]testInput{healthy("api", "1x60 "+strings.Repeat("NaN ", 180))},
			map[string]float64{"gauge": 1}, []string{"gauge"}},
		"another part's gauge that is 0": {[]testInput{healthy("api", "1x240"), healthy("web", "0x240")},
			map[string]float64{"gauge": 0}, nil},
		"a gauge that is missing": {[]testInput{healthy("web", "1x240")}, nil, nil},
	} {
		test := testCase{Name: name, Series: append([]testInput{{of("bellwether_operator_expected"), "1x240"},
			{`bellwether_fleet_clusters{state="online"}`, "1x240"}}, in.series...)}
		slice := testExpr{Expr: "round(bellwether:sli_bad:bool, 0.001)", At: "100m"}
		for sli, value := range in.slices {
			slice.Samples = append(slice.Samples, testSample{fmt.Sprintf(`{cluster="c",%s,sli=%q}`, ofEcho, sli), value})
		}
		pages := testExpr{Expr: `count by (sli) (last_over_time(ALERTS{alertname="BellwetherOperatorSLOBurn",` +
			`alertstate="firing",severity="page"}[4h]))`, At: "240m"}
		for _, sli := range in.pages {
			pages.Samples = append(pages.Samples, testSample{fmt.Sprintf("{sli=%q}", sli), 1})
		}
		test.Exprs = []testExpr{slice, pages}
		cases = append(cases, test)
	}
	run(t, slo.Set{Operators: []slo.Operator{operator}}, cases...)
}

// TestReleaseFailsSomeRequests has a release that fails a fifth of the requests on many clusters, beside a cluster of
// the release before where one request of many failed: that is one page about the release.
func TestReleaseFailsSomeRequests(t *testing.T) {
	t.Parallel()
	set := slo.Set{Operators: []slo.Operator{{Namespace: "fleet", Name: "echo",
		Objectives: []slo.Objective{{SLI: "requests", Target: 999_000}},
		Own:        []slo.OwnSLI{ofMethod("requests", func(*slo.OwnSLI) {})}}}}
	fleet := fleet{minutes: 300, installs: clusters(10, func(i int, in *install) {
		in.onlyCSV = true
		in.versions = []change{{0, "2.0.0"}}
		if i == 9 {
			in.versions = []change{{0, "1.0.0"}}
		}
	})}
	for i := range 9 {
		fleet.extra = append(fleet.extra, answered(fmt.Sprintf("c%d", i), "0+10x60 600+8x60 1080+10x180"),
			failed(fmt.Sprintf("c%d", i), "0x60 2+2x60 122x180"))
	}
	fleet.extra = append(fleet.extra, answered("c9", "0+10x300"), failed("c9", "0x60 1x240"))
	run(t, set, scenario{fleet: fleet, alerts: map[alert]float64{ofRelease("2.0.0", "requests", "page"): 1}}.test(
		"a fifth of the requests"))
}
