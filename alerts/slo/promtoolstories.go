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

// buildAnnotationsTest returns a test that checks all labels and
// annotations of the alert about a cluster with a long outage.
func buildAnnotationsTest(s Set, operator types.NamespacedName, o Objective) testCase {
	const from, to = 60, 150
	h := clusterHistory{cluster: "outage", version: "1.0.0", timeline: newTimeline(from, to), to: to}
	// The annotation shows the budget of the previous evaluation.
	budget := 100 * computeBudgetLeft(o, to-from-1)
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
		"criticality": criticalityStandard,
		"budget_left": fmt.Sprintf("%.4g%%", budget),
		"restarts":    "", "custom_resources": "",
		"look": fmt.Sprintf("bellwether why outage %s -n %s", operator.Name, operator.Namespace),
	}
	for _, op := range s.Operators {
		for name := range op.Annotations { // the annotations of other operators are empty
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
		annotations[AnnotationRunbook] = s.buildRunbookURL(AlertOperator, "csv")
	}
	if s.DashboardURL != "" {
		annotations["dashboard_url"] = fmt.Sprintf(
			"%s?var-operator_namespace=%s&var-operator=%s&var-sli=csv&var-cluster=outage", s.DashboardURL,
			url.QueryEscape(operator.Namespace), url.QueryEscape(operator.Name))
	}
	return testCase{
		Name: "what an alert says", Series: h.listSeries(operator),
		Alerts: []testAlert{{At: formatMinute(to - 1), Alert: AlertOperator,
			Alerts: []testFiredBy{{labels, annotations}}}},
	}
}

// computeBudgetLeft returns the part of a budget that is left after a number of bad slices.
func computeBudgetLeft(o Objective, bad int) float64 {
	return 1 - float64(bad)/(countSlices(o.period())*o.Target.Budget().Ratio())
}

// querySpent returns a query for the used part of a budget in bad slices. It is rounded
// to a whole number, so that the order of floating-point operations does not matter.
func querySpent(o Objective) string { return querySpentBy(series.SLOBudgetLeft, o) }

// querySpentBy is like querySpent for another series of remaining budgets.
func querySpentBy(budget string, o Objective) string {
	return fmt.Sprintf("round(max((1 - %s{sli=\"csv\"}) * %s))", budget,
		formatNumber(countSlices(o.period())*o.Target.Budget().Ratio()))
}

func formatMinute(i int) string { return strconv.Itoa(i) + "m" }

// buildReleaseTest returns a test with a release that is bad on two clusters,
// and a cluster with the previous release that fails for another reason.
func buildReleaseTest(operator types.NamespacedName) testCase {
	const from, to = 30, 150
	test := testCase{Name: "a bad release"}
	for _, h := range []clusterHistory{
		{cluster: "first", version: "2.0.0", timeline: newTimeline(from, to)},
		{cluster: "second", version: "2.0.0", timeline: newTimeline(from, to)},
		{cluster: "third", version: "1.0.0", timeline: newTimeline(from, to)},
		{cluster: "fourth", version: "1.0.0", timeline: newTimeline(0, 0)},
	} {
		h.to = testLength
		test.Series = append(test.Series, h.listSeries(operator)...)
	}
	// There is one alert about the release, none about its clusters, and one about the other cluster.
	// One of the two clusters with the previous release is bad, so that release is not blamed.
	test.Exprs = append(test.Exprs,
		testExpr{
			Expr: `count by (alertname, cluster, version, slo) (ALERTS{alertstate="firing",severity="page"})`,
			At:   formatMinute(to - 1),
			Samples: []testSample{
				{fmt.Sprintf("{alertname=%q,version=\"2.0.0\",slo=%q}", AlertRelease, operator.String()+"/csv"), 1},
				{fmt.Sprintf("{alertname=%q,cluster=\"third\",slo=%q}", AlertOperator, operator.String()+"/csv"), 1},
			},
		})
	// There is also no alert about its clusters when the release recovers.
	for m := from; m < to+120; m += 5 {
		test.Exprs = append(test.Exprs, testExpr{
			Expr: fmt.Sprintf("count by (cluster) (ALERTS{alertname=%q,cluster=~\"first|second\"})", AlertOperator),
			At:   formatMinute(m),
		})
	}
	for _, m := range []int{0, from - 1, to + 10*60} {
		test.Exprs = append(test.Exprs,
			testExpr{Expr: `count by (alertname) (ALERTS{alertstate="firing",severity="page"})`, At: formatMinute(m)})
	}
	return test
}

// buildUpgradeTest returns a test that changes the version in the middle of an outage.
func buildUpgradeTest(operator types.NamespacedName, o Objective) testCase {
	const from, upgrade, to = 60, 130, 160
	h := clusterHistory{cluster: "upgraded", version: "1.0.0", timeline: newTimeline(from, to), to: testLength}
	test := testCase{Name: "an upgrade in the middle of an outage", Series: h.listSeries(operator)}
	newInfo := func(version string, has func(int) bool) testInput {
		return testInput{
			h.nameInfoSeries(operator, version),
			Samples(testLength, func(i int) string {
				if has(i) {
					return "1"
				}
				return ""
			}),
		}
	}
	// Both versions exist for some minutes, as with two agents or a slow scrape.
	test.Series[1] = newInfo("1.0.0", func(i int) bool { return i < upgrade })
	test.Series = append(test.Series, newInfo("2.0.0", func(i int) bool { return i >= upgrade-3 }))
	alert := testSample{fmt.Sprintf("{alertname=%q,cluster=%q}", AlertOperator, h.cluster), 1}
	for _, m := range []int{upgrade - 4, upgrade - 1, upgrade, upgrade + 5, to - 1} {
		test.Exprs = append(test.Exprs, testExpr{
			Expr: `count by (alertname, cluster) (ALERTS{alertstate="firing",sli="csv",severity="page"})`,
			At:   formatMinute(m), Samples: []testSample{alert},
		})
	}
	test.Exprs = append(test.Exprs,
		testExpr{
			Expr: querySpent(o), At: formatMinute(to + 10), Samples: []testSample{{"{}", to - from}},
		},
		testExpr{
			Expr: fmt.Sprintf("sum(sum_over_time(%s[1d]))", series.SLIBadVersion), At: formatMinute(to + 10),
			Samples: []testSample{{"{}", to - from}},
		},
		testExpr{
			Expr: fmt.Sprintf("sum(sum_over_time(%s{version=\"2.0.0\"}[1d])) >= bool %d", series.SLIBadVersion,
				to-upgrade), At: formatMinute(to + 10),
			Samples: []testSample{{"{}", 1}},
		})
	return test
}

// buildExcludedTest returns a test with two outages. Two AlertSilences exclude the middle third of one
// outage: the first silence excludes all of it, and the second a part of it. The outage still pages,
// and its budget does not change. A second series has the remaining budget without the excluded time.
func buildExcludedTest(operator types.NamespacedName, o Objective) testCase {
	const from, excluded, overlapping, counted, to = 60, 90, 100, 120, 150
	h := clusterHistory{cluster: "maintained", version: "1.0.0", timeline: newTimeline(from, to), to: testLength}
	other := clusterHistory{cluster: "other", version: "1.1.0", timeline: newTimeline(from, to), to: testLength}
	test := testCase{Name: "time is excluded", Series: append(h.listSeries(operator), other.listSeries(operator)...)}
	newSilence := func(name string, start int) testInput {
		return testInput{
			fmt.Sprintf("%s{cluster=%q,%s,namespace=\"tools\",silence=%q,owner=\"anna\",reason=\"disks\"}",
				series.BudgetExcluded, h.cluster, matchOperator(operator), name),
			Samples(testLength, func(i int) string {
				if i < start || i >= counted {
					return ""
				}
				return "1"
			}),
		}
	}
	test.Series = append(test.Series, newSilence("disks", excluded), newSilence("more-disks", overlapping))
	budgets := fmt.Sprintf("count by (cluster, sli) (%s)", series.SLOBudgetExcluding)
	oneCluster := []testSample{{fmt.Sprintf("{cluster=%q,sli=\"csv\"}", h.cluster), 1}}
	pages := testExpr{
		Expr: `count by (cluster) (ALERTS{alertstate="firing",sli="csv",severity="page"})`,
		At:   formatMinute(counted - 1),
		Samples: []testSample{{fmt.Sprintf("{cluster=%q}", h.cluster), 1},
			{fmt.Sprintf("{cluster=%q}", other.cluster), 1}},
	}
	test.Exprs = []testExpr{
		{Expr: budgets, At: formatMinute(excluded - 1)},
		{Expr: budgets, At: formatMinute(counted - 1), Samples: oneCluster},
		pages,
		{Expr: budgets, At: formatMinute(to + 10), Samples: oneCluster},
		{Expr: querySpent(o), At: formatMinute(to + 10), Samples: []testSample{{"{}", to - from}}},
		{Expr: querySpentBy(series.SLOBudgetExcluding, o), At: formatMinute(to + 10),
			Samples: []testSample{{"{}", to - from - (counted - excluded)}}},
		{Expr: fmt.Sprintf("sum by (cluster) (sum_over_time(%s[1d]))", series.SLIBadExcluded),
			At:      formatMinute(to + 10),
			Samples: []testSample{{fmt.Sprintf("{cluster=%q}", h.cluster), counted - excluded}}},
	}
	return test
}

// buildEditedTest returns a test of an operator with 30 bad slices whose target changes:
// the budget changes at once, and the edit is recorded for a day.
func buildEditedTest(o Objective) testCase {
	const edit = 100
	h := clusterHistory{cluster: "any", version: "1.0.0", timeline: newTimeline(10, 40), to: testLength}
	edited := types.NamespacedName{Namespace: "edited", Name: "edited"}
	id := fmt.Sprintf("{%s,sli=\"csv\"}", matchOperator(edited))
	before, after := Objective{SLI: "csv", Target: 990_000, Period: o.Period},
		Objective{SLI: "csv", Target: 950_000, Period: o.Period}
	if o.period() != DefaultPeriod { // an operator that is not in the set has the default period
		before.Period, after.Period = DefaultPeriod, DefaultPeriod
	}
	test := testCase{Name: "an objective is edited"}
	for _, in := range h.listSeries(edited) {
		if !strings.HasPrefix(in.Series, series.OperatorExpected) {
			test.Series = append(test.Series, in)
		}
	}
	// The operator is not in the inventory, so that its objective comes only from this series and not from a rule.
	test.Series = append(test.Series, testInput{series.SLOObjective + id, fmt.Sprintf("%sx%d %sx%d",
		before.Target.formatDecimal(), edit-1, after.Target.formatDecimal(), testLength-edit-1)})
	expectBudget := func(m int, o Objective) testExpr {
		return testExpr{
			Expr: querySpent(o), At: formatMinute(m), Samples: []testSample{{"{}", 30}},
		}
	}
	expectEdit := func(m int, samples ...testSample) testExpr {
		return testExpr{Expr: series.SLOEdited, At: formatMinute(m), Samples: samples}
	}
	test.Exprs = []testExpr{
		expectBudget(edit-1, before), expectEdit(edit - 1),
		expectBudget(edit, after), expectEdit(edit, testSample{series.SLOEdited + id, 1}),
		expectEdit(edit+60, testSample{series.SLOEdited + id, 1}),
	}
	return test
}

// buildSameNameTest returns a test with two operators of the same name from different namespaces on the
// same cluster. One has an outage, and the other is good: slices, budgets and alerts must not be mixed.
func buildSameNameTest(operator types.NamespacedName) testCase {
	const from, to = 60, 150
	other := types.NamespacedName{Namespace: operator.Namespace + "-2", Name: operator.Name}
	bad := clusterHistory{cluster: "shared", version: "1.0.0", timeline: newTimeline(from, to), to: testLength}
	good := clusterHistory{cluster: "shared", version: "1.1.0", timeline: newTimeline(0, 0), to: testLength}
	test := testCase{Name: "two operators of one name", Series: append(bad.listSeries(operator),
		good.listSeries(other)...)}
	newSample := func(id types.NamespacedName, value float64) testSample {
		return testSample{fmt.Sprintf("{%s=%q}", series.OperatorNamespace, id.Namespace), value}
	}
	test.Exprs = []testExpr{
		{
			Expr: fmt.Sprintf("count by (operator_namespace) (ALERTS{alertname=%q,alertstate=\"firing\",operator=%q})",
				AlertOperator, operator.Name),
			At: formatMinute(to - 1), Samples: []testSample{newSample(operator, 1)},
		},
		{
			Expr: fmt.Sprintf("sum by (operator_namespace) (sum_over_time(%s{sli=\"csv\"}[1d]))", series.SLIBad),
			At:   formatMinute(to + 10), Samples: []testSample{newSample(operator, to-from), newSample(other, 0)},
		},
		{
			Expr: fmt.Sprintf("min by (operator_namespace) (%s{sli=\"csv\"} < bool 1)", series.SLOBudgetLeft),
			At:   formatMinute(to + 10), Samples: []testSample{newSample(operator, 1), newSample(other, 0)},
		},
	}
	return test
}
