// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// What promtool reads.
type (
	testFile struct {
		RuleFiles []string   `json:"rule_files"`
		Interval  string     `json:"evaluation_interval"`
		Fuzzy     bool       `json:"fuzzy_compare"`
		Order     []string   `json:"group_eval_order"`
		Tests     []testCase `json:"tests"`
	}
	testCase struct {
		Name   string      `json:"name"`
		Series []testInput `json:"input_series"`
		Exprs  []testExpr  `json:"promql_expr_test"`
		Alerts []testAlert `json:"alert_rule_test,omitempty"`
	}
	testInput struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	testExpr struct {
		Expr    string       `json:"expr"`
		At      string       `json:"eval_time"`
		Samples []testSample `json:"exp_samples"`
	}
	testSample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	testAlert struct {
		At     string      `json:"eval_time"`
		Alert  string      `json:"alertname"`
		Alerts []testFired `json:"exp_alerts"`
	}
	testFired struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
)

// run plays cases through the rules of a set.
func run(t *testing.T, set slo.Set, cases ...testCase) {
	t.Helper()
	runParts(t, set, []slo.Part{slo.Whole}, cases...)
}

// runParts plays cases through parts of the rules of a set, each in a file of its own.
func runParts(t *testing.T, set slo.Set, parts []slo.Part, cases ...testCase) {
	t.Helper()
	if err := playParts(t, set, parts, "", "", cases...); err != nil {
		t.Error(err)
	}
}

// playParts does so with some text of the rules replaced.
func playParts(t *testing.T, set slo.Set, parts []slo.Part, from, to string, cases ...testCase) error {
	t.Helper()
	all := func(rules *slo.Rules, _ slo.Part) ([]monitoringv1.RuleGroup, []string) {
		return rules.All(), rules.Order()
	}
	return playGroups(t, "1m", set, parts, all, from, to, cases...)
}

// playGroups plays cases through some groups of the rules of each part, in an order, with some text replaced.
func playGroups(t *testing.T, interval string, set slo.Set, parts []slo.Part,
	some func(*slo.Rules, slo.Part) (groups []monitoringv1.RuleGroup, order []string), from, to string,
	cases ...testCase) error {
	t.Helper()
	file := testFile{Interval: interval, Fuzzy: true, Tests: cases}
	files := map[string][]byte{}
	for _, part := range parts {
		rules, err := slo.BuildPart(set, part)
		if err != nil {
			t.Fatal(err)
		}
		groups, order := some(rules, part)
		text, err := slo.RuleFile(groups)
		if err != nil {
			t.Fatal(err)
		}
		name := "rules" + string(part) + ".yaml"
		files[name] = replaced(t, text, from, to)
		file.RuleFiles = append(file.RuleFiles, name)
		file.Order = append(file.Order, order...)
	}
	tests, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	files["tests.yaml"] = tests
	return playFile(t, filepath.Join(write(t, files), "tests.yaml"), "")
}

// replaced is the text of rules with some of it replaced, which must be there; all of it as it is if from is empty.
func replaced(t *testing.T, rules []byte, from, to string) []byte {
	t.Helper()
	if from == "" {
		return rules
	}
	if !bytes.Contains(rules, []byte(from)) {
		t.Fatalf("the rules have no %q", from)
	}
	return bytes.ReplaceAll(rules, []byte(from), []byte(to))
}

// What series do for the half hour of a case.
const (
	one, zero, none = "1x30", "0x30", "_x30"
	idle            = "7x30"
	steady          = "0+60x30"
)

var nan = strings.TrimSpace(strings.Repeat("NaN ", 31))

// of names a series of the operator echo on cluster c, by what an agent exports, or of its namespace, by what it
// exports itself.
func of(metric string, labels ...string) string {
	return id(metric, `cluster="c",operator_namespace="fleet",operator="echo"`, labels)
}

func ofPod(metric string, labels ...string) string {
	return id(metric, `cluster="c",namespace="ns"`, labels)
}

// ofHook names a series of an API server on cluster c about the webhook a.
func ofHook(metric string, labels ...string) string {
	return id(metric, `cluster="c",name="a.example.com"`, labels)
}

func id(metric, of string, labels []string) string {
	return metric + "{" + strings.Join(append([]string{of}, labels...), ",") + "}"
}

// ofEcho are the labels of the operator echo.
const ofEcho = `operator_namespace="fleet",operator="echo"`

const (
	info            = "bellwether_operator_info"
	csv             = "bellwether_operator_csv_succeeded"
	upgrading       = "bellwether_operator_upgrading"
	desired         = "bellwether_operator_deployment_replicas_desired"
	available       = "bellwether_operator_deployment_replicas_available"
	operands        = "bellwether_operator_operands"
	catalog         = "bellwether_operator_catalog_ready"
	total           = "controller_runtime_reconcile_total"
	reconcileErrors = "controller_runtime_reconcile_errors_total"
	panics          = "controller_runtime_reconcile_panics_total"
	bucket          = "controller_runtime_reconcile_time_seconds_bucket"
	count           = "controller_runtime_reconcile_time_seconds_count"
	longest         = "workqueue_longest_running_processor_seconds"
	depth           = "workqueue_depth"
	leader          = "leader_election_master_status"
	hook            = "bellwether_operator_webhook"
	called          = "apiserver_admission_webhook_request_total"
	rejected        = "apiserver_admission_webhook_rejection_count"
	failedOpen      = "apiserver_admission_webhook_fail_open_count"
	webhook         = "controller_runtime_webhook_requests_total"
	probe           = "probe_success"
)

// indicator is an SLI, what is known, and whether the slice is bad; "" is no slice.
type indicator struct {
	sli, want string
	series    map[string]string
}

// indicators are the good, the bad and the odd of every SLI. Names of series are spelled here once more on purpose.
var indicators = map[string]indicator{
	"csv succeeded":        {"csv", "0", map[string]string{of(csv): one}},
	"csv failed":           {"csv", "1", map[string]string{of(csv): zero}},
	"csv NaN":              {"csv", "1", map[string]string{of(csv): nan}},
	"csv unknown":          {"csv", "", map[string]string{of(catalog): one}},
	"csv while upgrading":  {"csv", "0", map[string]string{of(csv): zero, of(upgrading): one}},
	"no csv yet, upgrade":  {"csv", "0", map[string]string{of(upgrading): one}},
	"csv after its grace":  {"csv", "1", map[string]string{of(csv): zero, of(upgrading): "1x10 0x20"}},
	"csv of two exporters": {"csv", "1", map[string]string{of(csv, `pod="a"`): one, of(csv, `pod="b"`): zero}},

	"all replicas": {"available", "0",
		map[string]string{of(desired, `deployment="a"`): "2x30", of(available, `deployment="a"`): "2x30"}},
	"half of the replicas": {"available", "0",
		map[string]string{of(desired, `deployment="a"`): "2x30", of(available, `deployment="a"`): "1x30"}},
	"fewer than half, rounded up": {"available", "1",
		map[string]string{of(desired, `deployment="a"`): "3x30", of(available, `deployment="a"`): "1x30"}},
	"one replica short": {"redundancy", "1",
		map[string]string{of(desired, `deployment="a"`): "3x30", of(available, `deployment="a"`): "2x30"}},
	"too few replicas, which is another SLI": {"redundancy", "0",
		map[string]string{of(desired, `deployment="a"`): "3x30", of(available, `deployment="a"`): "1x30"}},
	"no replica is missing": {"redundancy", "0",
		map[string]string{of(desired, `deployment="a"`): "3x30", of(available, `deployment="a"`): "3x30"}},
	"more than asked for": {"available", "0",
		map[string]string{of(desired, `deployment="a"`): "2x30", of(available, `deployment="a"`): "3x30"}},
	"no replica is asked for": {"available", "0",
		map[string]string{of(desired, `deployment="a"`): zero, of(available, `deployment="a"`): zero}},
	"nothing is available": {"available", "1", map[string]string{of(desired, `deployment="a"`): one}},
	"available is NaN": {"available", "1",
		map[string]string{of(desired, `deployment="a"`): one, of(available, `deployment="a"`): nan}},
	"one Deployment of two": {"available", "1", map[string]string{
		of(desired, `deployment="a"`): one, of(available, `deployment="a"`): one,
		of(desired, `deployment="b"`): one, of(available, `deployment="b"`): zero,
	}},

	"reconciles": {"reconcile", "0",
		map[string]string{ofPod(total): steady, ofPod(reconcileErrors): "0+3x30"}},
	"reconciles fail": {"reconcile", "1",
		map[string]string{ofPod(total): steady, ofPod(reconcileErrors): "0+12x30"}},
	"one reconcile of two fails": {"reconcile", "0", map[string]string{ofPod(total): "0x24 2x6",
		ofPod(reconcileErrors): "0x24 1x6"}},
	"no reconciles":  {"reconcile", "0", map[string]string{ofPod(total): idle, ofPod(reconcileErrors): zero}},
	"reconciles NaN": {"reconcile", "1", map[string]string{ofPod(total): steady, ofPod(reconcileErrors): nan}},
	"one controller of three": {"reconcile", "1",
		map[string]string{ofPod(total, `controller="a"`): steady, ofPod(reconcileErrors, `controller="a"`): "0+30x30",
			ofPod(total, `controller="b"`): steady, ofPod(total, `controller="c"`): steady}},
	"a restart": {"reconcile", "0",
		map[string]string{ofPod(total): "9000+60x10 0+60x20", ofPod(reconcileErrors): "800+0x10 0+0x20"}},

	"reconciles are quick": {"latency", "0", map[string]string{ofPod(bucket, `le="10"`): steady, ofPod(count): steady}},
	"reconciles are slow": {"latency", "1", map[string]string{ofPod(bucket, `le="10.0"`): "0+50x30",
		ofPod(count): steady}},
	"latency of nothing": {"latency", "0", map[string]string{ofPod(bucket, `le="10.0"`): idle, ofPod(count): idle}},

	"no panic":       {"panic", "0", map[string]string{ofPod(panics): zero}},
	"a panic":        {"panic", "1", map[string]string{ofPod(panics): "0x24 1x6"}},
	"an old panic":   {"panic", "0", map[string]string{ofPod(panics): "0x20 1x10"}},
	"a queue":        {"queue", "0", map[string]string{ofPod(longest): one, ofPod(depth): "3x30"}},
	"a stuck worker": {"queue", "1", map[string]string{ofPod(longest): "200+10x30", ofPod(depth): zero}},
	"a deep queue":   {"queue", "1", map[string]string{ofPod(longest): zero, ofPod(depth): "11x30"}},
	"a deep moment":  {"queue", "0", map[string]string{ofPod(longest): zero, ofPod(depth): "0x18 99x12"}},
	"a NaN queue":    {"queue", "1", map[string]string{ofPod(longest): zero, ofPod(depth): nan}},

	"a leader": {"leader", "0", map[string]string{ofPod(leader, `name="x"`, `pod="a"`): one,
		ofPod(leader, `name="x"`, `pod="b"`): zero}},
	"no leader": {"leader", "1", map[string]string{ofPod(leader, `name="x"`, `pod="a"`): zero,
		ofPod(leader, `name="x"`, `pod="b"`): zero}},
	"two leaders": {"leader", "1", map[string]string{ofPod(leader, `name="x"`, `pod="a"`): one,
		ofPod(leader, `name="x"`, `pod="b"`): one}},
	"two elections": {"leader", "0", map[string]string{ofPod(leader, `name="x"`): one,
		ofPod(leader, `name="y"`): one}},
	"half an answer": {"leader", "1", map[string]string{ofPod(leader, `name="x"`): one,
		ofPod(leader, `name="y"`): zero}},

	"webhooks answer": {"webhook", "0", map[string]string{ofPod(webhook, `code="200"`): steady}},
	"webhooks fail": {"webhook", "1", map[string]string{ofPod(webhook, `code="200"`): steady,
		ofPod(webhook, `code="500"`): "0+1x30"}},
	"a refusal": {"webhook", "0", map[string]string{ofPod(webhook, `code="200"`): steady,
		ofPod(webhook, `code="403"`): steady}},
	"no requests": {"webhook", "0", map[string]string{ofPod(webhook, `code="200"`): idle,
		ofPod(webhook, `code="500"`): idle}},

	"webhooks are called": {"webhook", "0",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called, `code="200"`): steady}},
	"a webhook is down": {"webhook", "1",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called, `code="200"`): steady,
			ofHook(called, `code="500"`): "0+1x30", ofHook(rejected, `error_type="calling_webhook_error"`): "0+1x30"}},
	"a webhook is passed by": {"webhook", "1",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called, `code="200"`): steady,
			ofHook(failedOpen): "0+1x30"}},
	"half of each is enough": {"webhook", "1",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called): "0+100x30",
			ofHook(failedOpen): "0+0.6x30", ofHook(rejected, `error_type="calling_webhook_error"`): "0+0.6x30"}},
	"a call fails now and then": {"webhook", "0",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called): "0+100x30",
			ofHook(failedOpen): "0+0.4x30", ofHook(rejected, `error_type="calling_webhook_error"`): "0+0.4x30"}},
	"webhooks refuse": {"webhook", "0",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called, `code="400"`): steady,
			ofHook(rejected, `error_type="no_error"`): steady}},
	"API servers' own errors": {"webhook", "0",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called, `code="0"`): steady,
			ofHook(rejected, `error_type="apiserver_internal_error"`): steady}},
	"a webhook is not called": {"webhook", "0",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called): idle, ofHook(failedOpen): idle,
			ofHook(rejected, `error_type="calling_webhook_error"`): idle}},
	"calls NaN": {"webhook", "1",
		map[string]string{ofHook(hook, ofEcho): one, ofHook(called): steady, ofHook(failedOpen): nan}},
	"nobody has called it": {"webhook", "", map[string]string{ofHook(hook, ofEcho): one}},
	"a webhook of nobody": {"webhook", "",
		map[string]string{ofHook(called): steady, ofHook(rejected, `error_type="calling_webhook_error"`): steady}},
	"an operator without that": {"webhook", "0",
		map[string]string{ofPod(webhook, `code="200"`): steady, ofHook(called): steady, ofHook(failedOpen): steady}},
	"one API server of two": {"webhook", "1", map[string]string{
		ofHook(hook, ofEcho): one, ofHook(called, `instance="a"`): steady,
		ofHook(called, `instance="b"`): steady, ofHook(failedOpen, `instance="b"`): "0+2x30",
	}},
	"a quiet one of two webhooks": {"webhook", "1", map[string]string{
		ofHook(hook, ofEcho): one, of(hook, `name="b.example.com"`): one,
		ofHook(called): "0+9000x30", id(called, `cluster="c",name="b.example.com"`, nil): "0+1x30",
		id(failedOpen, `cluster="c",name="b.example.com"`, nil): "0+1x30",
	}},
	"another cluster's webhook": {"webhook", "0", map[string]string{
		ofHook(hook, ofEcho): one, ofHook(called): steady,
		id(called, `cluster="d",name="a.example.com"`, nil):     steady,
		id(failedOpen, `cluster="d",name="a.example.com"`, nil): steady,
	}},
	"two agents tell of a webhook": {"webhook", "1",
		map[string]string{ofHook(hook, ofEcho, `pod="a"`): one,
			ofHook(hook, ofEcho, `pod="b"`): one, ofHook(called): steady, ofHook(failedOpen): steady}},
	"what is answered is well, and a webhook is down": {"webhook", "1", map[string]string{
		ofPod(webhook, `code="200"`): steady, ofHook(hook, ofEcho): one, ofHook(called): steady,
		ofHook(failedOpen): steady,
	}},
	"what is called is well, and answers fail": {"webhook", "1", map[string]string{
		ofPod(webhook, `code="500"`): steady, ofHook(hook, ofEcho): one, ofHook(called): steady,
	}},
	"both views are well": {"webhook", "0", map[string]string{ofPod(webhook, `code="200"`): steady,
		ofHook(hook, ofEcho): one, ofHook(called): steady}},

	"operands are ready": {"operands", "0",
		map[string]string{of(operands, `kind="A"`, `ready="true"`): "40x30",
			of(operands, `kind="A"`, `ready="false"`): one}},
	"operands are not ready": {"operands", "1",
		map[string]string{of(operands, `kind="A"`, `ready="true"`): "10x30",
			of(operands, `kind="B"`, `ready="false"`): one}},
	"no operand is unready": {"operands", "0", map[string]string{of(operands, `kind="A"`, `ready="true"`): one}},
	"only unready operands": {"operands", "1", map[string]string{of(operands, `kind="A"`, `ready="false"`): one}},
	"no operands": {"operands", "0",
		map[string]string{of(operands, `kind="A"`, `ready="true"`): zero,
			of(operands, `kind="A"`, `ready="false"`): zero}},
	"unknown operands": {"operands", "", map[string]string{of(operands, `kind="A"`, `ready="unknown"`): "9x30"}},

	"catalog":     {"catalog", "0", map[string]string{of(catalog): one}},
	"no catalog":  {"catalog", "1", map[string]string{of(catalog): zero}},
	"NaN catalog": {"catalog", "1", map[string]string{of(catalog): nan}},

	"a probe inside": {"probe:api", "0", map[string]string{of(probe, `probe="api"`, `vantage="cluster"`): one,
		of(probe, `probe="api"`, `vantage="hub"`): zero}},
	"a probe that fails inside": {"probe:api", "1",
		map[string]string{of(probe, `probe="api"`, `vantage="cluster"`): zero,
			of(probe, `probe="api"`, `vantage="hub"`): one}},
	"a probe outside": {"probe:api:hub", "0", map[string]string{of(probe, `probe="api"`, `vantage="cluster"`): zero,
		of(probe, `probe="api"`, `vantage="hub"`): one}},
	"a probe that fails outside": {"probe:api:hub", "1",
		map[string]string{of(probe, `probe="api"`, `vantage="cluster"`): one,
			of(probe, `probe="api"`, `vantage="hub"`): zero}},
	"a probe is not a number": {"probe:api:hub", "1",
		map[string]string{of(probe, `probe="api"`, `vantage="hub"`): nan}},
	"a probe without a vantage": {"probe:api", "1", map[string]string{of(probe, `probe="api"`): zero}},
	"two agents run a probe": {"probe:api", "0",
		map[string]string{of(probe, `probe="api"`, `vantage="cluster"`, `pod="a"`): zero,
			of(probe, `probe="api"`, `vantage="cluster"`, `pod="b"`): one}},
	"one of two selected targets fails": {"probe:api", "1",
		map[string]string{of(probe, `probe="api"`, `target="a"`, `vantage="cluster"`): one,
			of(probe, `probe="api"`, `target="b"`, `vantage="cluster"`): zero}},
	"two agents run selected targets": {"probe:api", "0",
		map[string]string{of(probe, `probe="api"`, `target="a"`, `vantage="cluster"`, `pod="a"`): one,
			of(probe, `probe="api"`, `target="a"`, `vantage="cluster"`, `pod="b"`): zero,
			of(probe, `probe="api"`, `target="b"`, `vantage="cluster"`, `pod="b"`): one}},
	"nobody sees it": {"probe:api", "1", map[string]string{of(probe, `probe="api"`, `vantage="cluster"`): zero}},
	"another probe is fine": {"probe:api", "1",
		map[string]string{of(probe, `probe="api"`, `vantage="cluster"`): zero,
			of(probe, `probe="web"`, `vantage="cluster"`): one}},
	"an odd probe": {`probe:a"b\`, "1",
		map[string]string{of(probe, `probe="a\"b\\"`, `vantage="cluster"`): zero}},
}

// TestIndicators judges a slice of each SLI from the series that it is made of. Each indicator has clusters of its own.
func TestIndicators(t *testing.T) {
	t.Parallel()
	test := testCase{Name: "indicators"}
	for _, name := range slices.Sorted(maps.Keys(indicators)) {
		in := indicators[name]
		own := strings.NewReplacer(`cluster="c"`, fmt.Sprintf("cluster=%q", name),
			`cluster="d"`, fmt.Sprintf("cluster=%q", name+" (another cluster)"))
		test.Series = append(test.Series, testInput{own.Replace(of(info, `namespace="ns"`, `csv="echo.v1"`,
			`version="1.0.0"`)), one})
		for _, series := range slices.Sorted(maps.Keys(in.series)) {
			test.Series = append(test.Series, testInput{own.Replace(series), in.series[series]})
		}
		expr := testExpr{Expr: fmt.Sprintf("bellwether:sli_bad:bool{cluster=%q,sli=%q}", name, in.sli), At: "25m"}
		if in.want != "" {
			value := 0.0
			if in.want == "1" {
				value = 1
			}
			bad := of("bellwether:sli_bad:bool", fmt.Sprintf("sli=%q", in.sli))
			expr.Samples = []testSample{{own.Replace(bad), value}}
		}
		test.Exprs = append(test.Exprs, expr)
	}
	run(t, slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{limited}}, test)
}

// TestEverySLIHasIndicators makes sure that none is left out of the table, neither good nor bad.
func TestEverySLIHasIndicators(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range indicators {
		seen[in.sli+in.want] = true
	}
	for _, s := range slo.SLIs() {
		name := s.Name
		if name == slo.Probe {
			name += "api"
		}
		for _, want := range []string{"0", "1"} {
			if !seen[name+want] {
				t.Errorf("no indicator makes %s %s", name, want)
			}
		}
	}
}

// TestTwoExporters has the inventory from an agent and from the hub: nothing counts twice, and the hub's alone is
// enough to notice that the agent is dead.
func TestTwoExporters(t *testing.T) {
	expected := "bellwether_operator_expected"
	run(t, slo.Set{Default: slo.DefaultProfile()}, testCase{
		Name: "an agent dies",
		Series: []testInput{
			{`bellwether_fleet_clusters{state="online"}`, "1x120"},
			{of(expected, `pod="agent"`), "1x60 stale"},
			{of(expected, `pod="hub"`), "1x120"},
			{of(csv, `pod="agent"`), "1x60 stale"},
			{of(catalog, `pod="agent"`), "1x60 stale"},
			{of(desired, `deployment="a"`), "1x60 stale"},
			{of(available, `deployment="a"`), "1x60 stale"},
			{of(info, `namespace="ns"`, `csv="echo.v1"`, `version="1.0.0"`), "1x60 stale"},
		},
		Exprs: []testExpr{
			{Expr: `bellwether:sli_expected:bool{sli="csv"}`, At: "30m",
				Samples: []testSample{{`bellwether:sli_expected:bool{cluster="c",operator_namespace="fleet",operator="echo",sli="csv"}`, 1}}},
			{Expr: `bellwether:slo_objective:ratio{sli="csv"}`, At: "30m",
				Samples: []testSample{{`bellwether:slo_objective:ratio{operator_namespace="fleet",operator="echo",sli="csv"}`, 0.995}}},
			{Expr: `ALERTS{severity=~"page|ticket"}`, At: "60m"},
			{Expr: `count by (alertname, cluster) (ALERTS{alertstate="firing"})`, At: "100m",
				Samples: []testSample{{`{alertname="BellwetherClusterFailing",cluster="c"}`, 1}}},
		},
	})
}
