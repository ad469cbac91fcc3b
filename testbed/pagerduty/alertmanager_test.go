// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// options are of an Alertmanager that pages the service payments, with a group for each alertname.
func options(t *testing.T, s *pagerduty.Server, groupInterval time.Duration) alertmanager.Options {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), build.Alertmanager)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "routing-key")
	if err := os.WriteFile(keyFile, []byte(keyOf(t, s, "payments")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Appendf(nil, `
route: {receiver: pager, group_by: [alertname], group_wait: 100ms, group_interval: %s}
receivers:
- name: pager
  pagerduty_configs:
  - url: %q
    routing_key_file: %q
    description: '{{ .GroupLabels.alertname }} on {{ len .Alerts.Firing }} clusters'
    severity: '{{ .CommonLabels.severity }}'
    component: '{{ .CommonLabels.operator }}'
    links: [{href: 'https://example.com/runbook', text: Runbook}]
`, groupInterval, s.URL()+pagerduty.EnqueuePath, keyFile)
	return alertmanager.Options{Dir: t.TempDir(), Binary: paths[build.Alertmanager], Config: config}
}

// alerts are of a release that fails on some clusters.
func alerts(name string, ends time.Time, clusters ...string) []alertmanager.PostableAlert {
	var out []alertmanager.PostableAlert
	for _, cluster := range clusters {
		out = append(out, alertmanager.PostableAlert{EndsAt: ends, Labels: map[string]string{
			"alertname": name, "cluster": cluster, "operator": "web", "severity": "critical",
		}})
	}
	return out
}

// fire and resolve post alerts to each server, as Prometheus does.
func fire(t *testing.T, name string, clusters []string, servers ...*alertmanager.Server) {
	t.Helper()
	postTo(t, alerts(name, time.Now().Add(time.Hour), clusters...), servers)
}

func resolve(t *testing.T, name string, clusters []string, servers ...*alertmanager.Server) {
	t.Helper()
	postTo(t, alerts(name, time.Now(), clusters...), servers)
}

func postTo(t *testing.T, posted []alertmanager.PostableAlert, servers []*alertmanager.Server) {
	t.Helper()
	for _, server := range servers {
		if err := server.Post(t.Context(), posted...); err != nil {
			t.Fatal(err)
		}
	}
}

// sum returns the sum of all series of one of Alertmanager's counters.
func sum(t *testing.T, server *alertmanager.Server, name string) int {
	t.Helper()
	total, err := server.Counter(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return int(total)
}

// summary looks up an incident by its alert's name, which its summary begins with.
func summary(l pagerduty.Ledger, name string) pagerduty.Incident {
	for _, i := range l.Incidents {
		if strings.HasPrefix(i.Last.Payload.Summary, name+" ") {
			return i
		}
	}
	return pagerduty.Incident{}
}

// waitFor polls until the alert's incident is in a state with a summary.
func waitFor(t *testing.T, s *pagerduty.Server, name string, state pagerduty.State, clusters int) {
	t.Helper()
	want := fmt.Sprintf("%s on %d clusters", name, clusters)
	eventually(t, s, fmt.Sprintf("%q is %s", want, state), func(l pagerduty.Ledger) bool {
		i := summary(l, name)
		return i.State == state && i.Last.Payload.Summary == want
	})
}

// once finds that each of the alerts was one incident, which is resolved, and nothing else was sent.
func once(t *testing.T, s *pagerduty.Server, names ...string) {
	t.Helper()
	ledger := s.Ledger()
	for _, name := range names {
		if i := summary(ledger, name); i.Opened != 1 || i.Resolved != 1 || i.State != pagerduty.Resolved {
			t.Errorf("%s was opened %d times and resolved %d times, and is %q; want once", name, i.Opened, i.Resolved,
				i.State)
		}
	}
	if len(ledger.Incidents) != len(names) || len(ledger.Anomalies) > 0 || ledger.Repeated > 0 {
		t.Errorf("want %d incidents, no anomalies, nothing repeated", len(names))
	}
	if t.Failed() {
		var out strings.Builder
		_ = ledger.Print(&out)
		t.Log(out.String())
	}
}

// TestReplicas has two Alertmanagers with one configuration notify of the same alerts, and ends one of them in the
// middle: in one case the first, which notifies at once; in the other the second, which waits for the first and
// notifies of what that one did not.
func TestReplicas(t *testing.T) {
	for name, killed := range map[string]int{"none ends": -1, "first ends": 0, "second ends": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			opts := options(t, s, 20*time.Second)
			opts.Args = []string{"--cluster.peer-timeout", "5s", "--cluster.gossip-interval", "50ms"}
			replicas, err := alertmanager.StartReplicas(t.Context(), 2, opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range replicas {
				t.Cleanup(func() { r.Stop(context.Background()) })
			}
			clusters := []string{"c1", "c2", "c3"}
			fire(t, "Bad", clusters, replicas...)
			waitFor(t, s, "Bad", pagerduty.Open, 3)
			second := replicas[1]
			afterDecision(t, s, func() {}, second)

			alive := replicas
			if killed >= 0 {
				replicas[killed].Kill()
				alive = []*alertmanager.Server{replicas[1-killed]}
			}
			clusters = append(clusters, "c4")
			fire(t, "Bad", clusters, alive...)
			waitFor(t, s, "Bad", pagerduty.Open, 4)
			if killed >= 0 {
				second = replicas[killed] // who comes last waits for the others
				if err := second.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				fire(t, "Bad", clusters, replicas...)
			}
			afterDecision(t, s, func() {}, second)
			afterDecision(t, s, func() { resolve(t, "Bad", clusters, replicas...) }, replicas...)
			waitFor(t, s, "Bad", pagerduty.Resolved, 4)
			once(t, s, "Bad")
			if i := summary(s.Ledger(), "Bad"); i.Updates != 1 {
				t.Errorf("%d updates, want 1", i.Updates)
			}
		})
	}
}

// afterDecision calls post, and returns when each of the replicas has decided once more whether to notify of its group.
// Until the next time it notifies of nothing.
//
// What is posted while a replica waits for the others is not in what it decides on. If the others notify of a resolved
// group meanwhile, it opens the incident again. So the test posts the end of alerts right after a decision.
func afterDecision(t *testing.T, s *pagerduty.Server, post func(), replicas ...*alertmanager.Server) {
	t.Helper()
	const decisions = "alertmanager_nflog_queries_total"
	before := make([]int, len(replicas))
	for i, r := range replicas {
		before[i] = sum(t, r, decisions)
	}
	post()
	for i, r := range replicas {
		eventually(t, s, fmt.Sprintf("replica %d has decided", i), func(pagerduty.Ledger) bool {
			return sum(t, r, decisions) > before[i]
		})
	}
}
