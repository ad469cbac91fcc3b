// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// healthAlerts are stories of what would let other alerts be missing, and of what waits for a person: the series, how
// often each alert begins to fire, and moments before, at and after it.
var healthAlerts = map[string]struct {
	series []testInput
	// fires has the alert with its labels while it fires.
	fires, quiet []int
	alert        string
	labels       string
	minutes      int
}{
	"rules are not evaluated": {
		series: []testInput{{"bellwether:rules_evaluated:timestamp", "1x59 stale _x38 1x100"}},
		alert:  "BellwetherRulesStale", labels: `severity="page"`, minutes: 200,
		fires: []int{80, 99}, quiet: []int{0, 59, 72, 110, 199},
	},
	"the hub is lost": {
		series: []testInput{{`bellwether_fleet_clusters{state="online"}`, "5x59 stale _x38 5x100"}},
		alert:  "BellwetherHubDown", labels: `severity="page"`, minutes: 200,
		fires: []int{70, 99}, quiet: []int{0, 59, 62, 110, 199},
	},
	"rules are not loaded": {
		series: []testInput{{of("bellwether_slo_rules_loaded"), "1x59 0x59 1x100"},
			{`bellwether_slo_rules_loaded{operator_namespace="fleet",operator="other"}`, "1x220"}},
		alert: "BellwetherRulesNotLoaded", labels: `severity="ticket"`, minutes: 200,
		fires: []int{76, 119}, quiet: []int{0, 60, 73, 121, 199},
	},
	"policies that are not in force, beside one that is, and one that soon is": {
		series: []testInput{
			{`bellwether_paging_policy_ready{namespace="payments",policy="team"}`, "1x59 0x59 1x100"},
			{`bellwether_paging_policy_ready{namespace="tools",policy="team"}`, "1x30 0x10 1x200"},
			{`bellwether_paging_policy_ready{namespace="bellwether-system",policy="platform"}`, "1x220"},
		},
		alert: "BellwetherPagingPolicyNotApplied", labels: `severity="ticket"`, minutes: 200,
		fires: []int{76, 119}, quiet: []int{0, 45, 60, 73, 121, 199},
	},
	"a self-test fails, and passes again later": {
		series: []testInput{
			{`bellwether_paging_self_test_passed{namespace="payments",policy="team"}`, "1x59 0x59 1x100"},
			{`bellwether_paging_self_test_passed{namespace="tools",policy="team"}`, "1x220"},
		},
		alert: "BellwetherPagingSelfTestFailed", labels: `severity="ticket"`, minutes: 200,
		fires: []int{62, 118}, quiet: []int{0, 59, 121, 199},
	},
	"a rollout is halted": {
		series: []testInput{{`bellwether_rollout_phase{operator_namespace="fleet",operator="echo",phase="Halted"}`,
			"_x60 1x59 stale"},
			{`bellwether_rollout_phase{operator_namespace="fleet",operator="echo",phase="Progressing"}`,
				"1x59 stale _x59 1x100"},
			{`bellwether_rollout_phase{operator_namespace="fleet",operator="other",phase="Progressing"}`, "1x220"}},
		alert: "BellwetherRolloutHalted", labels: `severity="ticket",operator="echo",team="blue"`, minutes: 200,
		fires: []int{66, 119}, quiet: []int{0, 60, 63, 122, 199},
	},
	"a wave in which nothing changes, beside one that changes and one that soaks": {
		series: append(append(wave("echo", "Updating", "1x30 2x400 3x200"), wave("other", "Updating", "0+1x630")...),
			slices.Concat(wave("soaking", "Soaking", "1x630"), wave("frozen", "Updating", "1x630"), []testInput{{
				`bellwether_rollout_held_clusters{operator_namespace="fleet",operator="frozen",reason="WindowClosed"}`,
				"2x630"}})...),
		alert: "BellwetherRolloutStuck", labels: `severity="ticket",operator="echo",wave="w",team="blue"`, minutes: 630,
		fires: []int{395, 429}, quiet: []int{0, 359, 388, 433, 629},
	},
	"a veto that is in force beyond its end, beside one that is not": {
		series: []testInput{
			{`bellwether_fleet_cluster_veto_end_timestamp_seconds{cluster="c"}`, "3600x119 stale _x100"},
			{`bellwether_fleet_cluster_veto_end_timestamp_seconds{cluster="good"}`, "1000000x220"},
		},
		alert: "BellwetherVetoOverdue", labels: `severity="ticket",cluster="c"`, minutes: 200,
		fires: []int{80, 118}, quiet: []int{0, 59, 70, 130, 199},
	},
	"a silence that hides pages about an operator, beside one that hides none": {
		series: []testInput{
			{`bellwether_alert_silence_hidden_pages{operator_namespace="fleet",operator="echo",cluster="",` +
				`namespace="fleet",silence="work",owner="anna"}`, "_x60 2x59 stale _x100"},
			{`bellwether_alert_silence_end_timestamp_seconds{namespace="fleet",silence="good",owner="anna",cause=""}`,
				"1000000x220"},
		},
		alert: "BellwetherSilenceHidesBurn", labels: `severity="ticket",operator="echo"`, minutes: 200, fires: []int{68, 119}, quiet: []int{0, 60, 63, 123, 199},
	},
	"a silence that hides pages about a cluster": {
		series: []testInput{
			{`bellwether_alert_silence_hidden_pages{operator_namespace="",operator="",cluster="c",namespace="hub",` +
				`silence="move",owner="anna"}`, "_x60 1x59 stale _x100"},
		},
		alert: "BellwetherSilenceHidesBurn", labels: `severity="ticket",cluster="c"`,
		minutes: 200, fires: []int{68, 119}, quiet: []int{0, 60, 63, 123, 199},
	},
	"a gate that holds a wave back, beside one that has just begun to": {
		series: []testInput{
			{"bellwether_rollout_gate_waiting_since_timestamp_seconds" +
				`{operator_namespace="fleet",operator="echo",wave="w",gate="sre"}`, "_x60 3600x119 stale"},
			{"bellwether_rollout_gate_waiting_since_timestamp_seconds" +
				`{operator_namespace="fleet",operator="other",wave="w",gate="sre"}`, "_x170 10200x50"},
			{`bellwether_rollout_phase{operator_namespace="fleet",operator="echo",phase="Progressing"}`, "1x220"},
			{`bellwether_rollout_phase{operator_namespace="fleet",operator="other",phase="Progressing"}`, "1x220"},
		},
		alert: "BellwetherRolloutGateWaiting", labels: `severity="ticket",operator="echo",wave="w",team="blue"`,
		minutes: 200, fires: []int{125, 178}, quiet: []int{0, 60, 119, 183, 199},
	},
	"an agent that the hub does not hear, beside a cluster of which nothing is known": {
		series: []testInput{
			{`bellwether_fleet_cluster_online{cluster="c"}`, "1x59 0x59 1x100"},
			{`bellwether:cluster:measured{cluster="c"}`, "1x220"},
			{`bellwether_fleet_cluster_online{cluster="dark"}`, "0x220"},
			{`bellwether_fleet_cluster_online{cluster="good"}`, "1x220"},
			{`bellwether:cluster:measured{cluster="good"}`, "1x220"},
		},
		alert: "BellwetherAgentDisconnected", labels: `severity="ticket",cluster="c"`, minutes: 200,
		fires: []int{76, 119}, quiet: []int{0, 60, 73, 121, 199},
	},
}

// wave is a rollout with one wave: its phase, and how many of its clusters have succeeded.
func wave(operator, phase, succeeded string) []testInput {
	of := fmt.Sprintf(`{operator_namespace="fleet",operator=%q,`, operator)
	return []testInput{
		{"bellwether_rollout_phase" + of + `phase="Progressing"}`, "1x630"},
		{"bellwether_rollout_wave_phase" + of + fmt.Sprintf(`wave="w",phase=%q}`, phase), "1x630"},
		{"bellwether_rollout_wave_clusters" + of + `wave="w",state="succeeded"}`, succeeded},
	}
}

// healthRules are the rules about health alone: what other groups record is given to them.
func healthRules(t *testing.T) []monitoringv1.RuleGroup {
	t.Helper()
	rules, err := slo.Build(onlyCSV)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(rules.Groups, func(g monitoringv1.RuleGroup) bool { return g.Name != "bellwether-health" })
}

// runGroups plays cases through groups of rules.
func runGroups(t *testing.T, groups []monitoringv1.RuleGroup, cases ...testCase) {
	t.Helper()
	text, err := slo.RuleFile(groups)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := yaml.Marshal(testFile{RuleFiles: []string{"rules.yaml"}, Interval: "1m", Fuzzy: true, Tests: cases})
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string][]byte{"rules.yaml": text, "tests.yaml": tests})
	if err := playFile(t, filepath.Join(dir, "tests.yaml"), ""); err != nil {
		t.Error(err)
	}
}

// began counts how often each alert began to fire, by all labels that identify one.
func began(minutes int, severities string) testExpr {
	firing := fmt.Sprintf(`ALERTS{alertstate="firing",severity=~%q}`, severities)
	return testExpr{At: fmt.Sprintf("%dm", minutes-1), Expr: fmt.Sprintf(
		"sum by (alertname, severity, cluster, operator, wave, probe, team) "+
			"(count_over_time((%s unless (%s offset 1m))[%dm:1m]))",
		firing, firing, minutes)}
}

// TestHealthAlerts has each alert fire when it must, once, and resolve. All that is in order stays quiet.
func TestHealthAlerts(t *testing.T) {
	var cases []testCase
	for name, story := range healthAlerts {
		once := began(story.minutes, "page|ticket")
		labels := fmt.Sprintf("{alertname=%q,%s}", story.alert, story.labels)
		once.Samples = []testSample{{labels, 1}}
		test := testCase{Name: name, Series: inOrder(story.series, story.minutes), Exprs: []testExpr{once}}
		for _, m := range append(slices.Clone(story.fires), story.quiet...) {
			at := testExpr{At: fmt.Sprintf("%dm", m), Expr: `count by (alertname, severity, cluster, operator, wave, team) ` +
				`(ALERTS{alertstate="firing",severity=~"page|ticket"})`}
			if slices.Contains(story.fires, m) {
				at.Samples = []testSample{{labels, 1}}
			}
			test.Exprs = append(test.Exprs, at)
		}
		cases = append(cases, test)
	}
	runGroups(t, healthRules(t), cases...)
}

// inOrder adds the series of a world that is in order to those that a story has not.
func inOrder(story []testInput, minutes int) []testInput {
	out := slices.Clone(story)
	for _, in := range []testInput{
		{`bellwether_fleet_clusters{state="online"}`, ""}, {"bellwether:rules_evaluated:timestamp", ""},
		{`bellwether:cluster:measured{cluster="good"}`, ""}, {`bellwether:cluster:expected{cluster="good"}`, ""},
		{`bellwether:slo_team:info{operator_namespace="fleet",operator="echo",team="blue",criticality="Standard"}`, ""},
		{`bellwether:slo_team:info{operator_namespace="fleet",operator="other",criticality="Standard"}`, ""},
		{`bellwether:slo_team:info{operator_namespace="fleet",operator="soaking",criticality="Standard"}`, ""},
	} {
		if !slices.ContainsFunc(story, func(s testInput) bool { return s.Series == in.Series }) {
			out = append(out, testInput{in.Series, fmt.Sprintf("1x%d", minutes+20)})
		}
	}
	return out
}

// TestCertificateThatExpires has a certificate come closer to its end and be renewed: a ticket becomes a page of the
// same identity, they never fire at once, and another certificate is left alone.
func TestCertificateThatExpires(t *testing.T) {
	const day = 24 * 60 * 60
	of := func(probe string) string {
		return fmt.Sprintf(`probe_ssl_earliest_cert_expiry{cluster="c",%s,probe=%q,vantage="cluster"}`, ofEcho, probe)
	}
	chain := func(probe string) string {
		return strings.Replace(of(probe), "earliest_cert_expiry", "last_chain_expiry_timestamp_seconds", 1)
	}
	identity := `cluster="c",operator="echo",probe="api",team="blue"`
	once := began(240, "page|ticket")
	once.Samples = []testSample{
		{fmt.Sprintf(`{alertname="BellwetherCertificateExpires",severity="ticket",%s}`, identity), 1},
		{fmt.Sprintf(`{alertname="BellwetherCertificateExpires",severity="page",%s}`, identity), 1},
	}
	test := testCase{Name: "a certificate", Exprs: []testExpr{once}, Series: inOrder([]testInput{
		{of("api"), fmt.Sprintf("%dx59 %dx59 %dx59 %dx60", 15*day, 10*day, day/2, 90*day)},
		{of("web"), fmt.Sprintf("%dx240", 90*day)},
		// A certificate that the verified chain does not need has expired, and nothing is verified of another endpoint.
		{of("cross-signed"), fmt.Sprintf("%dx240", -10*day)},
		{chain("cross-signed"), fmt.Sprintf("%dx240", 60*day)},
		{of("unverified"), fmt.Sprintf("%dx240", 60*day)},
		{chain("unverified"), "-62135596800x240"},
	}, 240)}
	for m, severity := range map[int]string{30: "", 61: "ticket", 119: "ticket", 127: "page", 179: "page", 190: "",
		239: ""} {
		at := testExpr{At: fmt.Sprintf("%dm", m), Expr: `count by (severity, probe, scope, operator_namespace) ` +
			`(ALERTS{alertname="BellwetherCertificateExpires",alertstate="firing"})`}
		if severity != "" {
			at.Samples = []testSample{{fmt.Sprintf(`{severity=%q,probe="api",scope="operator",operator_namespace="fleet"}`,
				severity), 1}}
		}
		test.Exprs = append(test.Exprs, at)
	}
	test.Exprs = append(test.Exprs, testExpr{At: "239m", Samples: []testSample{{"{}", 1}}, Expr: strings.Join([]string{
		"max(max_over_time(count by (probe) (ALERTS{alertname=\"BellwetherCertificateExpires\",alertstate=\"firing\"})",
		"[240m:1m]))"}, "")})
	runGroups(t, healthRules(t), test)
}

// TestHeartbeat has the alert fire from the beginning, and stop when the slices stop, the hub is lost, or the rules are
// no longer evaluated.
func TestHeartbeat(t *testing.T) {
	var cases []testCase
	for _, lost := range []string{`bellwether_fleet_clusters{state="online"}`, "bellwether:rules_evaluated:timestamp",
		`bellwether:cluster:measured{cluster="good"}`} {
		beats := func(m int, samples ...testSample) testExpr {
			return testExpr{At: fmt.Sprintf("%dm", m), Samples: samples, Expr: `count by (alertname, severity) ` +
				`(ALERTS{alertstate="firing",severity="heartbeat"})`}
		}
		fires := testSample{`{alertname="BellwetherHeartbeat",severity="heartbeat"}`, 1}
		cases = append(cases, testCase{Name: "without " + lost,
			Series: inOrder([]testInput{{lost, "1x59 stale _x29 1x60"}}, 150),
			Exprs: []testExpr{beats(0, fires), beats(59, fires), beats(61), beats(88), beats(95, fires),
				beats(149, fires)}})
	}
	runGroups(t, healthRules(t), cases...)
}
