// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

func TestReadable(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"text":  {"all is well", []string{"all is well"}},
		"label": {"cluster {{ $labels.cluster }}", []string{"cluster CLUSTER"}},
		"operator": {"{{ $labels.operator_namespace }}/{{ $labels.operator }} fails",
			[]string{"OPERATOR fails"}},
		"values":   {`{{ $value }} and {{ printf "%.1f" $value }}`, []string{"N and N"}},
		"duration": {"{{ humanizeDuration $value }} late", []string{"DURATION late"}},
		"a choice": {"it {{ if lt $value 0.0 }}has expired{{ else }}expires{{ end }}",
			[]string{"it expires", "it has expired"}},
		"with or without": {"no data{{ with $labels.cluster }} on {{ . }}{{ end }}",
			[]string{"no data", "no data on CLUSTER"}},
		"a choice that is none": {"{{ if $value }}a{{ else }}a{{ end }}", []string{"a"}},
		"a loop": {`on{{ range $i, $x := query "x" }} {{ $x | value | printf "%.0f" }} cluster` +
			`{{ if ne ($x | value) 1.0 }}s{{ end }}{{ end }}`, []string{"on N clusters"}},
		"another template": {`{{ template "x" }}`, []string{"..."}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := expandTemplate(test.text)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := expandTemplate("{{ if }}"); err == nil {
		t.Error("no error about a template that cannot be parsed")
	}
}

func TestLabels(t *testing.T) {
	burn := series.SLOReleaseBurn // operator_namespace, operator, sli, version, severity
	for name, test := range map[string]struct {
		expr string
		want labels
	}{
		"a series":  {series.ClusterVetoEnd, newLabels("cluster")},
		"of agents": {series.OperatorWebhook, newLabels("cluster", "operator_namespace", "operator", "name")},
		"of a window": {series.SLIBadClusterSum + "1h", newLabels("cluster", "operator_namespace", "operator",
			"sli")},
		"with an offset": {"(" + series.ClusterLost + " offset 1h) > 3", newLabels("cluster")},
		"of many":        {"max_over_time(" + series.ClusterLost + "[1h:1m])", newLabels("cluster")},
		"counted":        {"count(" + burn + ")", labels{}},
		"by":             {"max by (operator, absent) (" + burn + ")", newLabels("operator")},
		"without": {"max without (version, severity, operator_namespace) (" + burn + ")",
			newLabels("operator", "sli")},
		"topk":           {"topk by (sli) (1, " + series.ClusterLate + ")", newLabels("cluster")},
		"and":            {series.ClusterLost + " and on () " + burn, newLabels("cluster")},
		"or":             {series.ClusterLost + " or count(" + burn + ")", labels{"cluster": false}},
		"or of the same": {series.ClusterLost + " or " + series.ClusterLate, newLabels("cluster")},
		"scalar":         {"0 * " + series.ClusterLost, newLabels("cluster")},
		"on":             {burn + " - on (operator) " + burn, newLabels("operator")},
		"group_left": {series.ClusterLost + " * on () group_left (team) " + series.SLOTeam,
			newLabels("cluster", "team")},
		"group_right": {series.SLOTeam + " * on () group_right (team) " + series.ClusterLost,
			newLabels("cluster", "team")},
		"one to one": {"-" + series.ClusterLost + " * " + series.ClusterLate, newLabels("cluster")},
		"joined": {`label_join(` + series.ClusterLost + `, "slo", "/", "cluster")`,
			newLabels("cluster", "slo")},
		"absent":          {"absent(" + series.ClusterLost + ")", labels{}},
		"not ours":        {"up", labels{}},
		"no series":       {"vector(1)", labels{}},
		"absent, by time": {"absent_over_time(" + series.ClusterLost + "[5m])", labels{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readRuleLabels(monitoringv1.Rule{Expr: intstr.FromString(test.expr)})
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := readRuleLabels(monitoringv1.Rule{Expr: intstr.FromString("x{")}); err == nil {
		t.Error("no error about a query that cannot be parsed")
	}
}

func TestSpell(t *testing.T) {
	for duration, want := range map[string]string{
		"15s": "15 seconds", "75s": "75 seconds", "1m": "1 minute", "5m": "5 minutes", "1h0m0s": "1 hour",
		"24h": "24 hours", "72h": "3 days", "4w": "4w",
	} {
		if got := spellDuration(duration); got != want {
			t.Errorf("%s is %q, want %q", duration, got, want)
		}
	}
}

// TestWrittenTextIsKept generates a page twice, around what people wrote.
func TestWrittenTextIsKept(t *testing.T) {
	all := alerts(t)
	for _, a := range all {
		if a.Name != slo.AlertRelease {
			continue
		}
		slis := SLIs("# SLIs\n\nIntroduction.\n\n## csv\n\n**Users:** They wait.\n\n**First look:**\n```sh\nx\n```\n")
		if again := SLIs(slis); again != slis || !strings.Contains(slis, "Introduction.") {
			t.Errorf("slis.md (-once +twice):\n%s", cmp.Diff(slis, again))
		}
		once, err := Page(a, "## What to do\n\nGo back.\n\n## first\n", slis)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := Page(a, once, slis)
		if err != nil || once != twice {
			t.Errorf("%v; page (-once +twice):\n%s", err, cmp.Diff(once, twice))
		}
		for _, want := range []string{"## What to do\n\nGo back.\n", "## First look\n\n" + Missing,
			"**Users:** They wait.\n", "**First look:**\n\n```sh\nx\n```\n"} {
			if !strings.Contains(once, want) {
				t.Errorf("the page does not have %q", want)
			}
		}
		if strings.Contains(once, "- `OPERATOR`") {
			t.Error("the page explains a word that it does not use")
		}
	}
}
