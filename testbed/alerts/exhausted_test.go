// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"math"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// spending is what one cluster's slices took of a budget.
type spending struct {
	sli string
	// Bad slices, or requests, of one minute each: for how many nobody is blamed, and for how many a release is.
	own, blamed int
	// each is the value of a bad slice: 1, or a number of requests.
	each int
	// requests are those of every minute, where the budget counts them.
	requests string
	// left is what is recorded; 1 stands for nothing, since so much is left.
	left float64
}

// series are the slices as earlier groups record them.
func (s spending) series(cluster string) []testInput {
	identity := fmt.Sprintf("{cluster=%q,%s,sli=%q}", cluster, ofEcho, s.sli)
	in := []testInput{{"bellwether:sli_bad:bool" + identity, "0x800"}}
	if s.requests != "" {
		in = append(in, testInput{"bellwether:sli_requests:count" + identity, s.requests + "x800"})
	}
	add := func(name string, value, from, number int) {
		if number > 0 {
			in = append(in, testInput{name + identity, fmt.Sprintf("_x%d %dx%d", from, value, number-1)})
		}
	}
	add("bellwether:sli_bad:slice", s.each, 10, s.own+s.blamed)
	if s.own == 0 {
		add("bellwether:sli_bad_cluster:slice", 0, 10, s.blamed)
	} else {
		in = append(in, testInput{"bellwether:sli_bad_cluster:slice" + identity,
			fmt.Sprintf("_x10 %dx%d 0x%d", s.each, s.own-1, s.blamed)})
	}
	add("bellwether:sli_bad_blamed:slice", s.each, 10+s.own, s.blamed)
	return in
}

// spendings are by cluster. At 99.9 % a budget of 30 days has 43.2 slices, and at 99.999 % less than one.
var spendings = map[string]spending{
	"all its own":             {"csv", 50, 0, 1, "", 1 - 50/43.2},
	"all a release's":         {"csv", 0, 50, 1, "", 1},
	"enough without":          {"csv", 30, 20, 1, "", 1},
	"too much without":        {"csv", 45, 15, 1, "", 1 - 45/43.2},
	"nearly spent":            {"csv", 42, 20, 1, "", 1 - 42/43.2},
	"two failures":            {"catalog", 2, 0, 1, "", 1},
	"two, and some of others": {"catalog", 2, 5, 1, "", 1},
	"three failures":          {"catalog", 3, 0, 1, "", 1 - 3/0.432},
	"requests":                {"requests", 50, 0, 10, "10", 1 - 50/43.2},
	"requests of a release":   {"requests", 0, 50, 10, "10", 1},
	"requests of both":        {"requests", 50, 20, 10, "10", 1 - 50/43.2},
	"two requests":            {"rare", 2, 0, 1, "0.01", 1},
	"three requests":          {"rare", 3, 0, 1, "0.01", 1 - 300/43.2},
}

// spendingSeries are the slices of all clusters, and what is recorded of these objectives.
func spendingSeries(objectives []slo.Objective) []testInput {
	all := []testInput{{"bellwether:slo_team:info{" + ofEcho + `,team="a",criticality="Standard"}`, "1x800"}}
	for _, o := range objectives {
		of := fmt.Sprintf("{%s,sli=%q}", ofEcho, o.SLI)
		all = append(all, testInput{"bellwether:slo_objective:ratio" + of, fmt.Sprintf("%gx800", o.Target.Ratio())},
			testInput{"bellwether:slo_period:seconds" + of, "2592000x800"})
		if o.SLI == "requests" || o.SLI == "rare" {
			all = append(all, testInput{"bellwether:slo_min_requests:count" + of, "3x800"})
		}
	}
	for cluster, s := range spendings {
		all = append(all, s.series(cluster)...)
	}
	return all
}

// TestExhaustedBudgets has a ticket about a budget of which nothing is left by the failures that nobody was blamed for,
// if these were more than two.
func TestExhaustedBudgets(t *testing.T) {
	t.Parallel()
	operator := slo.Operator{Namespace: "fleet", Name: "echo",
		Own: []slo.OwnSLI{ofMethod("requests", func(*slo.OwnSLI) {}), ofMethod("rare", func(*slo.OwnSLI) {})},
		Objectives: []slo.Objective{{SLI: "csv", Target: 999_000}, {SLI: "catalog", Target: 999_990},
			{SLI: "requests", Target: 999_000}, {SLI: "rare", Target: 999_000}}}
	left := testExpr{Expr: "round(bellwether:slo_budget_cluster:ratio, 0.001)", At: "720m"}
	alerts := testExpr{Expr: `count by (cluster) (ALERTS{alertname="BellwetherErrorBudgetExhausted",` +
		`alertstate="firing"})`, At: "720m"}
	for cluster, s := range spendings {
		if s.left < 1 {
			series := fmt.Sprintf("{cluster=%q,%s,sli=%q}", cluster, ofEcho, s.sli)
			left.Samples = append(left.Samples, testSample{series, math.Round(s.left*1000) / 1000})
		}
		if s.left <= 0 {
			alerts.Samples = append(alerts.Samples, testSample{fmt.Sprintf("{cluster=%q}", cluster), 1})
		}
	}
	rules, err := slo.Build(slo.Set{Operators: []slo.Operator{operator}})
	if err != nil {
		t.Fatal(err)
	}
	runGroups(t, slices.DeleteFunc(rules.All(), func(g monitoringv1.RuleGroup) bool {
		return g.Name != "bellwether-budget"
	}), testCase{Name: "exhausted budgets", Series: spendingSeries(operator.Objectives),
		Exprs: []testExpr{left, alerts}})
}
