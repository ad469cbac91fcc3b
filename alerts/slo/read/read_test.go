// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const slothText = `version: prometheus/v1
service: echo
labels: {owner: team}
slos:
- name: requests
  objective: 99.95
  sli:
    events:
      error_query: sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))
      total_query: sum(rate(http_requests_total[{{ .window }}]))
  alerting: {name: X}
`

// serviceLevelText is the same as slothText, as sloth's controller takes it.
const serviceLevelText = `apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata: {name: echo-slos, namespace: monitoring}
spec:
  service: echo
  sloPlugins: {chain: [{id: sloth.dev/core/debug/v1}]}
  slos:
  - name: requests
    objective: 99.95
    sli:
      events:
        errorQuery: sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))
        totalQuery: sum(rate(http_requests_total[{{.window}}]))
    alerting: {name: X}
`

const openText = `apiVersion: openslo/v1
kind: SLI
metadata: {name: latency-sli}
spec:
  ratioMetric:
    counter: true
    good: {metricSource: {type: Prometheus, spec: {query: 'fast_total{job="x"}'}}}
    total: {metricSource: {type: Prometheus, spec: {query: 'all_total'}}}
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: fast}
spec:
  service: echo
  indicatorRef: latency-sli
  budgetingMethod: Occurrences
  timeWindow: [{duration: 4w, isRolling: true}]
  objectives: [{target: 0.999}]
`

const ownText = `---
apiVersion: bellwether.dev/v1alpha1
kind: OperatorSLO
metadata: {name: echo}
spec:
  operator: echo
  team: messaging
  objectives: [{sli: available, target: "99.9", period: 7d}]
  without: [catalog]
`

// listText is what kubectl get -o yaml writes.
const listText = `apiVersion: v1
kind: List
items:
- apiVersion: bellwether.dev/v1alpha1
  kind: OperatorSLO
  metadata: {name: echo}
  spec:
    operator: echo
    profile: None
    objectives: [{sli: available, target: "99.9"}]
    own: []
metadata: {resourceVersion: ""}
`

// edit replaces a part of a text.
func edit(t *testing.T, text, from, to string) string {
	t.Helper()
	out := strings.ReplaceAll(text, from, to)
	if out == text {
		t.Fatalf("no %q in %q", from, text)
	}
	return out
}

// TestOwnSLIs reads the ways in which formats can define bad requests, and how they are counted.
func TestOwnSLIs(t *testing.T) {
	const errors5m = `rate(http_requests_total{code=~"5.."}[5m])`
	raw := `version: prometheus/v1
service: echo
slos:
- name: requests
  objective: 99.95
  labels: {team: x}
  sli: {raw: {error_ratio_query: 'errors:ratio{window="{{.window}}"}'}}
  alerting: {page_alert: {disable: true}}
`
	rawOpen := edit(t, edit(t, openText,
		"    good: {metricSource: {type: Prometheus, spec: {query: 'fast_total{job=\"x\"}'}}}\n",
		"    raw: {metricSource: {type: Prometheus, spec: {query: 'good:ratio'}}}\n    rawType: success\n"),
		"    total: {metricSource: {type: Prometheus, spec: {query: 'all_total'}}}\n", "")
	ofMinutes := func(text string) string {
		return edit(t, edit(t, text, "Occurrences", "RatioTimeslices"), "{target: 0.999}",
			"{target: 0.999, timeSliceWindow: 1m}")
	}
	for name, test := range map[string]struct {
		text   string
		want   slo.OwnSLI
		alerts slo.Alerting
	}{
		"raw ratio of sloth": {raw, slo.OwnSLI{Name: "requests", Ratio: `errors:ratio{window="5m"}`,
			Method: slo.RatioTimeslices}, slo.AlertsTickets},
		"no alerts of sloth": {edit(t, slothText, "{name: X}", "{page_alert: {disable: true}, ticket_alert: {disable: true}}"),
			slo.OwnSLI{Name: "requests", Bad: "sum(" + errors5m + ")", Total: "sum(rate(http_requests_total[5m]))"},
			slo.AlertsNone},
		"only pages of sloth": {edit(t, slothText, "{name: X}", "{ticket_alert: {disable: true}}"),
			slo.OwnSLI{Name: "requests", Bad: "sum(" + errors5m + ")", Total: "sum(rate(http_requests_total[5m]))"},
			slo.AlertsPages},
		"minimum of sloth": {edit(t, slothText, "  objective", "  labels: {bellwether_min_requests: '20'}\n  objective"),
			slo.OwnSLI{Name: "requests", Bad: "sum(" + errors5m + ")", Total: "sum(rate(http_requests_total[5m]))",
				MinRequests: 20}, ""},
		"increases": {edit(t, slothText, "rate(", "increase("), slo.OwnSLI{Name: "requests",
			Bad:   `(sum(increase(http_requests_total{code=~"5.."}[5m]))) / 300`,
			Total: "(sum(increase(http_requests_total[5m]))) / 300"}, ""},
		"raw ratio of OpenSLO": {ofMinutes(rawOpen), slo.OwnSLI{Name: "fast",
			Ratio: "1 - (good:ratio)", Method: slo.RatioTimeslices}, ""},
		"slices of OpenSLO": {ofMinutes(openText), slo.OwnSLI{Name: "fast", Total: "rate(all_total[5m])",
			Bad:    `sum by (cluster) (rate(all_total[5m])) - sum by (cluster) (rate(fast_total{job="x"}[5m]))`,
			Method: slo.RatioTimeslices}, ""},
		"good slices and minimum of OpenSLO": {
			edit(t, edit(t, edit(t, openText, "Occurrences", "Timeslices"), "{target: 0.999}",
				"{target: 0.999, timeSliceTarget: 0.95, timeSliceWindow: 1m}"), "{name: fast}",
				"{name: fast, annotations: {bellwether.dev/min-requests: '5'}}"),
			slo.OwnSLI{Name: "fast", Total: "rate(all_total[5m])",
				Bad:    `sum by (cluster) (rate(all_total[5m])) - sum by (cluster) (rate(fast_total{job="x"}[5m]))`,
				Method: slo.Timeslices, SliceTarget: 950_000, MinRequests: 5}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var set slo.Set
			readFile(t, &set, test.text)
			if diff := cmp.Diff([]slo.OwnSLI{test.want}, set.Operators[0].Own); diff != "" {
				t.Errorf("own SLIs (-want +got):\n%s", diff)
			}
			if got := set.Operators[0].Objectives[0].Alerts; got != test.alerts {
				t.Errorf("alerts: %q, want %q", got, test.alerts)
			}
		})
	}
}

func readFile(t *testing.T, into *slo.Set, text string) {
	t.Helper()
	report, err := File(into, "fleet", []byte(text))
	if err := errors.Join(append(report.Refused, err)...); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want slo.Operator
	}{
		"sloth": {slothText, slo.Operator{
			Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "requests", Target: 999_500}},
			Own: []slo.OwnSLI{{Name: "requests", Bad: `sum(rate(http_requests_total{code=~"5.."}[5m]))`,
				Total: "sum(rate(http_requests_total[5m]))"}},
		}},
		"PrometheusServiceLevel": {serviceLevelText, slo.Operator{
			Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "requests", Target: 999_500}},
			Own: []slo.OwnSLI{{Name: "requests", Bad: `sum(rate(http_requests_total{code=~"5.."}[5m]))`,
				Total: "sum(rate(http_requests_total[5m]))"}},
		}},
		"OpenSLO": {openText, slo.Operator{
			Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "fast", Target: 999_000,
				Period: 28 * 24 * time.Hour}},
			Own: []slo.OwnSLI{{
				Name: "fast", Total: "rate(all_total[5m])",
				Bad: `sum by (cluster) (rate(all_total[5m])) - sum by (cluster) (rate(fast_total{job="x"}[5m]))`,
			}},
		}},
		"Bellwether": {ownText, slo.Operator{
			Namespace: "fleet", Name: "echo", Team: "messaging",
			Objectives: []slo.Objective{{SLI: "available", Target: 999_000,
				Period: 7 * 24 * time.Hour}},
			Without: []string{"catalog"},
		}},
		"list": {listText, slo.Operator{
			Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "available", Target: 999_000}},
			Without: spec.ProfileSLIs(),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var set slo.Set
			readFile(t, &set, test.text)
			if diff := cmp.Diff([]slo.Operator{test.want}, set.Operators); diff != "" {
				t.Errorf("operators (-want +got):\n%s", diff)
			}
			if _, err := slo.Build(set); err != nil {
				t.Errorf("rules: %v", err)
			}
		})
	}
}

// TestFilesAddUp reads several files about the same operator.
func TestFilesAddUp(t *testing.T) {
	var set slo.Set
	for _, text := range []string{slothText, openText, ownText} {
		readFile(t, &set, text)
	}
	if len(set.Operators) != 1 || len(set.Operators[0].Objectives) != 3 || len(set.Operators[0].Own) != 2 {
		t.Errorf("set: %+v", set)
	}
}

func TestRefused(t *testing.T) {
	edit := func(text, from, to string) string { return edit(t, text, from, to) }
	for name, test := range map[string]struct {
		text string
		want error
		says string
	}{
		"empty":          {"", ErrFormat, "empty"},
		"only comments":  {"# nothing\n---\n", ErrFormat, "empty"},
		"something else": {"apiVersion: v1", ErrFormat, "sloth"},
		"no YAML":        {"a: [", ErrFormat, ""},
		"no YAML below":  {"# nothing\n---\n# nothing\n---\na: 1\nb: c: d\n", ErrFormat, "line 6"},
		"100":            {edit(slothText, "99.95", "100"), slo.ErrTarget, "requests"},
		"raw": {edit(edit(slothText, "events:", "raw:"), "error_query", "error_ratio_query"), ErrFormat,
			"total_query"},
		"plugin":      {edit(serviceLevelText, "events:\n", "plugin: {id: x}\n      nothing:\n"), ErrFormat, "nothing"},
		"plugin only": {pluginText, ErrUnsupported, "sli.events"},
		"SLO plugin": {edit(serviceLevelText, "sloth.dev/core/debug/v1", "sloth.dev/contrib/info_labels/v1"),
			ErrUnsupported, "info_labels"},
		"SLO plugin of a file":   {slothText + "slo_plugins: {chain: [{id: mine}]}\n", ErrUnsupported, "mine"},
		"unknown field of sloth": {edit(slothText, "alerting:", "alarming:"), ErrFormat, "alarming"},
		"no PromQL":              {edit(slothText, "sum(rate(", "sum(rat("), slo.ErrQuery, "slo requests: bad requests: invalid query"},
		"MetricsQL":              {edit(slothText, "sum(rate(", "sum(default_rollup("), slo.ErrQuery, "default_rollup"},
		"no vector":              {edit(slothText, "sum(rate(http_requests_total[{{ .window }}]))", "1"), slo.ErrQuery, "scalar"},
		"no PromQL in OpenSLO":   {edit(openText, "'all_total'", "'all_total{'"), slo.ErrQuery, "SLO fast"},
		"template":               {edit(slothText, "{{.window}}", "{{.x}}"), ErrUnsupported, "{{.x}}"},
		"no service":             {edit(slothText, "service: echo", ""), ErrFormat, "service"},
		"comma":                  {edit(ownText, "99.9", "99,9"), slo.ErrTarget, "99.9"},
		"period":                 {edit(ownText, "7d", "10y"), slo.ErrPeriod, "available"},
		"another kind": {edit(ownText, "kind: OperatorSLO", "kind: OperatorCatalog"), ErrFormat,
			"OperatorCatalog"},
		"matcher": {ownText + `  own: [{name: mine, requestRatio: {counter: c, bad: [{label: a, op: "=~", value: "("}]}}]`,
			nil, "regular expression"},
		"unknown field": {edit(ownText, "team:", "tema:"), ErrFormat, "tema"},
		"calendar": {edit(openText, "isRolling: true",
			"isRolling: false, calendar: {startTime: '2026-01-01 00:00:00', timeZone: UTC}"), ErrUnsupported,
			"calendar"},
		"timeslices": {edit(openText, "Occurrences", "Timeslices"), nil, "timeSliceTarget"},
		"timeslices of 5 minutes": {edit(edit(openText, "Occurrences", "Timeslices"), "{target: 0.999}",
			"{target: 0.999, timeSliceTarget: 0.95, timeSliceWindow: 5m}"), ErrUnsupported, "timeSliceWindow"},
		"minimum": {edit(openText, "{name: fast}", "{name: fast, annotations: {bellwether.dev/min-requests: few}}"),
			ErrFormat, "few"},
		"minimum of sloth": {edit(slothText, "  objective", "  labels: {bellwether_min_requests: '-1'}\n  objective"),
			ErrFormat, "-1"},
		"minimum of a raw ratio": {edit(edit(pluginText, "plugin: {id: x}", "raw: {error_ratio_query: x}"),
			"  objective", "  labels: {bellwether_min_requests: '1'}\n  objective"), ErrUnsupported, "ratio"},
		"no such SLI":  {edit(openText, "indicatorRef: latency-sli", "indicatorRef: other"), ErrFormat, "other"},
		"other source": {edit(openText, "type: Prometheus", "type: Datadog"), ErrUnsupported, "Datadog"},
		"another system by reference": {edit(openText, "type: Prometheus, spec",
			"metricSourceRef: dd, spec") + dataSource("dd", "Datadog"),
			ErrUnsupported, "Datadog"},
		"a system that is not in the file": {edit(openText, "type: Prometheus, spec", "metricSourceRef: dd, spec"),
			ErrUnsupported, `no DataSource "dd"`},
		"another system by reference, with a type": {edit(openText, "type: Prometheus, spec",
			"type: Prometheus, metricSourceRef: dd, spec") + dataSource("dd", "Datadog"), ErrUnsupported, "Datadog"},
		"counter expression": {edit(openText, "'all_total'", "'sum(all_total)'"), ErrUnsupported, "plain selector"},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := File(&slo.Set{}, "fleet", []byte(test.text))
			err = errors.Join(append(report.Refused, err)...)
			if err == nil || test.want != nil && !errors.Is(err, test.want) ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %v with %q", err, test.want, test.says)
			}
		})
	}
}

// TestUnits reads queries of requests in any known unit, and refuses other queries.
func TestUnits(t *testing.T) {
	for query, want := range map[string]string{
		"sum(rate(x[5m]))":                                   "sum(rate(x[5m]))",
		"sum(irate(x[1h]))":                                  "sum(irate(x[1h]))",
		"increase(x[5m])":                                    "(increase(x[5m])) / 300",
		"increase(x[30m])":                                   "(increase(x[30m])) / 1800",
		"rate(x[5m]) * 60":                                   "(rate(x[5m]) * 60) / 60",
		"60 * rate(x[5m])":                                   "(60 * rate(x[5m])) / 60",
		"increase(x[1h])/60":                                 "(increase(x[1h])/60) / 60",
		"sum(rate(x[5m])) - sum(rate(y[5m]))":                "sum(rate(x[5m])) - sum(rate(y[5m]))",
		"sum(rate(x[5m])) or vector(0)":                      "sum(rate(x[5m])) or vector(0)",
		"rate(x[5m]) or 0 * y":                               "rate(x[5m]) or 0 * y",
		"rate(x[5m]) > 5":                                    "rate(x[5m]) > 5",
		"rate(x[5m]) * on (pod) group_left (team) info":      "rate(x[5m]) * on (pod) group_left (team) info",
		"rate(x[5m]) unless on (pod) broken":                 "rate(x[5m]) unless on (pod) broken",
		"histogram_count(rate(x[5m]))":                       "histogram_count(rate(x[5m]))",
		"sum(count_over_time(probe_success[5m]))":            "(sum(count_over_time(probe_success[5m]))) / 300",
		"sum(job:x:rate5m)":                                  "sum(job:x:rate5m)",
		"job:x:sum_rate":                                     "job:x:sum_rate",
		"job:x:increase10m":                                  "(job:x:increase10m) / 600",
		"avg_over_time(job:x:rate5m[10m])":                   "avg_over_time(job:x:rate5m[10m])",
		"sum(rate(x[5m])) # of all\n":                        "sum(rate(x[5m]))",
		"sum(x)":                                             "",
		"sum(job:x)":                                         "",
		"job:x:ratio_rate5m":                                 "",
		"count(up == 0)":                                     "",
		"sum_over_time(job:x:rate5m[5m])":                    "",
		"rate(x[5m]) + increase(y[5m])":                      "",
		"rate(x[5m]) / rate(y[5m])":                          "",
		"rate(x[5m]) * rate(y[5m])":                          "",
		"rate(x[5m]) > bool 5":                               "",
		"x - x offset 5m":                                    "",
		"vector(1)":                                          "",
		"histogram_quantile(0.9, sum by (le) (rate(x[5m])))": "",
	} {
		got, err := readRequestQuery("all requests", query, "")
		if got.text != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %q, %v, want %q", query, got.text, err, want)
		}
	}
	for query, want := range map[string]string{"rate(x[5m])": "",
		"increase(x[1h])": "all requests are divided by 3600 to be requests per second, as the query says",
		"job:x:rate5m":    "all requests are taken for requests per second, as the names of recording rules say"} {
		if got, err := readRequestQuery("all requests", query, ""); got.note != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", query, got.note, err, want)
		}
	}
}

// TestGivenUnits reads queries whose unit is given separately in the file.
func TestGivenUnits(t *testing.T) {
	plain := strings.NewReplacer("rate(", "(", "[{{.window}}]", "", "[{{ .window }}]", "").Replace(slothText)
	of := func(text string) string {
		return edit(t, plain, "objective: 99.95", "objective: 99.95\n  labels: {bellwether_unit: '"+text+"'}")
	}
	open := func(text string) string {
		return edit(t, edit(t, openText, "counter: true", "counter: false"), "{name: fast}",
			"{name: fast, annotations: {bellwether.dev/unit: '"+text+"'}}")
	}
	for text, want := range map[string]string{
		of("rate"):         "sum((http_requests_total))",
		of("increase10m"):  "(sum((http_requests_total))) / 600",
		open("rate"):       "all_total",
		open("increase1h"): "(all_total) / 3600",
	} {
		var set slo.Set
		readFile(t, &set, text)
		if got := set.Operators[0].Own[0].Total; got != want {
			t.Errorf("all requests are %q, want %q", got, want)
		}
	}
	for _, text := range []string{plain, of("increase"), of("requests"), edit(t, openText, "counter: true",
		"counter: false")} {
		report, err := File(&slo.Set{}, "fleet", []byte(text))
		if err != nil || len(report.Refused) != 1 || !strings.Contains(report.Refused[0].Error(), "unit") {
			t.Errorf("refused: %v, %v", report.Refused, err)
		}
	}
}

// dataSource is an object of OpenSLO.
func dataSource(name, system string) string {
	return "---\napiVersion: openslo/v1\nkind: DataSource\nmetadata: {name: " + name + "}\nspec: {type: " + system +
		", connectionDetails: {url: 'https://example.com'}}\n"
}

// TestMetricSourceRef reads a query of a DataSource in the same file.
func TestMetricSourceRef(t *testing.T) {
	var set slo.Set
	readFile(t, &set, edit(t, openText, "type: Prometheus, spec", "metricSourceRef: ours, spec")+
		dataSource("ours", "prometheus"))
	if len(set.Operators) != 1 {
		t.Errorf("set: %+v", set)
	}
}

// TestInvalidOpenSLODoesNotAffectOthers reads a file with objects that OpenSLO's own checks refuse.
func TestInvalidOpenSLODoesNotAffectOthers(t *testing.T) {
	text := openText + `---
apiVersion: openslo/v1
kind: SLO
metadata: {name: Not A Name}
spec: {service: echo}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: broken}
spec: {ratioMetric: {counter: many}}
---
apiVersion: openslo/v1
kind: Nonsense
metadata: {name: nothing}
---
` + edit(t, edit(t, openText[strings.Index(openText, "kind: SLO")-len("apiVersion: openslo/v1\n"):],
		"latency-sli", "broken"), "{name: fast}", "{name: of-broken}")
	var set slo.Set
	report, err := File(&set, "fleet", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"SLO Not A Name", "SLI broken", "Nonsense nothing", "SLO of-broken"}
	if diff := cmp.Diff(want, namesOf(report.Refused)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if len(set.Operators) != 1 || len(set.Operators[0].Own) != 1 {
		t.Errorf("set: %+v", set)
	}
}

// TestUnused checks the notes about settings that no rule uses.
func TestUnused(t *testing.T) {
	sloth := edit(t, edit(t, slothText, "objective: 99.95", "objective: 99.95\n  description: d\n  labels: "+
		"{bellwether_min_requests: '5', kind: x}"), "{name: X}", "{name: X, labels: {a: b}, annotations: {c: d}, "+
		"page_alert: {labels: {severity: page}, annotations: {e: f}}, ticket_alert: {disable: true, labels: {g: h}}}")
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"sloth": {sloth, []string{"service echo: not used: labels (owner)",
			"slo requests: not used: description, labels (kind), alerting.name, alerting.labels (a), " +
				"alerting.annotations (c), page_alert.labels (severity), page_alert.annotations (e), " +
				"ticket_alert.labels (g)"}},
		"PrometheusServiceLevel": {serviceLevelText, []string{
			"slo requests: not used: alerting.name, plugins (sloth.dev/core/debug/v1)"}},
		"OpenSLO": {edit(t, openText, "  service: echo\n", "  service: echo\n  description: d\n  alertPolicies: "+
			"[{alertPolicyRef: p}]\n"), []string{"SLO fast: not used: description, alertPolicies"}},
		"Bellwether": {ownText, nil},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := File(&slo.Set{}, "fleet", []byte(test.text))
			if err := errors.Join(append(report.Refused, err)...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, report.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWindow reads the variable of sloth's templates in any spacing.
func TestWindow(t *testing.T) {
	for _, window := range []string{"{{.window}}", "{{ .window }}", "{{  .window}}", "{{.window  }}", "{{- .window -}}",
		"{{\t.window }}"} {
		got, err := fillWindow("rate(x[" + window + "])")
		if err != nil || got != "rate(x[5m])" {
			t.Errorf("%s: %q, %v", window, got, err)
		}
	}
	for _, other := range []string{"{{.windows}}", "{{ .window | upper }}", "{{window}}", "{{"} {
		if got, err := fillWindow("rate(x[" + other + "])"); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %q, %v", other, got, err)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{slothText, serviceLevelText, openText, ownText, listText, ""} {
		f.Add([]byte(text))
	}
	f.Add([]byte(untrustedtest.AliasBomb("slos")))
	f.Add([]byte("version: prometheus/v1\nservice: echo\nslos: [" + strings.Repeat("{},", 999) + "{}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 32<<20, 16<<10, func() {
			var set slo.Set
			if _, err := File(&set, "fleet", text); err != nil {
				return
			}
			if _, err := slo.Build(set); err != nil {
				t.Errorf("rules of what was not refused: %v", err)
			}
		})
	})
}

const pluginText = `version: prometheus/v1
service: echo
slos:
- name: requests
  objective: 99.95
  sli: {plugin: {id: x}}
  alerting: {name: X}
`

// namesOf returns the names of refused objects, with which the errors begin.
func namesOf(refused []error) []string {
	var names []string
	for _, err := range refused {
		name, _, _ := strings.Cut(err.Error(), ":")
		names = append(names, name)
	}
	return names
}

// TestRefusedSLOsDoNotAffectOthers reads a file in which some SLOs are bad.
func TestRefusedSLOsDoNotAffectOthers(t *testing.T) {
	text := slothText + `- name: bad
  objective: 99.9
  sli:
    events:
      error_query: sum(rate(http_requests_total{code=~"5.."[{{.window}}]))
      total_query: sum(rate(http_requests_total[{{.window}}]))
- name: requests
  objective: 90
  sli:
    events:
      error_query: sum(rate(http_requests_total[{{.window}}]))
      total_query: sum(rate(http_requests_total[{{.window}}]))
- name: Odd Name
  objective: 90
  sli:
    events:
      error_query: sum(rate(http_requests_total[{{.window}}]))
      total_query: sum(rate(http_requests_total[{{.window}}]))
---
` + strings.Replace(ownText, `"99.9"`, `"100"`, 1) + "---\n" + openText
	var set slo.Set
	report, err := File(&set, "fleet", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"slo bad", "slo requests", "slo Odd Name", "OperatorSLO echo"}
	if diff := cmp.Diff(want, namesOf(report.Refused)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	var slis []string
	for _, o := range set.Operators[0].Objectives {
		slis = append(slis, o.SLI)
	}
	if diff := cmp.Diff([]string{"fast", "requests"}, slis); diff != "" || len(set.Operators) != 1 {
		t.Errorf("SLIs (-want +got):\n%s", diff)
	}
	if _, err := slo.Build(set); err != nil {
		t.Errorf("rules: %v", err)
	}
}
