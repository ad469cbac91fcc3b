// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// annotationsTest reads the whole alert of a cluster with a long outage.
func annotationsTest(s Set, operator types.NamespacedName, o Objective) testCase {
	const from, to = 60, 150
	h := clusterHistory{cluster: "outage", version: "1.0.0", timeline: stretch(from, to), to: to}
	// The budget is that of the evaluation before.
	budget := 100 * left(o, to-from-1)
	burn := 1 / o.Target.Budget().Ratio()
	labels := map[string]string{
		series.Cluster: h.cluster, series.OperatorNamespace: operator.Namespace, series.Operator: operator.Name,
		series.SLI: "csv", series.SLO: operator.String() + "/csv",
		series.Severity: series.Page, series.Scope: series.ScopeOperator,
	}
	annotations := map[string]string{
		"summary":     fmt.Sprintf("%s burns its csv budget %.1f times too fast on cluster outage", operator, burn),
		"description": "At this rate the error budget is gone before its period is over.",
		"burn":        fmt.Sprintf("%.1f", burn),
		"window":      "1h",
		"held_until":  "",
		"criticality": standard,
		"budget_left": fmt.Sprintf("%.4g%%", budget),
		"restarts":    "", "custom_resources": "",
		"look": fmt.Sprintf("bellwether why outage %s -n %s", operator.Name, operator.Namespace),
	}
	for _, op := range s.Operators {
		for name := range op.Annotations { // others' annotations are empty
			annotations[name] = cmp.Or(annotations[name], "")
		}
		if op.ID() != operator {
			continue
		}
		maps.Copy(labels, op.Labels)
		maps.Copy(annotations, op.Annotations)
		if op.Team != "" {
			labels[series.Team] = op.Team
		}
	}
	if s.RunbookURL != "" {
		annotations[AnnotationRunbook] = s.runbook(AlertOperator, "csv")
	}
	if s.DashboardURL != "" {
		annotations["dashboard_url"] = fmt.Sprintf(
			"%s?var-operator_namespace=%s&var-operator=%s&var-sli=csv&var-cluster=outage", s.DashboardURL,
			url.QueryEscape(operator.Namespace), url.QueryEscape(operator.Name))
	}
	return testCase{
		Name: "what an alert says", Series: h.series(operator),
		Alerts: []testAlert{{At: minute(to - 1), Alert: AlertOperator, Alerts: []testFiredBy{{labels, annotations}}}},
	}
}

// left is what is left of a budget.
func left(o Objective, bad int) float64 {
	return 1 - float64(bad)/(count(o.period())*o.Target.Budget().Ratio())
}

// spent asks for what a budget is short of, in bad slices: a whole number, which
// no order of operations changes.
func spent(o Objective) string { return spentBy(series.SLOBudgetLeft, o) }

func spentBy(budget string, o Objective) string {
	return fmt.Sprintf("round(max((1 - %s{sli=\"csv\"}) * %s))", budget,
		number(count(o.period())*o.Target.Budget().Ratio()))
}

func minute(i int) string { return strconv.Itoa(i) + "m" }

// releaseTest has a release that is bad on two clusters, and a cluster of the
// release before with trouble of its own.
func releaseTest(operator types.NamespacedName) testCase {
	const from, to = 30, 150
	test := testCase{Name: "a bad release"}
	for _, h := range []clusterHistory{
		{cluster: "first", version: "2.0.0", timeline: stretch(from, to)},
		{cluster: "second", version: "2.0.0", timeline: stretch(from, to)},
		{cluster: "third", version: "1.0.0", timeline: stretch(from, to)},
		{cluster: "fourth", version: "1.0.0", timeline: stretch(0, 0)},
	} {
		h.to = testLength
		test.Series = append(test.Series, h.series(operator)...)
	}
	// One alert about the release, none about its clusters, and the other cluster's own. Of the release before one
	// cluster of two is bad, so it is not at fault.
	test.Exprs = append(test.Exprs,
		testExpr{
			Expr: `count by (alertname, cluster, version, slo) (ALERTS{alertstate="firing",severity="page"})`,
			At:   minute(to - 1),
			Samples: []testSample{
				{fmt.Sprintf("{alertname=%q,version=\"2.0.0\",slo=%q}", AlertRelease, operator.String()+"/csv"), 1},
				{fmt.Sprintf("{alertname=%q,cluster=\"third\",slo=%q}", AlertOperator, operator.String()+"/csv"), 1},
			},
		})
	// Nor when the release recovers.
	for m := from; m < to+120; m += 5 {
		test.Exprs = append(test.Exprs, testExpr{
			Expr: fmt.Sprintf("count by (cluster) (ALERTS{alertname=%q,cluster=~\"first|second\"})", AlertOperator),
			At:   minute(m),
		})
	}
	for _, m := range []int{0, from - 1, to + 10*60} {
		test.Exprs = append(test.Exprs,
			testExpr{Expr: `count by (alertname) (ALERTS{alertstate="firing",severity="page"})`, At: minute(m)})
	}
	return test
}

// upgradeTest changes the version in the middle of an outage.
func upgradeTest(operator types.NamespacedName, o Objective) testCase {
	const from, upgrade, to = 60, 130, 160
	h := clusterHistory{cluster: "upgraded", version: "1.0.0", timeline: stretch(from, to), to: testLength}
	test := testCase{Name: "an upgrade in the middle of an outage", Series: h.series(operator)}
	info := func(version string, has func(int) bool) testInput {
		return testInput{
			h.info(operator, version),
			Samples(testLength, func(i int) string {
				if has(i) {
					return "1"
				}
				return ""
			}),
		}
	}
	// Both versions are there for a while, as two agents or a slow scrape may have it.
	test.Series[1] = info("1.0.0", func(i int) bool { return i < upgrade })
	test.Series = append(test.Series, info("2.0.0", func(i int) bool { return i >= upgrade-3 }))
	alert := testSample{fmt.Sprintf("{alertname=%q,cluster=%q}", AlertOperator, h.cluster), 1}
	for _, m := range []int{upgrade - 4, upgrade - 1, upgrade, upgrade + 5, to - 1} {
		test.Exprs = append(test.Exprs, testExpr{
			Expr: `count by (alertname, cluster) (ALERTS{alertstate="firing",sli="csv",severity="page"})`,
			At:   minute(m), Samples: []testSample{alert},
		})
	}
	test.Exprs = append(test.Exprs,
		testExpr{
			Expr: spent(o), At: minute(to + 10), Samples: []testSample{{"{}", to - from}},
		},
		testExpr{
			Expr: fmt.Sprintf("sum(sum_over_time(%s[1d]))", series.SLIBadVersion), At: minute(to + 10),
			Samples: []testSample{{"{}", to - from}},
		},
		testExpr{
			Expr: fmt.Sprintf("sum(sum_over_time(%s{version=\"2.0.0\"}[1d])) >= bool %d", series.SLIBadVersion,
				to-upgrade), At: minute(to + 10),
			Samples: []testSample{{"{}", 1}},
		})
	return test
}

// excludedTest has two outages. Of one of them, two AlertSilences exclude the middle
// third: one all of it, and the other one a part of it as well. It pages nevertheless, and
// the budget is that of before; beside it is what would be left without the excluded time.
func excludedTest(operator types.NamespacedName, o Objective) testCase {
	const from, excluded, again, counted, to = 60, 90, 100, 120, 150
	h := clusterHistory{cluster: "maintained", version: "1.0.0", timeline: stretch(from, to), to: testLength}
	other := clusterHistory{cluster: "other", version: "1.1.0", timeline: stretch(from, to), to: testLength}
	test := testCase{Name: "time is excluded", Series: append(h.series(operator), other.series(operator)...)}
	silence := func(name string, first int) testInput {
		return testInput{
			fmt.Sprintf("%s{cluster=%q,%s,namespace=\"tools\",silence=%q,owner=\"anna\",reason=\"disks\"}",
				series.BudgetExcluded, h.cluster, matchOperator(operator), name),
			Samples(testLength, func(i int) string {
				if i < first || i >= counted {
					return ""
				}
				return "1"
			}),
		}
	}
	test.Series = append(test.Series, silence("disks", excluded), silence("more-disks", again))
	budgets := fmt.Sprintf("count by (cluster, sli) (%s)", series.SLOBudgetExcluding)
	only := []testSample{{fmt.Sprintf("{cluster=%q,sli=\"csv\"}", h.cluster), 1}}
	pages := testExpr{
		Expr: `count by (cluster) (ALERTS{alertstate="firing",sli="csv",severity="page"})`, At: minute(counted - 1),
		Samples: []testSample{{fmt.Sprintf("{cluster=%q}", h.cluster), 1},
			{fmt.Sprintf("{cluster=%q}", other.cluster), 1}},
	}
	test.Exprs = []testExpr{
		{Expr: budgets, At: minute(excluded - 1)},
		{Expr: budgets, At: minute(counted - 1), Samples: only},
		pages,
		{Expr: budgets, At: minute(to + 10), Samples: only},
		{Expr: spent(o), At: minute(to + 10), Samples: []testSample{{"{}", to - from}}},
		{Expr: spentBy(series.SLOBudgetExcluding, o), At: minute(to + 10),
			Samples: []testSample{{"{}", to - from - (counted - excluded)}}},
		{Expr: fmt.Sprintf("sum by (cluster) (sum_over_time(%s[1d]))", series.SLIBadExcluded), At: minute(to + 10),
			Samples: []testSample{{fmt.Sprintf("{cluster=%q}", h.cluster), counted - excluded}}},
	}
	return test
}

// editedTest changes a target: the budget jumps, and there is a note of it for a day.
func editedTest(o Objective) testCase {
	const edit = 100
	h := clusterHistory{cluster: "any", version: "1.0.0", timeline: stretch(10, 40), to: testLength}
	edited := types.NamespacedName{Namespace: "edited", Name: "edited"}
	id := fmt.Sprintf("{%s,sli=\"csv\"}", matchOperator(edited))
	before, after := Objective{SLI: "csv", Target: 990_000, Period: o.Period},
		Objective{SLI: "csv", Target: 950_000, Period: o.Period}
	if o.period() != DefaultPeriod { // an operator that is not in the set has the default's
		before.Period, after.Period = DefaultPeriod, DefaultPeriod
	}
	test := testCase{Name: "an objective is edited"}
	for _, in := range h.series(edited) {
		if !strings.HasPrefix(in.Series, series.OperatorExpected) {
			test.Series = append(test.Series, in)
		}
	}
	// It has no place in the inventory, so that its objective comes from here and from no rule.
	test.Series = append(test.Series, testInput{series.SLOObjective + id, fmt.Sprintf("%sx%d %sx%d",
		before.Target.decimal(), edit-1, after.Target.decimal(), testLength-edit-1)})
	budget := func(m int, o Objective) testExpr {
		return testExpr{
			Expr: spent(o), At: minute(m), Samples: []testSample{{"{}", 30}},
		}
	}
	note := func(m int, samples ...testSample) testExpr {
		return testExpr{Expr: series.SLOEdited, At: minute(m), Samples: samples}
	}
	test.Exprs = []testExpr{
		budget(edit-1, before), note(edit - 1),
		budget(edit, after), note(edit, testSample{series.SLOEdited + id, 1}),
		note(edit+60, testSample{series.SLOEdited + id, 1}),
	}
	return test
}

// sameNameTest has an operator with an outage, and another one of the same name
// from another namespace that is good, on the same cluster: slices, budgets and
// alerts are those of each.
func sameNameTest(operator types.NamespacedName) testCase {
	const from, to = 60, 150
	other := types.NamespacedName{Namespace: operator.Namespace + "-2", Name: operator.Name}
	bad := clusterHistory{cluster: "shared", version: "1.0.0", timeline: stretch(from, to), to: testLength}
	good := clusterHistory{cluster: "shared", version: "1.1.0", timeline: stretch(0, 0), to: testLength}
	test := testCase{Name: "two operators of one name", Series: append(bad.series(operator), good.series(other)...)}
	sample := func(id types.NamespacedName, value float64) testSample {
		return testSample{fmt.Sprintf("{%s=%q}", series.OperatorNamespace, id.Namespace), value}
	}
	test.Exprs = []testExpr{
		{
			Expr: fmt.Sprintf("count by (operator_namespace) (ALERTS{alertname=%q,alertstate=\"firing\",operator=%q})",
				AlertOperator, operator.Name),
			At: minute(to - 1), Samples: []testSample{sample(operator, 1)},
		},
		{
			Expr: fmt.Sprintf("sum by (operator_namespace) (sum_over_time(%s{sli=\"csv\"}[1d]))", series.SLIBad),
			At:   minute(to + 10), Samples: []testSample{sample(operator, to-from), sample(other, 0)},
		},
		{
			Expr: fmt.Sprintf("min by (operator_namespace) (%s{sli=\"csv\"} < bool 1)", series.SLOBudgetLeft),
			At:   minute(to + 10), Samples: []testSample{sample(operator, 1), sample(other, 0)},
		},
	}
	return test
}
