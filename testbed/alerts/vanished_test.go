// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestOwnSLIsVanish has SLIs of an operator's own fail on one cluster of two, where their series end during the
// failure.
func TestOwnSLIsVanish(t *testing.T) {
	t.Parallel()
	set := slo.Set{Operators: []slo.Operator{{
		Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "requests", Target: 990_000},
			{SLI: "healthy", Target: 990_000}},
		Own: []slo.OwnSLI{slo.BoolGauge("healthy", "echo_healthy", nil),
			slo.RequestRatio("requests", requests, nil, []slo.Matcher{{Label: "code", Op: "=", Value: "500"}})},
	}}}
	const firing = `ALERTS{alertstate="firing",severity=~"page|ticket",sli=~"requests|healthy"}`
	const failing = "count by (alertname, severity, cluster, sli) (" + firing + ")"
	alert := func(name, severity, sli string) testSample {
		return testSample{fmt.Sprintf("{alertname=%q,severity=%q,cluster=\"c\",sli=%q}", name, severity, sli), 1}
	}
	both := func(name, severity string) []testSample {
		return []testSample{alert(name, severity, "requests"), alert(name, severity, "healthy")}
	}
	// From minute 50 on, for 15 minutes, everything fails on c. Then comes what is after that.
	story := func(name, expected, after string, moments ...testExpr) testCase {
		numbers := "0x50 0+60x15" + strings.ReplaceAll(after, "V", "900")
		healthy := "1x50 0x15" + strings.ReplaceAll(after, "V", "1")
		return testCase{Name: name, Series: []testInput{
			{`bellwether_fleet_clusters{state="online"}`, "2x500"},
			{`bellwether_operator_expected{cluster="c",operator_namespace="fleet",operator="echo"}`, expected},
			{`bellwether_operator_expected{cluster="d",operator_namespace="fleet",operator="echo"}`, "1x500"},
			{csv + `{cluster="c",operator_namespace="fleet",operator="echo"}`, expected},
			{requests + `{cluster="c",code="500"}`, numbers}, {requests + `{cluster="d",code="200"}`, "0+60x500"},
			{`echo_healthy{cluster="c"}`, healthy}, {`echo_healthy{cluster="d"}`, "1x500"},
		}, Exprs: append([]testExpr{{Expr: failing, At: "45m"},
			{Expr: failing, At: "65m", Samples: both("BellwetherOperatorSLOBurn", "page")}}, moments...)}
	}
	const lasts = "sum by (sli) (count_over_time((group by (sli) (" + firing + "))[3h:1m]))"
	absent := both("BellwetherSLIAbsent", "ticket")
	run(t, set,
		story("for ever", "1x500", " stale",
			testExpr{Expr: failing, At: "80m", Samples: both("BellwetherOperatorSLOBurn", "page")},
			testExpr{Expr: failing, At: "115m", Samples: absent},
			testExpr{Expr: lasts, At: "250m", Samples: []testSample{{`{sli="requests"}`, 180},
				{`{sli="healthy"}`, 180}}},
			testExpr{Expr: failing, At: "400m", Samples: absent}),
		story("for some minutes", "1x500", " stale _x8 Vx400",
			// All requests of 6 hours were these, so that their burn rate is also that of the tier 6h.
			testExpr{Expr: failing, At: "95m", Samples: []testSample{
				alert("BellwetherOperatorSLOBurn", "page", "requests")}},
			testExpr{Expr: failing, At: "115m"}, testExpr{Expr: failing, At: "200m"}),
		story("for hours", "1x500", " stale _x130 Vx200",
			testExpr{Expr: failing, At: "195m", Samples: absent}, testExpr{Expr: failing, At: "230m"}),
		story("for hours, and again while it is good", "1x500", " stale _x130 Vx20 stale",
			testExpr{Expr: failing, At: "195m", Samples: absent}, testExpr{Expr: failing, At: "250m"},
			testExpr{Expr: failing, At: "330m"}),
		story("with the operator", "1x80 stale", " stale",
			testExpr{Expr: failing, At: "115m"}, testExpr{Expr: failing, At: "200m"}))
}

// TestValuesThatAreNotFinite plays what queries of requests and of shares give beside numbers.
func TestValuesThatAreNotFinite(t *testing.T) {
	t.Parallel()
	const ofAll = "sum by (cluster) (job:requests:rate5m)"
	set := readSet(t, slothSLO("requests", "sum by (cluster) (job:errors:rate5m)", ofAll),
		slothSLO("less", ofAll+" - sum by (cluster) (job:good:rate5m)", ofAll),
		`version: prometheus/v1
service: echo
slos:
- name: share
  objective: 99.9
  sli: {raw: {error_ratio_query: 'errors / requests'}}
  alerting: {name: X}
`)
	set.Operators[0].Objectives = append(set.Operators[0].Objectives, slo.Objective{SLI: "fast", Target: 990_000})
	set.Operators[0].Own = append(set.Operators[0].Own, slo.OwnSLI{Name: "fast", Good: "took_seconds < bool 5"})
	always := func(value string) string { return strings.Join(slices.Repeat([]string{value}, 31), " ") }
	slice := func(sli string, value float64) []testSample {
		return []testSample{{id("bellwether:sli_bad:bool", `cluster="c"`, []string{ofEcho, fmt.Sprintf("sli=%q", sli)}),
			value}}
	}
	in := func(metric, value string, labels ...string) testInput {
		return testInput{id(metric, `cluster="c"`, labels), always(value)}
	}
	bad, all, good := "job:errors:rate5m", "job:requests:rate5m", "job:good:rate5m"
	var cases []testCase
	for name, test := range map[string]struct {
		sli    string
		series []testInput
		want   []testSample
		count  float64
	}{
		"all fail, and are counted elsewhere": {"requests", []testInput{in(bad, "2"), in(all, "0")},
			slice("requests", 1), 120},
		"more fail than there are": {"requests", []testInput{in(bad, "2"), in(all, "1")},
			slice("requests", 1), 120},
		"infinitely many fail": {"requests", []testInput{in(bad, "+Inf"), in(all, "1")},
			slice("requests", 1), 60},
		"infinitely many of none fail": {"requests", []testInput{in(bad, "+Inf"), in(all, "0")}, nil, 0},
		"what fails is no number":      {"requests", []testInput{in(bad, "NaN"), in(all, "1")}, nil, 60},
		"what fails is negative":       {"requests", []testInput{in(bad, "-Inf"), in(all, "1")}, nil, 60},
		"infinitely many":              {"requests", []testInput{in(bad, "1"), in(all, "+Inf")}, nil, -1},
		"how many is no number":        {"requests", []testInput{in(bad, "1"), in(all, "NaN")}, nil, -1},
		"nothing fails":                {"requests", []testInput{in(all, "1")}, slice("requests", 0), 60},
		"no requests":                  {"requests", []testInput{in(bad, "0"), in(all, "0")}, slice("requests", 0), 0},
		"what is good is no number":    {"less", []testInput{in(good, "NaN"), in(all, "1")}, nil, 60},
		"infinitely many are good":     {"less", []testInput{in(good, "+Inf"), in(all, "1")}, nil, 60},
		"all are infinitely many":      {"less", []testInput{in(good, "1"), in(all, "+Inf")}, nil, -1},
		"a share of nothing": {"share", []testInput{in("errors", "2"), in("requests", "0")},
			slice("share", 1), -1},
		"nothing of nothing": {"share", []testInput{in("errors", "0"), in("requests", "0")}, nil, -1},
		"a share that is less than any": {"share", []testInput{in("errors", "-1"), in("requests", "0")}, nil,
			-1},
		"a share beside one of nothing": {"share", []testInput{in("errors", "0", `part="a"`),
			in("requests", "0", `part="a"`), in("errors", "1", `part="b"`), in("requests", "2", `part="b"`)},
			slice("share", 0.5), -1},
		"it takes for ever":       {"fast", []testInput{in("took_seconds", "+Inf")}, slice("fast", 1), -1},
		"it takes nobody knows":   {"fast", []testInput{in("took_seconds", "NaN")}, slice("fast", 1), -1},
		"it takes a short moment": {"fast", []testInput{in("took_seconds", "1")}, slice("fast", 0), -1},
	} {
		out := testCase{Name: name, Series: test.series, Exprs: []testExpr{{
			Expr: fmt.Sprintf("bellwether:sli_bad:bool{sli=%q}", test.sli), At: "25m", Samples: test.want}}}
		requests := testExpr{Expr: fmt.Sprintf("sum(bellwether:sli_requests:count{sli=%q})", test.sli), At: "25m"}
		if test.count >= 0 {
			requests.Samples = []testSample{{"{}", test.count}}
		}
		out.Exprs = append(out.Exprs, requests)
		cases = append(cases, out)
	}
	run(t, set, cases...)
}
