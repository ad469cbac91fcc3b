// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

const (
	restarts  = "bellwether_operator_container_restarts_total"
	pending   = "bellwether_operator_pods_pending"
	resources = "bellwether_operator_custom_resources"
	rotation  = "bellwether_operator_certificate_rotation_timestamp_seconds"
	expiry    = "probe_ssl_earliest_cert_expiry"

	oomKilled = `reason="oom_killed"`
	crashed   = `reason="error"`
	odd       = `reason="other"`
)

// limited has a limit for custom resources of two kinds.
var limited = slo.Operator{Namespace: "fleet", Name: "echo", Limits: []slo.Limit{
	{Kind: "Echo", Max: 100, PerDay: 20}, {Kind: "Job", PerDay: 5},
}}

// causes are the good, the bad and the odd of SLIs that say why an operator fails.
var causes = map[string]indicator{
	"no OOM kill": {"oom", "0",
		map[string]string{of(restarts, oomKilled): zero, of(restarts, crashed): "0+1x30"}},
	"an OOM kill":     {"oom", "1", map[string]string{of(restarts, oomKilled): "0x20 1x10"}},
	"an old OOM kill": {"oom", "0", map[string]string{of(restarts, oomKilled): "0x5 1x25"}},
	"OOM kills NaN":   {"oom", "1", map[string]string{of(restarts, oomKilled): nan}},
	"another agent counts": {"oom", "0",
		map[string]string{of(restarts, oomKilled, `pod="a"`): "9x10 stale",
			of(restarts, oomKilled, `pod="b"`): "_x11 0x20"}},
	"no pods are known": {"oom", "", map[string]string{of(csv): one}},

	"no restart": {"restarts", "0",
		map[string]string{of(restarts, crashed): "3x30", of(restarts, odd): zero, of(restarts, oomKilled): "0+1x30"}},
	"a crash":        {"restarts", "1", map[string]string{of(restarts, crashed): "0x20 1x10", of(restarts, odd): zero}},
	"another reason": {"restarts", "1", map[string]string{of(restarts, crashed): zero, of(restarts, odd): "0x20 1x10"}},

	"no pod is pending":  {"pending", "0", map[string]string{of(pending): zero}},
	"a pod is pending":   {"pending", "1", map[string]string{of(pending): one}},
	"pending is NaN":     {"pending", "1", map[string]string{of(pending): nan}},
	"nobody counts pods": {"pending", "", map[string]string{of(csv): one}},
	"two agents count it": {"pending", "1",
		map[string]string{of(pending, `pod="a"`): zero, of(pending, `pod="b"`): one}},

	"few custom resources": {"custom-resources", "0",
		map[string]string{of(resources, `kind="Echo"`): "100x30"}},
	"too many custom resources": {"custom-resources", "1",
		map[string]string{of(resources, `kind="Echo"`): "101x30"}},
	"custom resources NaN": {"custom-resources", "1", map[string]string{of(resources, `kind="Echo"`): nan}},
	"one kind of two has too many": {"custom-resources", "1",
		map[string]string{of(resources, `kind="Echo"`): "101x30", of(resources, `kind="Job"`): one}},
	"a kind without a limit": {"custom-resources", "",
		map[string]string{of(resources, `kind="Other"`): "9999x30"}},
	"a limit of growth, and no day": {"custom-resources", "",
		map[string]string{of(resources, `kind="Job"`): "9999x30"}},
	"custom resources of another operator": {"custom-resources", "", map[string]string{
		id(resources, `cluster="c",operator_namespace="other",operator="echo",kind="Echo"`, nil): "101x30"}},
}

func init() { maps.Copy(indicators, causes) }

// TestGrowth compares the number of custom resources with the day before.
func TestGrowth(t *testing.T) {
	t.Parallel()
	test := testCase{Name: "growth", Exprs: []testExpr{{Expr: `bellwether:sli_bad:bool{sli="custom-resources"}`,
		At: "1450m"}}}
	for name, in := range map[string]struct {
		values string
		want   float64
	}{
		"grows slowly":    {"10x1439 30x20", 0},
		"grows too fast":  {"10x1439 31x20", 1},
		"shrinks":         {"60x1439 10x20", 0},
		"deleted, gap":    {"60x1300 _x140 75x20", 0},
		"grows in a week": {"0+0.01x1460", 0},
	} {
		operator := fmt.Sprintf(`cluster=%q,operator_namespace="fleet",operator="echo"`, name)
		test.Series = append(test.Series, testInput{resources + "{" + operator + `,kind="Echo"}`, in.values})
		test.Exprs[0].Samples = append(test.Exprs[0].Samples,
			testSample{"bellwether:sli_bad:bool{" + operator + `,sli="custom-resources"}`, in.want})
	}
	run(t, slo.Set{Operators: []slo.Operator{limited}}, test)
}

// TestLimitsOfSeveralOperators gives each operator the limits of its own, in one rule.
func TestLimitsOfSeveralOperators(t *testing.T) {
	of := func(namespace, operator string) string {
		return fmt.Sprintf(`cluster="c",operator_namespace=%q,operator=%q`, namespace, operator)
	}
	series := func(namespace, operator string) testInput {
		return testInput{resources + "{" + of(namespace, operator) + `,kind="Echo"}`, "50x30"}
	}
	slice := func(namespace, operator string, value float64) testSample {
		return testSample{"bellwether:sli_bad:bool{" + of(namespace, operator) + `,sli="custom-resources"}`, value}
	}
	limit := func(n int64) []slo.Limit { return []slo.Limit{{Kind: "Echo", Max: n}} }
	run(t, slo.Set{Operators: []slo.Operator{
		{Namespace: "fleet", Name: "echo", Limits: limit(100)}, {Namespace: "fleet", Name: "other", Limits: limit(40)},
		{Namespace: "staging", Name: "echo", Limits: limit(40)}, {Namespace: "staging", Name: "free"},
	}}, testCase{Name: "limits", Series: []testInput{series("fleet", "echo"), series("fleet", "other"),
		series("staging", "echo"), series("staging", "free")},
		Exprs: []testExpr{{Expr: `bellwether:sli_bad:bool{sli="custom-resources"}`, At: "25m", Samples: []testSample{
			slice("fleet", "echo", 0), slice("fleet", "other", 1), slice("staging", "echo", 1),
		}}}})
}

// length is how many minutes the stories of TestCauses take.
const length = 1600

// counter counts events at minutes.
func counter(events ...int) string {
	return slo.Samples(length, func(m int) string {
		n := 0
		for _, e := range events {
			if m >= e {
				n++
			}
		}
		return fmt.Sprint(n)
	})
}

func eachMinutes(minutes, from, to int) []int {
	var out []int
	for m := from; m < to; m += minutes {
		out = append(out, m)
	}
	return out
}

// while has a value from a minute to another one.
func while(value, otherwise string, from, to int) string {
	return slo.Samples(length, func(m int) string {
		if m >= from && m < to {
			return value
		}
		return otherwise
	})
}

// cause is a story of one operator by its series, and the alerts that begin, by SLI and severity.
type cause struct {
	series map[string]string
	want   map[[2]string]float64
}

// causeStories are days of what is ordinary and of what is not.
func causeStories() map[string]cause {
	return map[string]cause{
		"one OOM kill": {map[string]string{of(restarts, oomKilled): counter(300)}, nil},
		"two OOM kills": {map[string]string{of(restarts, oomKilled): counter(300, 1500)},
			map[[2]string]float64{{"oom", "ticket"}: 1}},
		"nodes restart": {map[string]string{of(restarts, odd): counter(600, 610, 620, 1400, 1410, 1420)}, nil},
		"a crash each hour": {map[string]string{of(restarts, crashed): counter(eachMinutes(60, 100, length)...)},
			map[[2]string]float64{{"restarts", "ticket"}: 1}},
		"a pod waits for a node": {map[string]string{of(pending): while("1", "0", 600, 615)}, nil},
		"a pod waits for hours": {map[string]string{of(pending): while("1", "0", 600, 900),
			of(available, `deployment="a"`): while("2", "3", 595, 900)},
			map[[2]string]float64{{"pending", "ticket"}: 1}},
		"a replica crashes again and again": {map[string]string{
			of(restarts, crashed):           counter(eachMinutes(5, 600, 1200)...),
			of(available, `deployment="a"`): while("2", "3", 600, 1200)},
			map[[2]string]float64{{"restarts", "ticket"}: 1}},
		"no memory, and nothing is available": {map[string]string{
			of(restarts, oomKilled): counter(eachMinutes(5, 600, 1200)...),
			of(available, `deployment="a"`): slo.Samples(length, func(m int) string {
				if m >= 600 && m < 1200 && m%5 != 4 {
					return "0"
				}
				return "3"
			})}, map[[2]string]float64{{"available", "page"}: 1}},
		"too many custom resources": {map[string]string{of(resources, `kind="Echo"`): while("101", "99", 600, 900)},
			map[[2]string]float64{{"custom-resources", "ticket"}: 1}},
		"a service is down, and its route too": {map[string]string{
			of(probe, `probe="api"`, `vantage="cluster"`): while("0", "1", 600, 660),
			of(probe, `probe="api"`, `vantage="hub"`):     while("0", "1", 600, 662)},
			map[[2]string]float64{{"probe:api", "page"}: 1}},
		"only the route is down": {map[string]string{
			of(probe, `probe="api"`, `vantage="cluster"`): while("1", "", 0, length),
			of(probe, `probe="api"`, `vantage="hub"`):     while("0", "1", 600, 660)},
			map[[2]string]float64{{"probe:api:hub", "page"}: 1}},
		"too many for a moment": {map[string]string{of(resources, `kind="Echo"`): while("101", "99", 600, 620)}, nil},
	}
}

// TestCauses plays all stories at once, each on a cluster of its own, and counts the alerts that begin.
func TestCauses(t *testing.T) {
	t.Parallel()
	// Hours later, a budget that was spent is another alert.
	const firing = `ALERTS{alertstate="firing",slo!="",alertname!="BellwetherErrorBudgetExhausted"}`
	test := testCase{Name: "causes", Series: []testInput{{`bellwether_fleet_clusters{state="online"}`,
		while("1", "", 0, length)}}}
	began := testExpr{At: fmt.Sprintf("%dm", length-1), Expr: fmt.Sprintf("sum by (cluster, sli, severity) "+
		"(count_over_time((%s unless (%s offset 1m))[%dm:1m]))", firing, firing, length)}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(causeStories())) {
		story := causeStories()[name]
		n++
		all := map[string]string{of(desired, `deployment="a"`): while("3", "", 0, length),
			of(available, `deployment="a"`):    while("3", "", 0, length),
			of("bellwether_operator_expected"): while("1", "", 0, length),
			of(csv):                            while("1", "", 0, length),
			of(info, `namespace="ns"`, `csv="echo.v1"`, fmt.Sprintf(`version="1.%d.0"`, n)): while("1", "", 0, length)}
		maps.Copy(all, story.series)
		for series, values := range all {
			test.Series = append(test.Series, testInput{strings.Replace(series, `cluster="c"`,
				fmt.Sprintf("cluster=%q", name), 1), values})
		}
		for key, count := range story.want {
			began.Samples = append(began.Samples, testSample{fmt.Sprintf("{cluster=%q,sli=%q,severity=%q}", name,
				key[0], key[1]), count})
		}
	}
	test.Exprs = []testExpr{began}
	var objectives []slo.Objective
	for _, o := range slo.DefaultProfile() {
		if slices.Contains([]string{"available", "redundancy", "oom", "restarts", "pending", "custom-resources",
			slo.Probe}, o.SLI) {
			objectives = append(objectives, o)
		}
	}
	run(t, slo.Set{Default: objectives, Operators: []slo.Operator{limited}}, test)
}

// TestNoObjectiveCoversNothing leaves the ticket about replicas to an operator that wants none about its pods.
func TestNoObjectiveCoversNothing(t *testing.T) {
	op := slo.Operator{Namespace: "fleet", Name: "echo", Without: []string{"pending"}}
	series := []testInput{{of("bellwether_operator_expected"), one}, {of(pending), one},
		{of(desired, `deployment="a"`), "3x30"}, {of(available, `deployment="a"`), "2x30"}}
	slice := func(sli string) []testSample {
		return []testSample{{fmt.Sprintf(`{sli=%q}`, sli), 1}}
	}
	const bad = `group by (sli) (bellwether:sli_bad:slice{sli=~"pending|redundancy"} and on (operator_namespace, ` +
		`operator, sli) bellwether:slo_objective:ratio)`
	run(t, slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{op}}, testCase{Name: "without pending",
		Series: series, Exprs: []testExpr{{Expr: bad, At: "25m", Samples: slice("redundancy")}}})
	run(t, slo.Set{Default: slo.DefaultProfile()}, testCase{Name: "with pending",
		Series: series, Exprs: []testExpr{{Expr: bad, At: "25m", Samples: slice("pending")}}})
}

// TestCertificates follows certificates of probes, and one that OLM makes, to their end.
func TestCertificates(t *testing.T) {
	t.Parallel()
	const hour, day = 3600, 24 * 3600
	alerts := func(at string, samples ...testSample) testExpr {
		return testExpr{Expr: `count by (severity, probe) (ALERTS{alertname="BellwetherCertificateExpires",` +
			`alertstate="firing"})`, At: at, Samples: samples}
	}
	constant := func(seconds int) string { return fmt.Sprintf("%dx1700", seconds) }
	inventory := []testInput{{`bellwether_fleet_clusters{state="online"}`, "1x1700"},
		{of("bellwether_operator_expected"), "1x1700"}}
	with := func(more ...testInput) []testInput { return append(more, inventory...) }
	ticket, page := testSample{`{severity="ticket",probe="api"}`, 1}, testSample{`{severity="page",probe="api"}`, 1}
	ofOLM := testSample{`{severity="page"}`, 1}
	run(t, slo.Set{Default: slo.DefaultProfile()},
		testCase{Name: "a certificate of a probe",
			Series: with(testInput{of(expiry, `probe="api"`), constant(14*day + hour)}),
			Exprs:  []testExpr{alerts("50m"), alerts("70m", ticket)}},
		testCase{Name: "its last day", Series: with(testInput{of(expiry, `probe="api"`), constant(day + hour)}),
			Exprs: []testExpr{alerts("50m", ticket), alerts("70m", page)}},
		testCase{Name: "OLM renews in time", Series: with(
			testInput{of(rotation), fmt.Sprintf("%dx110 %dx1590", hour, hour+700*day)},
			testInput{of(expiry, `probe="webhook"`), fmt.Sprintf("%dx110 %dx1590", hour+day, hour+701*day)}),
			Exprs: []testExpr{alerts("30m"), alerts("70m"), alerts("109m"), alerts("300m")}},
		testCase{Name: "OLM does not renew", Series: with(testInput{of(rotation), constant(hour)},
			testInput{of(expiry, `probe="webhook"`), constant(hour + day)}),
			Exprs: []testExpr{alerts("170m"), alerts("190m", ofOLM)}},
		testCase{Name: "the probe sees another certificate", Series: with(testInput{of(rotation), constant(400 * day)},
			testInput{of(expiry, `probe="api"`), constant(10 * day)}), Exprs: []testExpr{alerts("30m", ticket)}},
	)
}
