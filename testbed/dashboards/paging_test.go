// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// alwaysFiring are three alerts in a group that is named as ours are.
const alwaysFiring = `
groups:
- name: bellwether-test
  interval: 1s
  rules:
  - {alert: Arrives, expr: vector(1)}
  - {alert: Refused, expr: vector(1)}
  - {alert: Silenced, expr: vector(1)}
`

// TestDeliveryOfARealAlertmanager runs the queries about Prometheus and Alertmanager on what these export themselves:
// one alert arrives, one is refused by its receiver, and one is silenced.
func TestDeliveryOfARealAlertmanager(t *testing.T) {
	paths, err := build.Ensure(t.Context(), t.Output(), build.Prometheus, build.Alertmanager)
	if err != nil {
		t.Fatal(err)
	}
	hooks := alertmanager.NewWebhooks()
	t.Cleanup(hooks.Close)
	refuses := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "wrong key", http.StatusForbidden)
	}))
	t.Cleanup(refuses.Close)
	manager, err := alertmanager.Start(t.Context(), alertmanager.Options{
		Dir: t.TempDir(), Binary: paths[build.Alertmanager], Config: fmt.Appendf(nil, `
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 100ms
  group_interval: 1s
  repeat_interval: 2s
  routes: [{receiver: refuses, matchers: ['alertname="Refused"']}]
receivers:
- {name: hook, webhook_configs: [{url: "%s/"}]}
- {name: refuses, webhook_configs: [{url: "%s/"}]}
`, hooks.URL(), refuses.URL),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Stop(context.Background()) })
	silence(t, manager, "Silenced")
	server, err := prometheus.Start(t.Context(), prometheus.Options{
		Dir: t.TempDir(), Binary: paths[build.Prometheus], Rules: map[string][]byte{"test.yaml": []byte(alwaysFiring)},
		Interval: time.Second, Self: true, Alertmanagers: []string{manager.Address()},
		// What fires before Prometheus has found its Alertmanagers is sent again after this.
		Args: []string{"--rules.alert.resend-delay=1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(context.Background()) })

	expand := strings.NewReplacer("$__rate_interval", "10s")
	tried := 0
	for _, q := range pages(t)["bellwether-paging"].queries() {
		if !strings.Contains(q.promql, "alertmanager") && !strings.Contains(q.promql, "prometheus_") {
			continue
		}
		tried++
		eventually(t, server, q.where, expand.Replace(q.promql))
	}
	if tried < 15 {
		t.Errorf("only %d queries are about delivery", tried)
	}
	for _, promql := range []string{
		`sum(increase(alertmanager_notifications_failed_total{reason="authError"}[15m])) > 0`,
		`max(alertmanager_alerts{state="suppressed"}) == 1`, `max(alertmanager_silences{state="active"}) == 1`,
	} {
		eventually(t, server, "what was arranged", promql)
	}
}

// silence silences an alert for an hour.
func silence(t *testing.T, manager *alertmanager.Server, alertname string) {
	t.Helper()
	now := time.Now()
	body := fmt.Sprintf(`{"matchers":[{"name":"alertname","value":%q,"isRegex":false,"isEqual":true}],"startsAt":%q,`+
		`"endsAt":%q,"createdBy":"test","comment":"test"}`, alertname, now.Format(time.RFC3339),
		now.Add(time.Hour).Format(time.RFC3339))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, manager.URL()+"/api/v2/silences",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("silence: %s", response.Status)
	}
}

// eventually waits until a query returns something.
func eventually(t *testing.T, server *prometheus.Server, where, promql string) {
	t.Helper()
	testenv.Eventually(t, 5*time.Minute, where, func(ctx context.Context) error {
		found, err := server.Query(ctx, promql, time.Time{})
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%w: %s", errNothing, promql)
		}
		return err
	})
}

var errNothing = errors.New("nothing is returned")
