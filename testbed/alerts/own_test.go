// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

const (
	requests = "http_requests_total"
	tookLe   = "http_request_duration_seconds_bucket"
	took     = "http_request_duration_seconds_count"
	quick    = `http_request_duration_seconds_bucket{cluster="c",le="0.5"}`
)

// TestOwnSLIs judges slices that are shares of an operator's own requests.
func TestOwnSLIs(t *testing.T) {
	t.Parallel()
	set := slo.Set{Operators: []slo.Operator{{
		Namespace: "fleet", Name: "echo",
		Objectives: []slo.Objective{{SLI: "requests", Target: 990_000}, {SLI: "slow", Target: 990_000}},
		Own: []slo.OwnSLI{
			slo.RequestRatio("requests", requests, nil, []slo.Matcher{{Label: "code", Op: "=~", Value: "5.."}}),
			slo.LatencyThreshold("slow", "http_request_duration_seconds", "0.5", nil),
		},
	}}}
	ok, errors := requests+`{cluster="c",code="200"}`, requests+`{cluster="c",code="500"}`
	slice := func(sli string, value float64) []testSample {
		return []testSample{{`bellwether:sli_bad:bool{cluster="c",operator_namespace="fleet",operator="echo",sli="` +
			sli + `"}`, value}}
	}
	all := took + `{cluster="c"}`
	var cases []testCase
	for name, in := range map[string]struct {
		sli    string
		series []testInput
		want   []testSample
	}{
		"a quarter fails": {"requests", []testInput{{ok, "0+45x30"}, {errors, "0+15x30"}},
			slice("requests", 0.25)},
		"nothing has failed yet": {"requests", []testInput{{ok, steady}}, slice("requests", 0)},
		"everything fails":       {"requests", []testInput{{errors, steady}}, slice("requests", 1)},
		"one request a minute":   {"requests", []testInput{{ok, idle}, {errors, "0+1x30"}}, slice("requests", 1)},
		"idle":                   {"requests", []testInput{{ok, idle}, {errors, idle}}, slice("requests", 0)},
		"no metrics":             {"requests", nil, nil},
		"a quarter is slow": {"slow", []testInput{{all, "0+100x30"}, {quick, "0+75x30"},
			{tookLe + `{cluster="c",le="+Inf"}`, "0+100x30"}}, slice("slow", 0.25)},
		"nothing is slow": {"slow", []testInput{{all, steady}, {quick, steady}}, slice("slow", 0)},
		"there is no such bound": {"slow", []testInput{{all, steady}, {tookLe + `{cluster="c",le="0.7"}`, steady}},
			nil},
		"more quick ones than all": {"slow", []testInput{{all, steady}, {quick, "0+70x30"}}, slice("slow", 0)},
	} {
		cases = append(cases, testCase{Name: name, Series: in.series, Exprs: []testExpr{{
			Expr: `bellwether:sli_bad:bool{sli="` + in.sli + `"}`, At: "25m", Samples: in.want,
		}}})
	}
	// A quarter of the requests fails for three hours: less than a page's factor over an hour, more over six.
	expected := testInput{of("bellwether_operator_expected"), "1x400"}
	cases = append(cases, testCase{
		Name: "a budget of shares", Series: []testInput{expected, {ok, "0+45x400"}, {errors, "0+0x29 0+15x180"}},
		Exprs: []testExpr{
			{Expr: `ALERTS{alertstate="firing",sli="requests"}`, At: "29m"},
			{Expr: `count by (cluster, severity) (ALERTS{alertstate="firing",sli="requests"})`, At: "150m",
				Samples: []testSample{{`{cluster="c",severity="page"}`, 1}}},
			{Expr: `round(bellwether:slo_budget_left:ratio{sli="requests"}, 0.01)`, At: "150m",
				Samples: []testSample{{`{cluster="c",operator_namespace="fleet",operator="echo",sli="requests"}`,
					0.93}}},
		},
	}, testCase{
		// As before, and the last hour of it is excluded: 60 slices of 180 that were bad.
		Name: "a part of a budget of shares is excluded",
		Series: []testInput{expected, {ok, "0+45x400"}, {errors, "0+0x29 0+15x180"},
			{of("bellwether_slo_budget_excluded"), "_x150 1x59 stale"}},
		Exprs: []testExpr{
			{Expr: `bellwether:slo_budget_excluding:ratio`, At: "140m"},
			{Expr: `round((1 - bellwether:slo_budget_excluding:ratio{sli="requests"}) / ` +
				`(1 - bellwether:slo_budget_left:ratio), 0.01)`, At: "230m",
				Samples: []testSample{{`{cluster="c",operator_namespace="fleet",operator="echo",sli="requests"}`,
					0.67}}},
		},
	}, testCase{
		Name: "nobody measures", Series: []testInput{expected, {ok, "0+45x60 stale"}},
		Exprs: []testExpr{
			{Expr: `ALERTS{alertstate="firing",sli="requests"}`, At: "59m"},
			{Expr: `count by (alertname, sli, slo) (ALERTS{alertstate="firing",severity="ticket"})`, At: "100m",
				Samples: []testSample{
					{`{alertname="BellwetherSLIAbsent",sli="requests",slo="fleet/echo/requests"}`, 1},
					{`{alertname="BellwetherSLIAbsent",sli="slow",slo="fleet/echo/slow"}`, 1},
				}},
		},
	})
	run(t, set, cases...)
}
