// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/testbed/build"
)

// testerRules have what the program that plays most tests does in another way than promtool: expressions that the
// engine changes for a query, metrics that no series has, or has later, queries in annotations, order of groups, and
// series that end.
const testerRules = `groups:
- name: second
  rules:
  - {record: "sum:two", expr: "sum:one + 1"}
  - alert: High
    expr: a > 5
    for: 1m
    keep_firing_for: 2m
    labels: {severity: page}
    annotations:
      summary: '{{ $labels.job }} is {{ $value }}, at first {{ with query "a @ 0" }}{{ . | first | value }}{{ end }}'
- name: first
  rules:
  - {record: "sum:one", expr: "sum by (job) (a)"}
  - {record: "const:sum", expr: "vector(1) + vector(2)"}
  - {record: "at:start", expr: "a - on (job) a @ 0"}
  - {record: "part:sum", expr: "a * (1 + 2) + scalar(vector(4) * 2)"}
  - {record: "rate:sub", expr: "max_over_time((a offset 1m)[3m:])"}
  - {record: "time:now", expr: "time()"}
  - {record: "hist:count", expr: "histogram_count(h)"}
  - {record: "is:absent", expr: "absent(a)"}
  - {record: "tenths:sum", expr: "b + 0.2"}
  - {record: "joined:a", expr: "a * on (job) group_left (team) owner"}
  - {record: "or:left", expr: "a or nothing"}
  - {record: "or:right", expr: "nothing or nothing * on () a or a"}
  - {record: "or:none", expr: "nothing or rate(nothing[5m])"}
  - {record: "unless:left", expr: "a unless on (job) max_over_time(nothing[5m:])"}
  - {record: "unless:right", expr: "nothing unless a"}
  - {record: "and:left", expr: "a and nothing"}
  - {record: "and:right", expr: "sum(nothing) + on () group_right () a"}
  - {record: "nothing:count", expr: "count(nothing) or vector(0)"}
  - {record: "nothing:absent", expr: "absent(nothing) and absent_over_time(nothing[5m])"}
  - {record: "nothing:scalar", expr: "vector(scalar(sum(nothing + on (job) a))) == bool 9"}
  - {record: "nothing:clamp", expr: "clamp_max(a, scalar(nothing or vector(2)))"}
  - {record: "later:sum", expr: "sum(later) or (1 + 0 * count(a))"}
  - {record: "hist:sum", expr: "h"}
  - {record: "hist:again", expr: "histogram_count(hist:sum)"}
  - {record: "joined:nothing", expr: "nothing * on (job) (a * on (job) group_left (team) owner_too)"}
`

const testerSeries = `    input_series:
    - {series: 'a{job="x"}', values: "9x20"}
    - {series: 'a{job="x"}', values: "1 2 3 _ 9 9 9 1 stale"}
    - {series: 'b', values: "0.1x20"}
    - {series: 'later', values: "_x4 5x20"}
    - {series: 'h', values: "{{schema:0 sum:9 count:3 buckets:[1 2]}}x20"}
`

// testerCases are tests of these rules by whether they pass.
var testerCases = map[string]struct {
	passes bool
	test   string
}{
	"values": {true, `
    promql_expr_test:
    - {expr: 'sum:two', eval_time: 6m, exp_samples: [{labels: 'sum:two{job="x"}', value: 10}]}
    - {expr: 'const:sum', eval_time: 6m, exp_samples: [{labels: 'const:sum', value: 3}]}
    - {expr: 'at:start', eval_time: 6m, exp_samples: [{labels: '{__name__="at:start",job="x"}', value: 8}]}
    - {expr: 'part:sum', eval_time: 3m, exp_samples: [{labels: 'part:sum{job="x"}', value: 17}]}
    - {expr: 'rate:sub', eval_time: 4m, exp_samples: [{labels: 'rate:sub{job="x"}', value: 3}]}
    - {expr: 'time:now', eval_time: 5m, exp_samples: [{labels: 'time:now', value: 300}]}
    - {expr: 'hist:count', eval_time: 5m, exp_samples: [{labels: 'hist:count', value: 3}]}
    - {expr: 'is:absent', eval_time: 7m}
    - {expr: 'is:absent', eval_time: 8m, exp_samples: [{labels: 'is:absent', value: 1}]}
    - {expr: 'sum:one or sum:two', eval_time: 8m}
    - {expr: 'joined:a', eval_time: 8m}
    - {expr: 'count_over_time(sum:two[10m:])', eval_time: 9m, exp_samples: [{labels: '{job="x"}', value: 8}]}
    - {expr: '{__name__=~"or:.*|unless:.*|and:.*"}', eval_time: 6m, exp_samples: [
        {labels: 'or:left{job="x"}', value: 9}, {labels: 'or:right{job="x"}', value: 9},
        {labels: 'unless:left{job="x"}', value: 9}]}
    - {expr: '{__name__=~"nothing.*"}', eval_time: 6m, exp_samples: [
        {labels: 'nothing:absent', value: 1}, {labels: 'nothing:clamp{job="x"}', value: 2},
        {labels: 'nothing:count', value: 0}, {labels: 'nothing:scalar', value: 0}]}
    - {expr: 'later:sum', eval_time: 3m, exp_samples: [{labels: 'later:sum', value: 1}]}
    - {expr: 'later:sum', eval_time: 5m, exp_samples: [{labels: 'later:sum', value: 5}]}
    - {expr: 'hist:again', eval_time: 5m, exp_samples: [{labels: 'hist:again', value: 3}]}
    - {expr: '7', eval_time: 1m, exp_samples: [{labels: '{}', value: 7}]}
    - {expr: 'tenths:sum', eval_time: 1m, exp_samples: [{labels: 'tenths:sum', value: 0.3}]}`},
	"an alert, its wait and its end": {true, `
    alert_rule_test:
    - {eval_time: 4m, alertname: High}
    - &fires {eval_time: 5m, alertname: High, exp_alerts: [{exp_labels: {job: x, severity: page},
        exp_annotations: {summary: 'x is 9, at first 1'}}]}
    - {<<: *fires, eval_time: 5m30s}
    - {<<: *fires, eval_time: 8m}
    - {eval_time: 9m, alertname: High}
    promql_expr_test:
    - {expr: 'count(ALERTS{alertstate="firing"})', eval_time: 5m, exp_samples: [{labels: '{}', value: 1}]}
    - {expr: 'count(ALERTS{alertstate="pending"})', eval_time: 4m, exp_samples: [{labels: '{}', value: 1}]}`},
	"another value":    {false, expects("sum:one", "6m", `'sum:one{job="x"}', value: 8`)},
	"another label":    {false, expects("sum:one", "6m", `'sum:one{job="y"}', value: 9`)},
	"a missing sample": {false, expects("sum:one", "8m", `'sum:one{job="x"}', value: 1`)},
	"an unexpected sample": {false, `
    promql_expr_test: [{expr: 'sum:one', eval_time: 6m}]`},
	"NaN is not NaN":       {false, expects("0 / 0 * b", "1m", `'{}', value: .nan`)},
	"nearly equal numbers": {true, expects("b + 0.2", "1m", `'{}', value: 0.3`)},
	"a query that fails": {false, `
    promql_expr_test: [{expr: 'a + on () group_left () {__name__=~".+"}', eval_time: 6m}]`},
	"too many samples": {false, expects("count_over_time(b[7d:30s])", "1m", `'{}', value: 61`)},
	"other labels of an alert": {false, `
    alert_rule_test: [{eval_time: 5m, alertname: High, exp_alerts: [{exp_labels: {job: x},
      exp_annotations: {summary: 'x is 9, at first 1'}}]}]`},
	"other annotations": {false, `
    alert_rule_test: [{eval_time: 5m, alertname: High, exp_alerts: [{exp_labels: {job: x, severity: page}}]}]`},
	"an alert that should not fire": {false, `
    alert_rule_test: [{eval_time: 5m, alertname: High}]`},
	"an alert that does not fire": {false, `
    alert_rule_test: [{eval_time: 4m, alertname: High, exp_alerts: [{exp_labels: {job: x, severity: page},
      exp_annotations: {summary: 'x is 9, at first 1'}}]}]`},
	"a rule that fails": {false, `
    - {series: 'owner{job="x",team="a"}', values: "1x20"}
    - {series: 'owner{job="x",team="b"}', values: "1x20"}
    promql_expr_test: [{expr: 'absent(nothing)', eval_time: 6m, exp_samples: [{labels: '{}', value: 1}]}]`},
	"a part of a rule that fails": {false, `
    - {series: 'owner_too{job="x",team="a"}', values: "1x20"}
    - {series: 'owner_too{job="x",team="b"}', values: "1x20"}
    promql_expr_test: [{expr: 'absent(nothing)', eval_time: 6m, exp_samples: [{labels: '{}', value: 1}]}]`},
	"a part of a query that fails": {false, `
    promql_expr_test: [{expr: 'nothing + on () rate({__name__=~"b|later"}[5m])', eval_time: 6m}]`},
	"a bad notation": {false, `
    - {series: 'c{', values: "1x20"}
    promql_expr_test: [{expr: 'absent(nothing)', eval_time: 6m, exp_samples: [{labels: '{}', value: 1}]}]`},
	"a field that does not exist": {false, `
    expr_test: []`},
}

// expects is a test of one sample.
func expects(expr, at, sample string) string {
	return fmt.Sprintf("\n    promql_expr_test: [{expr: '%s', eval_time: %s, exp_samples: [{labels: %s}]}]", expr, at,
		sample)
}

// TestTesters expects of the program that plays most tests what promtool says of the same files.
func TestTesters(t *testing.T) {
	tool := binary(t, build.Promtool)
	for name, tc := range testerCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "rule_files: [rules.yaml]\nevaluation_interval: 1m\nfuzzy_compare: true\n" +
				"group_eval_order: [first, second]\ntests:\n  - name: a test\n" + testerSeries +
				strings.TrimPrefix(tc.test, "\n")
			path := filepath.Join(write(t, map[string][]byte{"rules.yaml": []byte(testerRules),
				"tests.yaml": []byte(text)}), "tests.yaml")
			for of, err := range map[string]error{
				"promtool":   promtool(t.Context(), tool, "test", "rules", path),
				"test-rules": playFile(t, path, "a test"),
			} {
				if (err == nil) != tc.passes {
					t.Errorf("%s: %v, want success %t", of, err, tc.passes)
				}
			}
			if err := playFile(t, path, "another"); err != nil && name != "a field that does not exist" {
				t.Errorf("no test has that name: %v", err)
			}
		})
	}
}
