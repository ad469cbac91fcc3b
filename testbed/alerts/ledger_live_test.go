// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// pagingConfig is the hub's configuration of a policy that pages a service, with its secrets as files.
func pagingConfig(t *testing.T, events *pagerduty.Server, hooks *alertmanager.Webhooks) string {
	t.Helper()
	policy := paging.Policy{Namespace: "bellwether-system", Name: "platform",
		Operators: []paging.Operator{{Namespace: "fleet", Name: "echo"}}, Spec: v1alpha1.PagingPolicySpec{
			Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterCritical,
			Pages:     v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Tickets:   &v1alpha1.TicketTarget{Receivers: []string{"tracker"}},
			Heartbeat: &v1alpha1.HeartbeatTarget{}, Receivers: []v1alpha1.PagingReceiver{
				{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{URL: events.URL() + pagerduty.EnqueuePath}},
				{Name: "tracker", Webhook: &v1alpha1.WebhookReceiver{}}}}}
	key, err := events.RoutingKey("platform")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, use := range policy.Secrets() {
		value := map[string]string{"receivers[oncall]": key, "receivers[tracker]": hooks.URL() + toTickets,
			"heartbeat": hooks.URL() + toHeartbeat}[use.Field]
		if err := os.WriteFile(filepath.Join(folder, use.File), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := paging.BuildConfig([]paging.Policy{policy}, folder)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOneReleaseIsOneIncident breaks a release on 3 clusters, and then one on 200, with a real Prometheus and a real
// Alertmanager in between: the ledger has one incident of each. One cluster that fails alone makes a ticket.
func TestOneReleaseIsOneIncident(t *testing.T) {
	t.Parallel() // it waits most of the time
	clusters := map[string]*agent{"alone": {version: "1.1.0", csv: "1"}, "good": {version: "1.0.0", csv: "1"}}
	broken := map[string][]string{}
	for version, n := range map[string]int{"2.0.0": 3, "3.0.0": 200} {
		for i := range n {
			name := fmt.Sprintf("of-%s-%d", version, i)
			clusters[name] = &agent{version: version, csv: "1"}
			broken[version] = append(broken[version], name)
		}
	}
	f := newFixture(t, clusters)
	hooks := alertmanager.NewWebhooks()
	t.Cleanup(hooks.Close)
	events, err := pagerduty.Start(t.Context(), pagerduty.Options{Services: []string{"platform"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Close)
	l, _ := startNotifying(t, f, pagingConfig(t, events, hooks), hooks)
	l.eventually("every cluster has slices", func(ctx context.Context) error {
		n, err := l.one(ctx, `count(bellwether:sli_bad:bool{sli="csv"} == 0)`)
		if err == nil && int(n) != len(clusters) {
			return fmt.Errorf("have %v, want %d", n, len(clusters))
		}
		return err
	})
	f.change(bad, "alone")
	for incidents, version := range []string{"2.0.0", "3.0.0"} {
		f.change(bad, broken[version]...)
		l.ledger(events, "the release pages", incidents+1, incidents)
		// Prometheus crashes in the middle of each incident.
		l.Kill()
		if err := l.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.alive(hooks, 15)
		l.ledger(events, "nothing new after the crash", incidents+1, incidents)
		f.change(good, broken[version]...)
		l.ledger(events, "it is resolved", incidents+1, incidents+1)
	}
	f.change(good, "alone")
	l.alive(hooks, 60)
	l.ledger(events, "nothing comes after recovery", 2, 2)
	for _, i := range events.Ledger().Incidents {
		if i.Opened != 1 || i.Resolved != 1 || i.Last.Payload.Component != "echo" {
			t.Errorf("incident %s of %s was opened %d times and resolved %d times", i.Last.Payload.Summary,
				i.Last.Payload.Component, i.Opened, i.Resolved)
		}
	}
	if len(received(hooks, toTickets)) == 0 {
		t.Error("there is no ticket about the cluster that failed alone")
	}
}

// ledger waits until so many incidents were opened and resolved, and no more.
func (l live) ledger(events *pagerduty.Server, what string, opened, resolved int) {
	l.t.Helper()
	l.eventually(what, func(context.Context) error {
		ledger := events.Ledger()
		ended := 0
		for _, i := range ledger.Incidents {
			ended += i.Resolved
		}
		if ledger.Pages() == opened && ended == resolved {
			return nil
		}
		var out bytes.Buffer
		_ = ledger.Print(&out)
		return fmt.Errorf("%d pages and %d resolved, want %d and %d:\n%s", ledger.Pages(), ended, opened, resolved,
			out.String())
	})
}
