// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// present are rules of a Prometheus in which an alert fires now, and a budget is low now.
const present = `groups:
- name: present
  interval: 1s
  rules:
  - {record: "bellwether:rules_evaluated:timestamp", expr: time()}
  - {record: "bellwether:slo_budget_left:ratio", expr: vector(0.125), labels: {cluster: prod-1, operator: echo, operator_namespace: %[1]s, sli: available}}
  - {record: "bellwether:slo_budget_excluding:ratio", expr: vector(0.5), labels: {cluster: prod-1, operator: echo, operator_namespace: %[1]s, sli: available}}
  - {record: "bellwether:slo_budget_left:ratio", expr: vector(0.75), labels: {cluster: prod-2, operator: echo, operator_namespace: %[1]s, sli: available}}
  - {record: "bellwether:slo_budget_left:ratio", expr: vector(-1), labels: {cluster: prod-1, operator: echo, operator_namespace: elsewhere, sli: available}}
  - {alert: BellwetherHubDown, expr: vector(1), labels: {severity: page, scope: fleet}, annotations: {summary: There are no metrics of the hub, runbook_url: "https://runbooks.example.com/hub"}}
  - {alert: BellwetherHeartbeat, expr: vector(1), labels: {severity: heartbeat, scope: fleet}}
  - {alert: NodeDown, expr: vector(1), labels: {severity: page}}
`

// past is what the Prometheus recorded before: the rules were evaluated but for an hour, an alert fired twice, and a
// budget was lost since.
func past(now time.Time, namespace string) []prometheus.History {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	constant := func(v float64) func(time.Time) (float64, bool) {
		return func(time.Time) (float64, bool) { return v, true }
	}
	during := func(name string, labels map[string]string, value float64, from, to time.Duration) prometheus.History {
		return prometheus.History{Name: name, Labels: labels, From: ago(from), To: ago(to), Interval: 30 * time.Second,
			Value: constant(value)}
	}
	burn := map[string]string{"alertname": slo.AlertOperator, "alertstate": "firing", series.Severity: series.Page,
		series.Scope: series.ScopeOperator, series.OperatorNamespace: namespace, series.Operator: "echo",
		series.SLI: "available", series.Cluster: "prod-1"}
	budget := func(cluster string, of string) map[string]string {
		return map[string]string{series.Cluster: cluster, series.Operator: "echo", series.OperatorNamespace: of,
			series.SLI: "available"}
	}
	return []prometheus.History{
		during(series.RulesEvaluated, nil, 1, 14*time.Hour, 11*time.Hour),
		during(series.RulesEvaluated, nil, 1, 10*time.Hour, 0),
		{Name: "ALERTS", Labels: burn, From: ago(8 * time.Hour), To: ago(6 * time.Hour), Interval: 30 * time.Second,
			Value: func(at time.Time) (float64, bool) {
				return 1, at.Before(ago(7*time.Hour)) || at.After(ago(6*time.Hour+30*time.Minute))
			}},
		during(series.SLOBudgetLeft, budget("prod-1", namespace), 0.625, 13*time.Hour, 11*time.Hour),
		during(series.SLOBudgetLeft, budget("prod-2", namespace), 0.75, 13*time.Hour, 11*time.Hour),
		during(series.SLOBudgetLeft, budget("prod-1", "elsewhere"), 1, 13*time.Hour, 11*time.Hour),
	}
}

// silence makes one in Alertmanager, and returns its ID.
func silence(ctx context.Context, am *alertmanager.Server, by, comment, label, value string) (string, error) {
	now := time.Now().UTC()
	body, err := json.Marshal(map[string]any{"createdBy": by, "comment": comment, "startsAt": now,
		"endsAt":   now.Add(time.Hour),
		"matchers": []any{map[string]any{"name": label, "value": value, "isRegex": false, "isEqual": true}}})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, am.URL()+"/api/v2/silences",
		strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		ID string `json:"silenceID"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.ID == "" {
		return "", fmt.Errorf("create silence: %s, %w", response.Status, err)
	}
	return answer.ID, nil
}

// expire ends a silence.
func expire(ctx context.Context, am *alertmanager.Server, id string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, am.URL()+"/api/v2/silence/"+id, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("delete silence: %s", response.Status)
	}
	return nil
}

// onCall starts a Prometheus with a past and an alert that fires, and the Alertmanager that it notifies.
func onCall(t *testing.T, namespace string) (*prometheus.Server, *alertmanager.Server) {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), build.Prometheus, build.Promtool, build.Alertmanager)
	must(t, err)
	am, err := alertmanager.Start(t.Context(), alertmanager.Options{Dir: t.TempDir(), Binary: paths[build.Alertmanager],
		Config: []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")})
	must(t, err)
	t.Cleanup(func() { am.Stop(context.Background()) })
	dir := t.TempDir()
	must(t, prometheus.Backfill(t.Context(), paths[build.Promtool], dir, past(time.Now(), namespace)))
	p, err := prometheus.Start(t.Context(), prometheus.Options{Dir: dir, Binary: paths[build.Prometheus],
		Rules: map[string][]byte{"present.yaml": fmt.Appendf(nil, present, namespace)}, Lookback: time.Minute,
		Alertmanagers: []string{am.Address()}})
	must(t, err)
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p, am
}

// TestHandover writes the report of a shift with a real hub, Prometheus and Alertmanager, and real silences.
func TestHandover(t *testing.T) {
	h := newHub(t)
	halted := h.rollout(t, v1alpha1.RolloutHalted, v1alpha1.WaveUpdating)
	for kind, status := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionFalse,
		v1alpha1.ConditionStalled: metav1.ConditionTrue} {
		halted.Status.Conditions = append(halted.Status.Conditions, metav1.Condition{Type: kind, Status: status,
			Reason: v1alpha1.ReasonHalted, Message: "too many failed", LastTransitionTime: metav1.Now()})
	}
	must(t, h.Status().Update(t.Context(), halted))
	p, am := onCall(t, h.namespace)
	_, err := silence(t.Context(), am, "anna", "the hub is moved", "alertname", slo.AlertHubDown)
	must(t, err)
	ended, err := silence(t.Context(), am, "ben", "a short test", "severity", "ticket")
	must(t, err)
	must(t, expire(t.Context(), am, ended))
	_, err = silence(t.Context(), am, "cleo", "of others", "alertname", "NodeDown")
	must(t, err)

	args := []string{"oncall", "handover", "-o", "markdown", "--prometheus", p.URL(), "--alertmanager", am.URL()}
	var got result
	missing := func() string {
		got = h.run(t, args...)
		for _, want := range []string{
			"### Firing alerts: 1 (1 page, 0 tickets)\n\n- **page** BellwetherHubDown: There are no metrics of the " +
				"hub, since ",
			" Hidden by a silence of anna until ", " Runbook: https://runbooks.example.com/hub\n",
			"### Rollouts: 1 (not progressing: 1)\n\n- **Failed** " + h.namespace +
				"/echo: rollout echo-1 to 1.1.0 is Halted: ",
			"### Low error budgets: 1\n\n- " + h.namespace + "/echo, SLI available: 12 % left (50 % left without " +
				"excluded time) on cluster prod-1.\n",
			"### Silences: 1 (hiding firing alerts: 1)\n\n- **hides 1 firing alert** (BellwetherHubDown), by anna, " +
				"until ",
			": the hub is moved. It matches `alertname=\"BellwetherHubDown\"`.\n",
			"none of Bellwether's alerts: 1 silence.\n",
			"### Alerts that ended: 1 (1 page, 0 tickets)\n\n- page BellwetherOperatorSLOBurn: " + h.namespace +
				"/echo, SLI available, cluster prod-1, from ",
			"; fired as 2 pages.\n", "Prometheus did not evaluate Bellwether's rules from ",
			h.namespace + "/echo, SLI available: lost 50 % of its budget, 12 % left (50 % left without excluded " +
				"time), on cluster prod-1.\n",
			"### Silences that ended: 1\n\n- by ben, until ",
		} {
			if !strings.Contains(got.out, want) {
				return want
			}
		}
		return ""
	}
	// Prometheus evaluates its rules and notifies meanwhile.
	testenv.Eventually(t, patience, "the report is complete", func(context.Context) error {
		if want := missing(); want != "" {
			return fmt.Errorf("%q is not in the report, which ended with %d: %s\n%s", want, got.code, got.err, got.out)
		}
		return nil
	})
	if gaps := strings.Count(got.out, "did not evaluate"); gaps != 1 {
		t.Errorf("%d times without rules are reported, want 1:\n%s", gaps, got.out)
	}
	if got.code != 0 || strings.Contains(got.out, "Not known") || strings.Contains(got.out, "elsewhere") ||
		strings.Contains(got.out, "Heartbeat") || strings.Contains(got.out, "NodeDown") {
		t.Errorf("it ended with %d: %s\n%s", got.code, got.err, got.out)
	}

	am.Stop(t.Context())
	got = h.run(t, args...)
	const unknown = "### Silences\n\n**Not known:** read the silences of Alertmanager at"
	if got.code != 1 || !strings.Contains(got.out, unknown) ||
		!strings.Contains(got.err, "the report is not complete: cannot read Alertmanager at "+am.URL()) {
		t.Errorf("without Alertmanager it ended with %d: %s\n%s", got.code, got.err, got.out)
	}
}
