// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/read"
)

// slothSLO is a file of sloth with one SLO of requests.
func slothSLO(name, bad, total string) string {
	return fmt.Sprintf(`version: prometheus/v1
service: echo
slos:
- name: %s
  objective: 99
  sli: {events: {error_query: %q, total_query: %q}}
  alerting: {name: X}
`, name, bad, total)
}

// openGood is a file of OpenSLO with one SLO of good requests and all requests.
func openGood(name, good, total string) string {
	return fmt.Sprintf(`apiVersion: openslo/v1
kind: SLO
metadata: {name: %s}
spec:
  service: echo
  budgetingMethod: Occurrences
  timeWindow: [{duration: 30d, isRolling: true}]
  objectives: [{target: 0.99}]
  indicator:
    metadata: {name: %[1]s}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: %q}}}
        total: {metricSource: {type: Prometheus, spec: {query: %q}}}
`, name, good, total)
}

// readSet reads the objectives of files.
func readSet(t *testing.T, files ...string) slo.Set {
	t.Helper()
	var set slo.Set
	for _, text := range files {
		report, err := read.File(&set, "fleet", []byte(text))
		if err := errors.Join(append(report.Refused, err)...); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// TestMissingOperands plays queries of which a part finds nothing, while there are requests.
func TestMissingOperands(t *testing.T) {
	t.Parallel()
	sum := func(selector string) string { return "sum by (cluster) (rate(" + selector + "[5m]))" }
	set := readSet(t,
		slothSLO("slow", sum("took_count")+" - "+sum(`took_bucket{le='1000'}`), sum("took_count")),
		slothSLO("failed", sum("all_total")+" - "+sum("good_total"), sum("all_total")),
		slothSLO("kinds", sum("all_total{kind='a'}")+" + "+sum("all_total{kind='b'}"), sum("all_total")),
		slothSLO("unmatched", `rate(all_total{kind='c'}[5m]) - rate(good_total[5m])`, sum("all_total")),
		openGood("good", "good_total", "all_total"))
	slice := func(sli string, value float64) []testSample {
		return []testSample{{`bellwether:sli_bad:bool{cluster="c",operator_namespace="fleet",operator="echo",sli="` +
			sli + `"}`, value}}
	}
	of := func(metric, more string) string { return metric + `{cluster="c"` + more + `}` }
	took := of("took_count", "")
	all, good := of("all_total", ""), of("good_total", "")
	const steady, idle, minutes = "0+60x400", "0x400", "200m"
	var cases []testCase
	for name, in := range map[string]struct {
		sli    string
		series []testInput
		want   []testSample
	}{
		"no such bound": {"slow", []testInput{{took, steady}, {of("took_bucket", `,le="1000.0"`), steady}}, nil},
		"a bound that goes is not an outage": {"slow", []testInput{{took, steady},
			{of("took_bucket", `,le="1000"`), "0+60x100 stale"}}, nil},
		"a bound, and nothing is slow": {"slow", []testInput{{took, steady}, {of("took_bucket", `,le="1000"`), steady}},
			slice("slow", 0)},
		"a bound, and everything is slow": {"slow", []testInput{{took, steady}, {of("took_bucket", `,le="1000"`), idle}},
			slice("slow", 1)},
		"a bound, and no requests": {"slow", []testInput{{took, idle}, {of("took_bucket", `,le="1000"`), idle}},
			slice("slow", 0)},
		"never a good request":         {"failed", []testInput{{all, steady}}, nil},
		"never a good one, in OpenSLO": {"good", []testInput{{all, steady}}, nil},
		"no good request after a restart": {"failed", []testInput{{all, steady}, {good, "0+60x100 stale"}},
			slice("failed", 1)},
		"no good request after a restart, in OpenSLO": {"good", []testInput{{all, steady},
			{good, "0+60x100 stale"}}, slice("good", 1)},
		"no request after a restart": {"good", []testInput{{all, "0+60x100 6000x300"}, {good, "0+60x100 stale"}},
			slice("good", 0)},
		"a third is good": {"good", []testInput{{all, steady}, {good, "0+20x400"}}, slice("good", 2.0/3)},
		"all are good":    {"good", []testInput{{all, steady}, {good, steady}}, slice("good", 0)},
		"no failure of either kind": {"kinds", []testInput{{of("all_total", `,kind="ok"`), steady}},
			slice("kinds", 0)},
		"failures of one kind": {"kinds", []testInput{{of("all_total", `,kind="ok"`), steady},
			{of("all_total", `,kind="a"`), steady}}, slice("kinds", 0.5)},
		"failures of both kinds": {"kinds", []testInput{{of("all_total", `,kind="ok"`), steady},
			{of("all_total", `,kind="a"`), steady}, {of("all_total", `,kind="b"`), steady}}, slice("kinds", 2.0/3)},
		"labels that do not match": {"unmatched", []testInput{{of("all_total", `,kind="c"`), steady}, {good, steady}},
			nil},
	} {
		cases = append(cases, testCase{Name: name, Series: in.series, Exprs: []testExpr{{
			Expr: `bellwether:sli_bad:bool{sli="` + in.sli + `"}`, At: minutes, Samples: in.want,
		}}})
	}
	cases = append(cases, testCase{
		Name: "a total outage in which the series of good requests ends",
		Series: []testInput{{of("bellwether_operator_expected", `,operator_namespace="fleet",operator="echo"`), "1x400"},
			{all, steady}, {good, "0+60x100 stale"}},
		Exprs: []testExpr{{Expr: `count by (severity) (ALERTS{alertstate="firing",sli="good"})`, At: "125m",
			Samples: []testSample{{`{severity="page"}`, 1}}}},
	})
	run(t, set, cases...)
}

// TestUnitsOfQueries plays the same outage of 12 requests a minute through queries in several units, and a share that
// is smaller than any number of requests per second that counts.
func TestUnitsOfQueries(t *testing.T) {
	t.Parallel()
	sum := func(query string) string { return "sum by (cluster) (" + query + ")" }
	set := readSet(t,
		slothSLO("raw", sum("rate(errors_total[5m])"), sum("rate(requests_total[5m])")),
		slothSLO("recorded", sum("job:errors:rate5m"), sum("job:requests:rate5m")),
		slothSLO("increase", sum("increase(errors_total[10m])"), sum("increase(requests_total[10m])")),
		slothSLO("mixed", sum("rate(errors_total[5m]) * 60"), sum("increase(requests_total[5m])")),
		`version: prometheus/v1
service: echo
slos:
- name: share
  objective: 99.9
  sli: {raw: {error_ratio_query: 'job:errors:ratio5m'}}
  alerting: {name: X}
`)
	const of = `{cluster="c"}`
	slice := func(sli string, value float64) testSample {
		return testSample{`{cluster="c",sli="` + sli + `"}`, value}
	}
	page := func(sli string) testSample { return testSample{`{severity="page",sli="` + sli + `"}`, 1} }
	run(t, set, testCase{Name: "12 requests a minute, and all fail",
		Series: []testInput{
			{`bellwether_operator_expected{cluster="c",operator_namespace="fleet",operator="echo"}`, "1x400"},
			{"errors_total" + of, "0x120 0+12x280"}, {"requests_total" + of, "0+12x400"},
			{"job:errors:rate5m" + of, "0x120 0.2x280"}, {"job:requests:rate5m" + of, "0.2x400"},
			{"job:errors:ratio5m" + of, "0x120 0.008x280"},
		},
		Exprs: []testExpr{
			{Expr: `round(max by (cluster, sli) (bellwether:sli_bad:bool{operator="echo",sli=~"raw|recorded|increase|` +
				`mixed|share"}), 0.001)`, At: "300m", Samples: []testSample{slice("raw", 1), slice("recorded", 1),
				slice("increase", 1), slice("mixed", 1), slice("share", 0.008)}},
			{Expr: `count by (sli, severity) (ALERTS{alertstate="firing",severity="page"})`, At: "140m",
				Samples: []testSample{page("raw"), page("recorded"), page("increase"), page("mixed")}},
			{Expr: `count by (sli, severity) (ALERTS{alertstate="firing",sli="share"})`, At: "399m",
				Samples: []testSample{page("share")}},
		}})
}

// TestNamedIsExpected has objectives and a probe name what does not exist.
func TestNamedIsExpected(t *testing.T) {
	t.Parallel()
	set := slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{
		{Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "probe:api", Target: 999_000},
			{SLI: "probe:gone", Target: 999_000}, {SLI: "probe:silent", Target: 999_000, Alerts: slo.AlertsNone}}},
		{Namespace: "fleet", Name: "ledgr", Team: "money", Objectives: []slo.Objective{{SLI: "csv", Target: 999_000}}},
	}, Named: []types.NamespacedName{{Namespace: "fleet", Name: "echo"}, {Namespace: "fleet", Name: "ledgr"}}}
	probe := func(operator, name string) string {
		return fmt.Sprintf(`probe_success{cluster="c",operator_namespace="fleet",operator=%q,probe=%q,vantage="cluster"}`,
			operator, name)
	}
	input := []testInput{
		{`bellwether_operator_expected{cluster="c",operator_namespace="fleet",operator="echo"}`, "1x100"},
		{probe("echo", "api"), "1x100"}, {probe("ehco", "web"), "1x100"},
	}
	hub := testInput{`bellwether_fleet_clusters{state="online"}`, "1x100"}
	absent := func(labels string) testSample { return testSample{labels, 1} }
	query := `count by (operator, sli, severity) (ALERTS{alertname="BellwetherSLIAbsent",alertstate="firing"})`
	run(t, set, testCase{Name: "a name that nothing has", Series: append([]testInput{hub}, input...), Exprs: []testExpr{
		{Expr: query, At: "10m"},
		{Expr: query, At: "60m", Samples: []testSample{
			absent(`{operator="ehco",severity="ticket",sli="probe:web"}`),
			absent(`{operator="echo",severity="ticket",sli="probe:gone"}`),
			absent(`{operator="ledgr",severity="ticket"}`)}},
	}}, testCase{Name: "nothing is known of the hub", Series: input[1:], Exprs: []testExpr{{Expr: query, At: "60m"}}})
}

// TestAbsentSaysWhatIsMissing reads the alerts about an SLI without data, about an operator that runs nowhere, and
// about one that does not exist.
func TestAbsentSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	set := onlyCSV
	set.Named = []types.NamespacedName{{Namespace: "fleet", Name: "ledgr"}, {Namespace: "fleet", Name: "idle"}}
	series := fleet{minutes: 60, installs: []install{{cluster: "c", operator: "good", onlyCSV: true},
		{cluster: "c", operator: "echo", onlyCSV: true, missing: map[string][]span{"csv": {{0, 60}}}}}}.series()
	series = append(series, testInput{`bellwether_operator_ready{operator_namespace="fleet",operator="idle"}`, "1x60"})
	fired := func(operator, summary, description string, more ...string) testFired {
		labels := map[string]string{"severity": "ticket", "scope": "operator", "operator_namespace": "fleet",
			"operator": operator}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return testFired{labels, map[string]string{"summary": summary, "description": description}}
	}
	run(t, set, testCase{Name: "what is missing", Series: series, Alerts: []testAlert{{At: "59m",
		Alert: slo.AlertSLIAbsent, Alerts: []testFired{
			fired("echo", "No data for csv of fleet/echo on cluster c", "The SLI was measured fewer than 5 times "+
				"in the last 15 minutes. The operator may be down without any other alert. Check that the agent "+
				"runs and that Prometheus scrapes it. If this is an SLI of the operator's own, check that the "+
				"metrics have the names that its "+
				"definition uses.", "cluster", "c", "sli", "csv", "slo", "fleet/echo/csv"),
			fired("idle", "Operator fleet/idle, which objectives or a probe name, is expected on no "+
				"cluster", "Nothing is "+
				"measured, and nothing else alerts about it. Its ManagedOperator selects no cluster, or none that "+
				"it should run on now. Correct its selector, or delete the objectives and the EndpointProbe."),
			fired("ledgr", "There is no operator fleet/ledgr, which objectives or a probe name", "Nothing is "+
				"measured, and nothing else alerts about it. The hub has no ManagedOperator of that name: correct "+
				"the name in the objectives or in the EndpointProbe, or create the ManagedOperator."),
		}}}})
}
