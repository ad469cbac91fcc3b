// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// TestOneReleaseIsOneIncident has a release that burns three SLIs, one after the other.
func TestOneReleaseIsOneIncident(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d Alertmanagers", replicas), func(t *testing.T) {
			t.Parallel()
			f := start(t, replicas)
			all := []alert{
				release(echo, "page", "reconcile"),
				release(echo, "page", "available"),
				release(echo, "page", "csv"),
			}
			f.fire(all[0])
			f.untilOpen(1)
			f.fire(all...)
			l := f.until("the incident has all SLIs", func(l pagerduty.Ledger) bool {
				return strings.Contains(l.Incidents[0].Last.Payload.Summary, "2 more")
			})
			got := l.Incidents[0].Last
			details := got.Payload.CustomDetails
			for name, want := range map[string]string{"operator": "tools/echo", "version": "echo 1.1.0",
				"clusters": "canary, prod-eu", "change": "1.0.0 to 1.1.0", "look": "bellwether rollout get echo-2",
				"num_firing": "3", "runbook": "https://example.com/runbook"} {
				if fmt.Sprint(details[name]) != want {
					t.Errorf("detail %s is %v, want %s", name, details[name], want)
				}
			}
			if got.Payload.Severity != "critical" || len(got.Links) != 1 || got.Links[0].Text != "Runbook" ||
				got.Payload.Component != "echo" || got.Payload.Group != "tools" {
				t.Errorf("the incident is %+v", got)
			}
			f.wantKey(all[0], l.Incidents[0].DedupKey)
			f.end(all[:2]...)
			f.end(all[2])
			f.wantOnce(f.untilResolved(1), 1)
		})
	}
}

// wantKey fails unless the key of an alert's incident is the one that PagerDuty got.
func (f *fixture) wantKey(a alert, key string) {
	f.t.Helper()
	if got := f.key(a); got != key {
		f.t.Errorf("the key of %v is %s, want %s", a, got, key)
	}
}

// key is that of an alert's incident, by the configuration that Alertmanager says it has.
func (f *fixture) key(a alert) string {
	f.t.Helper()
	client, err := api.Endpoint{URL: f.managers[0].URL()}.Client()
	if err != nil {
		f.t.Fatal(err)
	}
	config, err := client.Configuration(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	router, err := paging.NewRouter([]byte(config))
	if err != nil {
		f.t.Fatal(err)
	}
	in := router.Incidents(a)
	if len(in) != 1 {
		f.t.Fatalf("incidents %+v, want one", in)
	}
	return in[0].DedupKey
}

// TestManyClustersAreOneIncident has alerts of one release that differ in a label which groups do not have.
func TestManyClustersAreOneIncident(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	var all []alert
	for i := range 200 {
		all = append(all, release(echo, "page", "reconcile").with("shard", fmt.Sprint(i)))
	}
	f.fire(all...)
	l := f.until("the incident has all alerts", func(l pagerduty.Ledger) bool {
		return len(l.Incidents) > 0 && fmt.Sprint(l.Incidents[0].Last.Payload.CustomDetails["num_firing"]) == "200"
	})
	if lines := strings.Count(fmt.Sprint(l.Incidents[0].Last.Payload.CustomDetails["firing"]), "\n") + 1; lines != 20 {
		t.Errorf("the incident lists %d alerts, want 20", lines)
	}
	f.end(all...)
	f.wantOnce(f.untilResolved(1), 1)
}

// TestSingleClusterOpensATicket has an operator that is not critical.
func TestSingleClusterOpensATicket(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.fire(single(echo, "page", "prod-eu"), single(router, "page", "prod-eu"))
	l := f.untilOpen(1)
	if got := l.Incidents[0].Last.Payload.Component; got != "router" {
		t.Errorf("%s pages, want router, which is critical", got)
	}
	f.end(single(echo, "page", "prod-eu"), single(router, "page", "prod-eu"))
	f.wantOnce(f.untilResolved(1), 1)
	f.until("the ticket is closed", func(pagerduty.Ledger) bool {
		return len(f.tickets.At("/tickets")) >= 2
	})
	for _, n := range f.tickets.At("/tickets") {
		if n.GroupLabels["operator"] != "echo" {
			t.Errorf("there is a ticket about %s", n.GroupLabels["operator"])
		}
	}
}

// TestSeverityGrows has a ticket that becomes a page, at a service that gets both.
func TestSeverityGrows(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	ticket, page := release(tenant, "ticket", "reconcile"), release(tenant, "page", "reconcile")
	f.fire(ticket)
	if got := f.untilOpen(1).Incidents[0].Last.Payload.Severity; got != "warning" {
		t.Errorf("the ticket is %s, want warning", got)
	}
	f.fire(page)
	f.end(ticket)
	f.until("the incident is critical", func(l pagerduty.Ledger) bool {
		return l.Incidents[0].Last.Payload.Severity == "critical"
	})
	f.end(page)
	l := f.untilResolved(1)
	f.wantOnce(l, 1)
	if got := l.Incidents[0].Severities(); !slices.Equal(got, []string{"warning", "critical"}) {
		t.Errorf("severities %v", got)
	}
}

// TestTenantsDoNotShare has operators of the same name.
func TestTenantsDoNotShare(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.fire(release(echo, "page", "reconcile"), release(tenant, "page", "available"))
	l := f.untilOpen(2)
	for _, i := range l.Incidents {
		want := map[string]string{"tools": platform, payments: payments}[i.Last.Payload.Group]
		if i.Service != want {
			t.Errorf("service %s got the incident of %s", i.Service, i.Last.Payload.Group)
		}
	}
	f.end(release(echo, "page", "reconcile"), release(tenant, "page", "available"))
	f.wantOnce(f.untilResolved(2), 2)
}

// TestReleaseAndClusterAtOnce has both recover in each order.
func TestReleaseAndClusterAtOnce(t *testing.T) {
	t.Parallel()
	cluster := alert{"alertname": slo.AlertCluster, "severity": "page", "scope": "cluster", "cluster": "prod-eu"}
	ofRelease := release(echo, "page", "reconcile")
	for name, order := range map[string][]alert{"the release first": {ofRelease, cluster},
		"the cluster first": {cluster, ofRelease}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, 1)
			f.fire(order[1])
			f.fire(order[0])
			f.untilOpen(2)
			f.end(order[0])
			f.until("one is resolved", func(l pagerduty.Ledger) bool { return in(l, pagerduty.Resolved) == 1 })
			f.end(order[1])
			f.wantOnce(f.untilResolved(2), 2)
		})
	}
}

// TestAlertmanagerRestarts stops it in the middle of an incident, and kills it once.
func TestAlertmanagerRestarts(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	page := release(echo, "page", "reconcile")
	f.fire(page)
	f.untilOpen(1)
	f.untilNoted()
	f.managers[0].Stop(t.Context())
	if err := f.managers[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.fire(page)
	f.managers[0].Kill()
	if err := f.managers[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.fire(page)
	f.end(page)
	f.wantOnce(f.untilResolved(1), 1)
}

// TestEventsAPIIsAway refuses connections, and then answers 503, while an incident begins, and again while it ends.
func TestEventsAPIIsAway(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	page := release(echo, "page", "reconcile")
	set := func(faults pagerduty.Faults) {
		t.Helper()
		if err := f.events.SetFaults(faults); err != nil {
			t.Fatal(err)
		}
	}
	set(pagerduty.Faults{Refused: true})
	f.fire(page)
	f.untilFailed(3)
	set(pagerduty.Faults{Unavailable: true})
	f.until("503 is answered", func(l pagerduty.Ledger) bool { return l.Attempts.Unavailable > 1 })
	set(pagerduty.Faults{})
	f.untilOpen(1)
	set(pagerduty.Faults{Unavailable: true})
	before := f.events.Ledger().Attempts.Unavailable
	f.end(page)
	f.until("503 is answered", func(l pagerduty.Ledger) bool { return l.Attempts.Unavailable > before+1 })
	set(pagerduty.Faults{})
	f.wantOnce(f.untilResolved(1), 1)
}

// TestEventsAPIIsAwayForLong refuses connections until Alertmanager has given up on two notifications, each with all of
// its retries: once while an incident begins, and once while it ends.
func TestEventsAPIIsAwayForLong(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	page := release(echo, "page", "reconcile")
	away := func(notify func(...alert)) {
		t.Helper()
		before := f.givenUp()
		if err := f.events.SetFaults(pagerduty.Faults{Refused: true}); err != nil {
			t.Fatal(err)
		}
		notify(page)
		f.until("two notifications fail", func(pagerduty.Ledger) bool { return f.givenUp() >= before+2 })
		if err := f.events.SetFaults(pagerduty.Faults{}); err != nil {
			t.Fatal(err)
		}
	}
	away(f.fire)
	f.untilOpen(1)
	away(f.end)
	f.wantOnce(f.untilResolved(1), 1)
}

// givenUp counts the notifications that failed although they were tried again.
func (f *fixture) givenUp() float64 {
	f.t.Helper()
	failed, err := f.managers[0].Counter(f.t.Context(), "alertmanager_notifications_failed_total")
	if err != nil {
		f.t.Fatal(err)
	}
	return failed
}

// untilNoted waits until Alertmanager has noted what it has sent, which it does after PagerDuty has it: it notes it
// before it looks in its log for what to send next.
func (f *fixture) untilNoted() {
	f.t.Helper()
	looked := func() float64 {
		n, err := f.managers[0].Counter(f.t.Context(), "alertmanager_nflog_queries_total")
		if err != nil {
			f.t.Fatal(err)
		}
		return n
	}
	before := looked()
	f.until("Alertmanager looks in its log again", func(pagerduty.Ledger) bool { return looked() > before })
}

// TestOperatorsComeAndGo replaces the configuration in the middle of an incident.
func TestOperatorsComeAndGo(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	page := release(echo, "page", "reconcile")
	f.fire(page)
	f.untilOpen(1)
	more := slices.Clone(policies)
	more[0].Operators = append(slices.Clone(more[0].Operators), paging.Operator{Namespace: "new", Name: "thing"})
	if err := f.managers[0].SetConfig(t.Context(), f.config(more)); err != nil {
		t.Fatal(err)
	}
	f.fire(page)
	f.end(page)
	f.wantOnce(f.untilResolved(1), 1)
}

// untilFailed waits until so many requests of Alertmanager to receivers have failed.
func (f *fixture) untilFailed(n float64) {
	f.t.Helper()
	f.until("requests fail", func(pagerduty.Ledger) bool {
		failed, err := f.managers[0].Counter(f.t.Context(), "alertmanager_notification_requests_failed_total")
		if err != nil {
			f.t.Fatal(err)
		}
		return failed >= n
	})
}

// TestRegrownReleasePages has a release that recovers and fails anew on more clusters while its page still fires: what
// the rules call another alert then is another incident, and the first one is resolved.
func TestRegrownReleasePages(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	first := release(echo, "page", "csv")
	f.fire(first)
	f.wantKey(first, f.untilOpen(1).Incidents[0].DedupKey)
	larger := first.with(series.RecoveredClusters, "2")
	f.end(first)
	f.fire(larger)
	f.until("the larger failure is another incident", func(l pagerduty.Ledger) bool {
		return in(l, pagerduty.Open) == 1 && in(l, pagerduty.Resolved) == 1
	})
	f.end(larger)
	f.wantOnce(f.untilResolved(2), 2)
}
