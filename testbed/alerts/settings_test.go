// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestThresholds judges two operators by the same metrics: one by the thresholds of the default profile, the other by
// thresholds of its own.
func TestThresholds(t *testing.T) {
	own := func(sli string, thresholds slo.Thresholds) slo.Objective {
		return slo.Objective{SLI: sli, Target: 990_000, Thresholds: thresholds}
	}
	set := slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{{
		Namespace: "fleet", Name: "lenient", Objectives: []slo.Objective{
			own("reconcile", slo.Thresholds{BadShare: 500_000}),
			own("latency", slo.Thresholds{Duration: time.Minute}),
			own("queue", slo.Thresholds{Depth: 100}),
			own("webhook", slo.Thresholds{BadShare: 500_000}),
			own("operands", slo.Thresholds{BadShare: 500_000}),
			own("memory", slo.Thresholds{BadShare: 990_000}),
			own("throttling", slo.Thresholds{BadShare: 500_000}),
			own("storage", slo.Thresholds{BadShare: 990_000}),
		}}, {
		Namespace: "fleet", Name: "strict", Objectives: []slo.Objective{
			own("latency", slo.Thresholds{Duration: 500 * time.Millisecond, BadShare: 10_000}),
			own("queue", slo.Thresholds{Duration: time.Minute}),
		}}}}
	test := testCase{Name: "three operators with the same metrics"}
	add := func(series, values string) { test.Series = append(test.Series, testInput{series, values}) }
	for _, operator := range []string{"echo", "lenient", "strict"} {
		of := func(metric string, labels ...string) string {
			return id(metric, fmt.Sprintf("cluster=\"c\",operator_namespace=\"fleet\",operator=%q", operator), labels)
		}
		in := func(metric string, labels ...string) string {
			return id(metric, fmt.Sprintf("cluster=\"c\",namespace=%q", operator), labels)
		}
		hooked := func(metric string) string {
			return id(metric, fmt.Sprintf("cluster=\"c\",name=\"%s.example.com\"", operator), nil)
		}
		add(of(info, fmt.Sprintf("namespace=%q", operator), `csv="v1"`, `version="1.0.0"`), one)
		add(of(hook, fmt.Sprintf("name=\"%s.example.com\"", operator)), one)
		// A fifth of the reconciles fail, a fifth take more than 10 s, and all take more than half a second.
		add(in(total), steady)
		add(in(reconcileErrors), "0+12x30")
		add(in(count), steady)
		add(in(bucket, `le="0.5"`), zero)
		add(in(bucket, `le="10.0"`), "0+48x30")
		add(in(bucket, `le="60.0"`), steady)
		add(in(longest), "100x30")
		add(in(depth), "20x30")
		add(hooked(called), steady)
		add(hooked(failedOpen), "0+12x30")
		add(of(operands, `kind="A"`, `ready="true"`), "8x30")
		add(of(operands, `kind="A"`, `ready="false"`), "2x30")
		// 95 % of the memory limit and of a volume are used, and a third of the CPU periods are throttled.
		container := []string{`pod="` + echoPod + `"`, `container="manager"`}
		add(of(desired, `deployment="echo-manager"`), one)
		add(in(memoryUsed, container...), "95x30")
		add(in(memoryLimit, container...), "100x30")
		add(in(throttled, container...), "0+20x30")
		add(in(periods, container...), "0+60x30")
		add(of(claimed, fmt.Sprintf("namespace=%q", operator), `persistentvolumeclaim="data"`), one)
		add(in(volumeFree, `persistentvolumeclaim="data"`), "5x30")
		add(in(volumeSize, `persistentvolumeclaim="data"`), "100x30")
	}
	slis := []string{"reconcile", "latency", "queue", "webhook", "operands", "memory", "throttling", "storage"}
	bad := map[string][]string{"echo": slis, "strict": slis}
	judged := fmt.Sprintf("bellwether:sli_bad:bool{sli=~%q}", strings.Join(slis, "|"))
	expr := testExpr{Expr: judged + " == 1", At: "25m"}
	for operator, slis := range bad {
		for _, sli := range slis {
			expr.Samples = append(expr.Samples, testSample{fmt.Sprintf(
				`bellwether:sli_bad:bool{cluster="c",operator_namespace="fleet",operator=%q,sli=%q}`, operator, sli), 1})
		}
	}
	all := testExpr{Expr: "count(" + judged + ")", At: "25m", Samples: []testSample{{"{}", 24}}}
	test.Exprs = []testExpr{expr, all}
	quick := testCase{Name: "strict thresholds are all kept", Series: []testInput{
		{id(info, `cluster="c",operator_namespace="fleet",operator="strict"`, []string{`namespace="strict"`, `csv="v1"`,
			`version="1.0.0"`}), one},
		{`controller_runtime_reconcile_time_seconds_count{cluster="c",namespace="strict"}`, steady},
		{`controller_runtime_reconcile_time_seconds_bucket{cluster="c",namespace="strict",le="0.5"}`, steady},
		{`workqueue_longest_running_processor_seconds{cluster="c",namespace="strict"}`, "59x30"},
		{`workqueue_depth{cluster="c",namespace="strict"}`, "10x30"},
	}, Exprs: []testExpr{{Expr: `count(bellwether:sli_bad:bool{sli=~"latency|queue"} == 0)`, At: "25m",
		Samples: []testSample{{"{}", 2}}}}}
	run(t, set, test, quick)
}

// TestAlertsOfObjectives has SLIs fail whose objectives have no pages, or no alerts at all, and an operator whose
// alerts have labels beside operators without any.
func TestAlertsOfObjectives(t *testing.T) {
	t.Parallel()
	set := slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 999_000}, {SLI: "catalog", Target: 999_000,
		Alerts: slo.AlertsNone}},
		WithoutAlerts: []string{"BellwetherHubDown"},
		Operators: []slo.Operator{
			{Namespace: "fleet", Name: "tickets", Objectives: []slo.Objective{{SLI: "csv", Target: 999_000,
				Alerts: slo.AlertsTickets}}},
			{Namespace: "fleet", Name: "pages", Objectives: []slo.Objective{{SLI: "csv", Target: 999_000,
				Alerts: slo.AlertsPages}}},
			{Namespace: "fleet", Name: "silent", Objectives: []slo.Objective{{SLI: "csv", Target: 999_000,
				Alerts: slo.AlertsNone}}},
			{Namespace: "fleet", Name: "labelled", Team: "blue", Labels: map[string]string{"area": "network"},
				Annotations: map[string]string{"contact": "#network"}},
		}}
	fleet := fleet{minutes: 180, hubDark: []span{{150, 180}}}
	for _, operator := range []string{"plain", "tickets", "pages", "silent", "labelled"} {
		fleet.installs = append(fleet.installs, install{cluster: "of-" + operator, operator: operator,
			bad: map[string][]span{"csv": {{60, 100}}, "catalog": {{60, 100}}}, missing: map[string][]span{
				"csv": {{105, 150}}, "catalog": {{105, 150}}}})
	}
	fired := func(alert, severity string, operators ...string) testExpr {
		out := testExpr{At: "149m", Expr: fmt.Sprintf(
			"count by (operator, team, area) "+
				"(last_over_time(ALERTS{alertname=%q,alertstate=\"firing\",severity=%q}[2h]))",
			alert, severity)}
		for _, labels := range operators {
			out.Samples = append(out.Samples, testSample{labels, 1})
		}
		return out
	}
	const plain, labelled = `{operator="plain"}`, `{operator="labelled",team="blue",area="network"}`
	test := testCase{Name: "alerts of objectives", Series: fleet.series(), Exprs: []testExpr{
		fired("BellwetherOperatorSLOBurn", "page", plain, labelled, `{operator="pages"}`),
		fired("BellwetherOperatorSLOBurn", "ticket", `{operator="tickets"}`),
		// Tickets about data that is missing are of csv only, and of operators that have alerts.
		fired("BellwetherSLIAbsent", "ticket", plain, labelled, `{operator="tickets"}`, `{operator="pages"}`),
		{Expr: `count(bellwether:slo_budget_left:ratio < 1)`, At: "149m", Samples: []testSample{{"{}", 10}}},
		{Expr: `ALERTS{alertname="BellwetherHubDown"}`, At: "179m"},
	}}
	run(t, set, test)
}
