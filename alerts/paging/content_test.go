// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	amalert "github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// burning returns an alert about an SLI of a release, with the annotations of its rule.
func burning(op paging.Operator, severity, sli, burn string) paging.Firing {
	labels := alert(op, slo.AlertRelease, severity, "release", "version", "1.1.0")
	labels["sli"] = sli
	if sli == "" {
		delete(labels, "sli")
	}
	annotations := map[string]string{"summary": severity + " " + sli + " at " + burn, "description": "about " + sli,
		"clusters": "of " + sli, "runbook_url": "https://example.com/#" + sli}
	if burn != "" {
		annotations["burn"] = burn
	}
	return paging.Firing{Labels: labels, Annotations: annotations, Since: time.Unix(0, 0)}
}

// held is an alert that is held.
func held(of paging.Firing) paging.Firing {
	of.Annotations["held_until"] = "2026-11-28 03:25 UTC"
	return of
}

// TestWorstSLIFirst has incidents of several SLIs, of which the worst one is what they are about.
func TestWorstSLIFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		alerts []paging.Firing
		first  string
	}{
		"burn rates are numbers": {[]paging.Firing{burning(others, "page", "available", "14.4"),
			burning(others, "page", "csv", "1000.0"), burning(others, "page", "catalog", "200.0")}, "csv"},
		"a page before tickets": {[]paging.Firing{burning(others, "ticket", "available", "100.0"),
			burning(others, "page", "csv", "14.4"), burning(others, "ticket", "redundancy", "100.0")}, "csv"},
		"what burns before what is held": {[]paging.Firing{held(burning(others, "page", "available", "1000.0")),
			burning(others, "page", "csv", "14.4"), held(burning(others, "page", "catalog", "100.0"))}, "csv"},
		"a page that is held before tickets": {[]paging.Firing{burning(others, "ticket", "available", "100.0"),
			held(burning(others, "page", "csv", "14.4")), burning(others, "ticket", "redundancy", "100.0")}, "csv"},
		"a failed wave before its SLIs": {[]paging.Firing{burning(others, "page", "", ""),
			burning(others, "page", "available", "1000.0"), burning(others, "page", "csv", "99.0")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			router, err := paging.NewRouter(configOf(t, fleet(), tenant("payments", others)))
			if err != nil {
				t.Fatal(err)
			}
			events, err := router.Preview(tc.alerts)
			if err != nil || len(events) != 1 {
				t.Fatalf("%d incidents, %v", len(events), err)
			}
			e := events[0]
			summary := ""
			for _, a := range tc.alerts {
				if a.Labels["sli"] == tc.first {
					summary = a.Annotations["summary"]
				}
			}
			if want := summary + " (and 2 more)"; e.Summary != want {
				t.Errorf("summary %q, want %q", e.Summary, want)
			}
			lines := strings.Split(e.Details["firing"], "\n")
			if lines[0] != summary || len(lines) != 3 {
				t.Errorf("the alerts are %q, want first %q, and each once", lines, summary)
			}
			if e.Details["description"] != "about "+tc.first || e.Details["clusters"] != "of "+tc.first ||
				e.Links["Runbook"] != "https://example.com/#"+tc.first {
				t.Errorf("description, clusters or link are of another SLI: %v %v", e.Details, e.Links)
			}
		})
	}
}

// TestTicketsSaySo reads the titles of notifications to chats and to PagerDuty:
// a ticket is called a ticket, even if its rule has the severity page.
func TestTicketsSaySo(t *testing.T) {
	about := func(op paging.Operator, severity, scope, which string) paging.Firing {
		name, label := slo.AlertOperator, "cluster"
		if scope == "release" {
			name, label = slo.AlertRelease, "version"
		}
		return paging.Firing{Labels: alert(op, name, severity, scope, label, which), Since: time.Unix(0, 0),
			Annotations: map[string]string{"summary": "it burns"}}
	}
	for name, tc := range map[string]struct {
		alert       paging.Firing
		chat, title string
	}{
		"one cluster":                        {about(echo, "page", "operator", "a"), "[ticket, firing] it burns", ""},
		"one cluster of a critical operator": {about(critical, "page", "operator", "a"), "", "it burns"},
		"a release":                          {about(echo, "page", "release", "1"), "", "it burns"},
		"a slow release":                     {about(echo, "ticket", "release", "1"), "[ticket, firing] it burns", ""},
		"one cluster, without tickets":       {about(others, "page", "operator", "a"), "", "Ticket: it burns"},
		"a release, without tickets":         {about(others, "page", "release", "1"), "", "it burns"},
		"a slow release, without tickets":    {about(ledger, "ticket", "release", "1"), "", "Ticket: it burns"},
		"one critical one, without tickets":  {about(ledger, "page", "operator", "a"), "", "it burns"},
	} {
		t.Run(name, func(t *testing.T) {
			text := configOf(t, fleet(echo, critical), tenant("payments", others, ledger))
			router, err := paging.NewRouter(text)
			if err != nil {
				t.Fatal(err)
			}
			events, err := router.Preview([]paging.Firing{tc.alert})
			if err != nil {
				t.Fatal(err)
			}
			title := ""
			for _, e := range events {
				title = e.Summary
			}
			if got := chatTitle(t, text, router, tc.alert); title != tc.title || got != tc.chat {
				t.Errorf("incident %q, chat %q; want %q, %q", title, got, tc.title, tc.chat)
			}
		})
	}
}

// chatTitle is what Slack is sent, if anything is.
func chatTitle(t *testing.T, text []byte, router *paging.Router, of paging.Firing) string {
	t.Helper()
	loaded, err := config.Load(string(text))
	if err != nil {
		t.Fatal(err)
	}
	templates, err := template.FromGlobs(nil)
	if err != nil {
		t.Fatal(err)
	}
	templates.ExternalURL = &url.URL{}
	set := func(from map[string]string) model.LabelSet {
		out := model.LabelSet{}
		for name, value := range from {
			out[model.LabelName(name)] = model.LabelValue(value)
		}
		return out
	}
	for _, in := range router.Incidents(of.Labels) {
		data := templates.Data(in.Receiver, set(in.Labels), nil, "", &amalert.Alert{Alert: model.Alert{
			Labels: set(of.Labels), Annotations: set(of.Annotations), StartsAt: of.Since}})
		for _, r := range loaded.Receivers {
			for _, slack := range r.SlackConfigs {
				if r.Name != in.Receiver {
					continue
				}
				out, err := templates.ExecuteTextString(slack.Title, data)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
		}
	}
	return ""
}

// TestNotified checks that the notified severity of alerts corresponds to the routes.
func TestNotified(t *testing.T) {
	policies := []paging.Policy{fleet(echo, critical), tenant("payments", others, ledger)}
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"one cluster":                        {alert(echo, slo.AlertOperator, "page", "operator"), "ticket"},
		"one cluster of a critical operator": {alert(critical, slo.AlertOperator, "page", "operator"), "page"},
		"one cluster, without tickets":       {alert(others, slo.AlertOperator, "page", "operator"), "ticket"},
		"a release":                          {alert(echo, slo.AlertRelease, "page", "release"), "page"},
		"a slow release":                     {alert(critical, slo.AlertRelease, "ticket", "release"), "ticket"},
		"an operator that no policy has": {alert(paging.Operator{Namespace: "x", Name: "y"}, slo.AlertOperator, "page",
			"operator"), "page"},
	} {
		if got := paging.NotifiedSeverity(policies, tc.labels); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
