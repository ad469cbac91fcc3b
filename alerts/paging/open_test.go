// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestOpenIncidents: a bad release on two clusters is one incident, and the heartbeat is none.
func TestOpenIncidents(t *testing.T) {
	router, err := paging.NewRouter(configOf(t, fleet(), tenant("tools", echo)))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	release := func(minute int, silences ...string) alertmanager.Alert {
		labels := alert(echo, slo.AlertRelease, "page", "release", "version", "1.1.0", "slo",
			time.Duration(minute).String())
		return alertmanager.Alert{Labels: labels, Annotations: map[string]string{"summary": "echo 1.1.0 is bad"},
			Since: start.Add(time.Duration(minute) * time.Minute), SilencedBy: silences}
	}
	incidents := router.OpenIncidents([]alertmanager.Alert{
		release(2, "s1"), release(1),
		{Labels: map[string]string{"alertname": slo.AlertCluster, "severity": "page", "scope": "cluster",
			"cluster": "a"}, Since: start.Add(time.Hour)},
		{Labels: map[string]string{"alertname": slo.AlertHeartbeat, "severity": "heartbeat", "scope": "fleet"},
			Since: start},
	})
	if len(incidents) != 2 {
		t.Fatalf("%d incidents, want that of the cluster and that of the release: %+v", len(incidents), incidents)
	}
	paging.AddSilences(incidents, nil)
	paging.AddSilences(incidents, []alertmanager.Silence{
		{ID: "s0", By: "x"}, {ID: "s1", By: "ann", Comment: "known\nproblem", Ends: start}})
	if i := incidents[0]; i.Alerts != 1 || i.Silenced != 0 || i.Silences != nil {
		t.Errorf("the newest is not the cluster's: %+v", i)
	}
	i := incidents[1]
	if i.Alerts != 2 || i.Silenced != 1 || !i.Since.Equal(start.Add(time.Minute)) || i.Summary != "echo 1.1.0 is bad" {
		t.Errorf("of the release: %+v", i)
	}
	want := []paging.IncidentSilence{{By: "ann", Comment: "known problem", Ends: start}}
	if diff := cmp.Diff(want, i.Silences); diff != "" {
		t.Error(diff)
	}
}

// TestExampleLabels: the scope of a rule decides which labels of a subject its alert has.
func TestExampleLabels(t *testing.T) {
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		t.Fatal(err)
	}
	if rule := paging.FindRule(rules.Groups, slo.AlertRelease, ""); rule == nil || rule.Labels["severity"] != "page" {
		t.Fatalf("the rule that pages is not preferred: %v", rule)
	}
	if rule := paging.FindRule(rules.Groups, "NoSuchAlert", ""); rule != nil {
		t.Errorf("found %v", rule)
	}
	subject := paging.Subject{Operator: echo, SLI: "available", Version: "1.1.0", Cluster: "a"}
	about := func(labels map[string]string) []string {
		return []string{labels["operator"], labels["sli"], labels["version"], labels["cluster"]}
	}
	for name, test := range map[string]struct {
		alert, severity string
		want            []string
		value           float64
	}{
		"a release":    {slo.AlertRelease, "page", []string{"echo", "available", "1.1.0", ""}, 14.4},
		"an operator":  {slo.AlertOperator, "page", []string{"echo", "available", "", "a"}, 14.4},
		"a cluster":    {slo.AlertCluster, "page", []string{"", "", "", "a"}, 3},
		"the pipeline": {slo.AlertRulesNotLoaded, "ticket", []string{"", "", "", ""}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			rule := paging.FindRule(rules.Groups, test.alert, test.severity)
			if rule == nil {
				t.Fatal("there is no such rule")
			}
			labels, err := paging.BuildLabels(rule, subject)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, about(labels)); diff != "" || labels["alertname"] != test.alert {
				t.Errorf("%s of %v", diff, labels)
			}
			if got := paging.ChooseExampleValue(rule); got != test.value {
				t.Errorf("value %v, want %v", got, test.value)
			}
			wantError := map[bool]error{true: paging.ErrNoOperator}[test.want[0] != ""]
			if _, err := paging.BuildLabels(rule, paging.Subject{Cluster: "a"}); !errors.Is(err, wantError) {
				t.Errorf("without an operator: %v", err)
			}
			wantError = map[bool]error{true: paging.ErrNoCluster}[test.want[3] != ""]
			if _, err := paging.BuildLabels(rule, paging.Subject{Operator: echo}); !errors.Is(err, wantError) {
				t.Errorf("without a cluster: %v", err)
			}
		})
	}
}
