// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestHastenedRulesAreTheHubs takes the hub's own rules: nothing of them may differ but how often they are evaluated,
// and slices not even in that.
func TestHastenedRulesAreTheHubs(t *testing.T) {
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{{
		Namespace: "fleet", Name: "echo", Objectives: []slo.Objective{{SLI: "asked", Target: 990_000}},
		Own: []slo.OwnSLI{slo.RequestRatio("asked", "requests_total", nil,
			[]slo.Matcher{{Label: "code", Op: "=~", Value: "5.."}})},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	before := rules.All()
	text, err := slo.RuleFile(before)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ruleFiles([]any{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "map"},
		Data:       map[string]string{"all.rules.yaml": string(text), "notes.txt": "no rules"},
	}})
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, want 1; error %v", len(files), err)
	}
	var after monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(files["ns.map.all.rules.yaml"], &after); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for i, group := range after.Groups {
		records := false
		for _, r := range group.Rules {
			records = records || r.Record == series.SLIBad || r.Record == series.SLIBadSlice
		}
		want := evaluation
		if records {
			kept, want = kept+1, slo.Step
		}
		if got, err := time.ParseDuration(string(*group.Interval)); err != nil || got != want {
			t.Errorf("group %s is evaluated every %s, want %s (%v)", group.Name, *group.Interval, want, err)
		}
		after.Groups[i].Interval = before[i].Interval
	}
	if kept != 2 {
		t.Errorf("%d groups record slices, want the fleet's and the operator's own", kept)
	}
	if diff := cmp.Diff(before, after.Groups); diff != "" {
		t.Errorf("rules (-hub +testbed):\n%s", diff)
	}
}

func TestBrokenRuleFileIsNamed(t *testing.T) {
	_, err := ruleFiles([]any{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "map"},
		Data:       map[string]string{"all.rules.yaml": "groups: {}"},
	}})
	if err == nil {
		t.Fatal("want an error")
	}
	t.Log(err)
}
