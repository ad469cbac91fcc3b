// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// fleetPolicy routes everything to a service of PagerDuty, and tickets to a webhook.
func fleetPolicy() *v1alpha1.PagingPolicy {
	return &v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: "platform"},
		Spec: v1alpha1.PagingPolicySpec{Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterCritical,
			Pages:   v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Tickets: &v1alpha1.TicketTarget{Receivers: []string{"tracker"}},
			Heartbeat: &v1alpha1.HeartbeatTarget{URL: v1alpha1.SecretKey{
				Name: "heartbeat", Key: "url"}},
			Receivers: []v1alpha1.PagingReceiver{
				{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{RoutingKey: v1alpha1.SecretKey{
					Name: "pagerduty", Key: "key"}}},
				{
					Name:    "tracker",
					Webhook: &v1alpha1.WebhookReceiver{URL: v1alpha1.SecretKey{Name: "tracker", Key: "url"}},
				},
			},
		}}
}

func operator(namespace, name string) *v1alpha1.ManagedOperator {
	return &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wants fails the test unless a command ended with this exit code, and printed all words.
func wants(t *testing.T, r clitest.Result, code int, words ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("it ended with %d, want %d:\n%s%s", r.Code, code, r.Out, r.Err)
	}
	for _, word := range words {
		if !strings.Contains(r.Out+r.Err, word) {
			t.Errorf("%q is missing in:\n%s%s", word, r.Out, r.Err)
		}
	}
}

const teamPolicy = `apiVersion: bellwether.dev/v1alpha1
kind: PagingPolicy
metadata: {name: team, namespace: payments}
spec:
  operators: [ledger, missing]
  pages: {receivers: [oncall]}
  receivers: [{name: oncall, pagerDuty: {routingKey: {name: pagerduty, key: key}}}]
`

func TestLint(t *testing.T) {
	h := clitest.NewHub(fleetPolicy(), operator("payments", "ledger"), operator("tools", "echo"))
	wants(t, h.Run(t, "page", "lint"), 0, "No findings. 1 PagingPolicy object, 2 operators")

	changed := h.Run(t, "page", "lint", file(t, teamPolicy))
	wants(t, changed, 0, "warning: payments/team: there is no operator missing in namespace payments",
		"warning: incidents about operator payments/ledger get another key")
	if strings.Contains(changed.Out, "tools/echo") {
		t.Errorf("an operator is named whose keys stay:\n%s", changed.Out)
	}
	wants(
		t,
		h.Run(t, "page", "lint", file(t, strings.Replace(teamPolicy, "spec:", "spec:\n  scope: Fleet", 1))),
		1,
		"error: bellwether-system/platform: PagingPolicy team has the scope Fleet too",
		"no PagingPolicy with the scope Fleet",
	)
	wants(t, h.Run(t, "page", "lint", file(t, strings.Replace(teamPolicy, "pages:", "pagse:", 1))), 1, "pagse")
	wants(t, h.Run(t, "page", "lint", file(t, "kind: ConfigMap\n")), 1, "has no PagingPolicy")
	wants(t, h.Run(t, "page", "lint", file(t, "kind: ConfigMap\n---\nkind: A\nspec: b: c\n")), 1, "line 4")

	for from, to := range map[string]string{
		"[oncall]":   "[oncall, typo]",
		"routingKey": "url: 'https:///x', routingKey",
		"  pages:": "  tickets: {receivers: [oncall], hours: {start: '09:00', end: '17:00'}}\n" +
			"  pages:",
		"  receiver": "  heartbeat: {url: {name: a, key: b}}\n  receiver",
	} {
		wrong := strings.Replace(teamPolicy, from, to, 1)
		wants(t, h.Run(t, "page", "lint", file(t, wrong)), 1, "error: payments/team:")
	}

	applied := fleetPolicy()
	applied.Status.Configuration = &v1alpha1.PagingConfiguration{Kind: "Secret", Namespace: "bellwether-system"}
	elsewhere := strings.Replace(teamPolicy, "spec:", "spec:\n  scope: Fleet", 1)
	elsewhere = strings.Replace(elsewhere, "  operators: [ledger, missing]\n", "", 1)
	wants(t, clitest.NewHub(applied).Run(t, "page", "lint", file(t, elsewhere)), 1,
		"error: payments/team: ", "create it there, or use the scope Namespace")
	wants(t, clitest.NewHub(applied).Run(t, "page", "lint", "-o", "json"), 0, "[]")

	empty := clitest.NewHub(operator("tools", "echo"))
	wants(t, empty.Run(t, "page", "lint"), 1, "no PagingPolicy with the scope Fleet")
}

func TestPreview(t *testing.T) {
	h := clitest.NewHub(fleetPolicy(), operator("payments", "ledger"))
	wants(
		t,
		h.Run(t, "page", "preview", "BellwetherReleaseSLOBurn", "--operator", "payments/ledger", "--release", "1.1.0"),
		0,
		"bellwether-system/platform/pages",
		"pagerduty",
		"critical",
		"payments/ledger burns its available budget 14.4 times too fast in version 1.1.0",
		"BellwetherReleaseSLOBurn.md",
	)
	wants(
		t,
		h.Run(
			t,
			"page",
			"preview",
			"BellwetherOperatorSLOBurn",
			"--operator",
			"payments/ledger",
			"--cluster",
			"prod-eu",
		),
		0,
		"bellwether-system/platform/tickets",
		"webhook",
		"on cluster prod-eu",
	)
	wants(
		t,
		h.Run(t, "page", "preview", "BellwetherOperatorSLOBurn", "--operator", "payments/ledger"),
		1,
		"set --cluster",
	)
	wants(t, h.Run(t, "page", "preview", "BellwetherOperatorSLOBurn", "--operator", "payments/nobody"), 1,
		`no operator "payments/nobody"`)
	wants(t, h.Run(t, "page", "preview", "Nothing"), 1, `there is no alert "Nothing"`, "BellwetherClusterFailing")
	wants(t, h.Run(t, "page", "preview", "BellwetherHubDown", "--severity", "ticket"), 1, "leave out --severity")

	asJSON := h.Run(t, "page", "preview", "BellwetherClusterFailing", "--cluster", "prod-eu", "-o", "json")
	wants(t, asJSON, 0)
	var incidents []struct {
		DedupKey string
		Events   []paging.Event
	}
	if err := json.Unmarshal([]byte(asJSON.Out), &incidents); err != nil {
		t.Fatal(err)
	}
	if len(incidents) != 1 || len(incidents[0].Events) != 1 || incidents[0].Events[0].Details["cluster"] != "prod-eu" ||
		len(incidents[0].DedupKey) != 64 {
		t.Errorf("incidents %+v", incidents)
	}
}

// alertmanager starts a server with the responses of Alertmanager.
func alertmanager(t *testing.T, config string, alerts []map[string]any) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		now := time.Now().Format(time.RFC3339)
		switch r.URL.Path {
		case "/api/v2/status":
			_ = json.NewEncoder(w).Encode(map[string]any{
				"config": map[string]any{"original": config},
				"uptime": now,
				"cluster": map[string]any{
					"status": "disabled",
				},
				"versionInfo": map[string]any{"branch": "", "buildDate": "",
					"buildUser": "", "goVersion": "", "revision": "", "version": "0.34.2"},
			})
		case "/api/v2/alerts":
			for _, a := range alerts {
				a["startsAt"], a["endsAt"], a["updatedAt"], a["fingerprint"] = "2026-03-01T10:00:00Z", now, now, "a"
				a["receivers"] = []any{}
				silencedBy := []any{}
				if id := a["silence"]; id != nil {
					silencedBy = append(silencedBy, id)
				}
				a["status"] = map[string]any{
					"state":       "active",
					"silencedBy":  silencedBy,
					"inhibitedBy": []any{},
					"mutedBy":     []any{},
				}
			}
			_ = json.NewEncoder(w).Encode(alerts)
		case "/api/v2/silences":
			_ = json.NewEncoder(w).Encode([]map[string]any{{"id": "s1", "createdBy": "bellwether: anna",
				"comment": "disk is replaced (AlertSilence payments/disk)", "status": map[string]any{"state": "active"},
				"updatedAt": now, "startsAt": now, "endsAt": "2026-03-01T12:00:00Z", "matchers": []any{}}})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestExplain(t *testing.T) {
	policy := paging.ToPolicy(fleetPolicy())
	policy.Operators = []paging.Operator{{Namespace: "payments", Name: "ledger"}}
	config, err := paging.BuildConfig([]paging.Policy{policy}, "/etc/alertmanager/config")
	if err != nil {
		t.Fatal(err)
	}
	release := func(sli string) map[string]any {
		return map[string]any{
			"labels": map[string]string{
				"alertname":          "BellwetherReleaseSLOBurn",
				"severity":           "page",
				"scope":              "release",
				"operator_namespace": "payments",
				"operator":           "ledger",
				"version":            "1.1.0",
				"sli":                sli,
			},
			"annotations": map[string]string{
				"summary": "ledger burns its " + sli + " budget",
				"change":  "1.0.0 to 1.1.0",
			},
		}
	}
	heartbeat := map[string]any{
		"labels":      map[string]string{"alertname": "BellwetherHeartbeat", "severity": "heartbeat"},
		"annotations": map[string]string{},
	}
	server := alertmanager(t, string(config), []map[string]any{release("available"), release("csv"), heartbeat})
	h := clitest.NewHub()
	list := h.Run(t, "page", "explain", "--alertmanager", server.URL)
	wants(t, list, 0, "KEY", "pagerduty", "ledger burns its available budget")
	if got := strings.Count(list.Out, "\n"); got != 2 {
		t.Errorf("%d lines, want a heading and 1 incident:\n%s", got, list.Out)
	}
	key := strings.Fields(strings.Split(list.Out, "\n")[1])[0]
	wants(t, h.Run(t, "page", "explain", key, "--alertmanager", server.URL), 0, "1.0.0 to 1.1.0", "payments/ledger",
		"(and 1 more)", "bellwether-system/platform/pages")
	wants(t, h.Run(t, "page", "explain", "ffffffffffff", "--alertmanager", server.URL), 1, "no open incident",
		"bellwether page explain")
	wants(t, h.Run(t, "page", "explain"), 1, "no Alertmanager address")
	silenced := release("csv")
	silenced["silence"] = "s1"
	hidden := alertmanager(t, string(config), []map[string]any{release("available"), silenced})
	wants(
		t,
		h.Run(t, "page", "explain", key, "--alertmanager", hidden.URL),
		0,
		"Nobody is notified of 1 of its 2 alerts",
		"silenced by bellwether: anna until 2026-03-01T12:00:00Z: disk is replaced (AlertSilence payments/disk)",
	)
	none := alertmanager(t, string(config), []map[string]any{})
	wants(t, h.Run(t, "page", "explain", "--alertmanager", none.URL), 0, "No incident is open.")
}

// TestExplainWithPrometheusOperator uses the configuration of prometheus-operator: an alert passes the routes of each
// policy, and secrets are hidden.
func TestExplainWithPrometheusOperator(t *testing.T) {
	config := `
route:
  receiver: none
  group_by: [alertname]
  routes:
  - {receiver: tools/bellwether-team/nobody, matchers: ['alertname=~"Bellwether.+"'], continue: true}
  - {receiver: hub/bellwether-platform/pages, matchers: ['alertname=~"Bellwether.+"'], continue: true}
receivers:
- name: none
- name: tools/bellwether-team/nobody
- name: hub/bellwether-platform/pages
  pagerduty_configs: [{routing_key: <secret>, url: "https://events.pagerduty.com/v2/enqueue", description: text}]
  webhook_configs: [{url: <secret>}]
  slack_configs: [{api_url: <secret>}]
`
	server := alertmanager(t, config, []map[string]any{{
		"labels": map[string]string{"alertname": "BellwetherClusterFailing", "severity": "page",
			"cluster": "prod-eu"},
		"annotations": map[string]string{"summary": "prod-eu fails"},
	}})
	h := clitest.NewHub()
	list := h.Run(t, "page", "explain", "--alertmanager", server.URL)
	wants(t, list, 0, "prod-eu fails")
	key := strings.Fields(strings.Split(list.Out, "\n")[1])[0]
	one := h.Run(t, "page", "explain", key, "--alertmanager", server.URL)
	wants(t, one, 0, "hub/bellwether-platform/pages", "pagerduty")
	if strings.Contains(one.Out, "Nobody is notified") {
		t.Errorf("somebody is notified, and it says that nobody is:\n%s", one.Out)
	}
}

func TestRunbook(t *testing.T) {
	h := clitest.NewHub()
	wants(t, h.Run(t, "page", "runbook", "BellwetherHubDown"), 0, "BellwetherHubDown")
	wants(t, h.Run(t, "page", "runbook", "Nothing"), 1, `there is no alert "Nothing"`, "BellwetherHubDown")
}
