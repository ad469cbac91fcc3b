// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// Paths of the webhooks, which are the names of the hosts in the recommended configuration.
const (
	toPager     = "/pager"
	toTickets   = "/tickets"
	toHeartbeat = "/heartbeat"
)

// group says which group a notification is about.
func group(n alertmanager.Notification) string {
	of := n.GroupLabels
	var parts []string
	for _, label := range []string{"scope", "operator_namespace", "operator", "cluster", "version"} {
		if of[label] != "" {
			parts = append(parts, label+"="+of[label])
		}
	}
	return strings.TrimPrefix(of["alertname"], "Bellwether") + " " + strings.Join(parts, " ")
}

// received are the statuses that a path was notified of, by group.
func received(hooks *alertmanager.Webhooks, path string) map[string][]string {
	out := map[string][]string{}
	for _, n := range hooks.At(path) {
		out[group(n)] = append(out[group(n)], n.Status)
	}
	return out
}

// fingerprints are the identities of the alerts of each group.
func fingerprints(hooks *alertmanager.Webhooks, path string) map[string][]string {
	out := map[string][]string{}
	for _, n := range hooks.At(path) {
		for _, alert := range n.Alerts {
			if !slices.Contains(out[group(n)], alert.Fingerprint) {
				out[group(n)] = append(out[group(n)], alert.Fingerprint)
			}
		}
	}
	return out
}

// eachOf gives each group the same statuses.
func eachOf(groups []string, statuses ...string) map[string][]string {
	out := map[string][]string{}
	for _, g := range groups {
		out[g] = statuses
	}
	return out
}

// notified waits until a path was notified of exactly this, by group.
func (l live) notified(what string, hooks *alertmanager.Webhooks, path string, want map[string][]string) {
	l.t.Helper()
	l.eventually(what, func(context.Context) error {
		if diff := cmp.Diff(want, received(hooks, path)); diff != "" {
			return fmt.Errorf("notifications (-want +got):\n%s", diff)
		}
		return nil
	})
}

// alive waits for further heartbeats, which come once a minute: a second here.
func (l live) alive(hooks *alertmanager.Webhooks, minutes int) {
	l.t.Helper()
	before := len(hooks.At(toHeartbeat))
	l.eventually("heartbeats arrive", func(context.Context) error {
		if n := len(hooks.At(toHeartbeat)) - before; n < minutes {
			return fmt.Errorf("%d came, want %d", n, minutes)
		}
		return nil
	})
}

// startNotifying starts both servers, with a configuration in which an hour takes a minute.
func startNotifying(t *testing.T, f *fixture, config string, hooks *alertmanager.Webhooks) (
	live, *alertmanager.Server,
) {
	t.Helper()
	manager, err := alertmanager.Start(t.Context(), alertmanager.Options{
		Dir: t.TempDir(), Binary: binary(t, build.Alertmanager),
		Config: compressedConfig(t, config, faster, hooks.URL()),
		Args:   []string{"--dispatch.start-delay=2s"}, // as Prometheus's resend delay
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Stop(context.Background()) })
	rules, _ := compressed(t, 995_000)
	server, err := prometheus.Start(t.Context(), prometheus.Options{
		Dir: t.TempDir(), Binary: binary(t, build.Prometheus), Rules: rules, Jobs: f.jobs(), Interval: time.Second,
		Lookback: 5 * time.Second, Alertmanagers: []string{manager.Address()},
		Args: []string{"--rules.alert.resend-delay=2s"}, // 2 minutes
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(context.Background()) })
	return live{server, t}, manager
}

// TestOneFailureIsOneNotification counts what a real Alertmanager notifies of. An hour takes a minute.
func TestOneFailureIsOneNotification(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := newFixture(t, map[string]*agent{
		"good-a": {version: "1.0.0", csv: "1"}, "good-b": {version: "1.0.0", csv: "1"},
		"outage": {version: "1.1.0", csv: "1"}, "silent": {version: "1.2.0", csv: "1"},
		"broken": {version: "1.3.0", csv: "1"}, "slim": {version: "1.4.0", csv: "1"},
		"twin-a": {version: "2.0.0", csv: "1"}, "twin-b": {version: "2.0.0", csv: "1"},
	}, "staging", "tools")
	hooks := alertmanager.NewWebhooks()
	t.Cleanup(hooks.Close)
	l, manager := startNotifying(t, f, recommended(t), hooks)
	l.eventually("every cluster has slices", func(ctx context.Context) error {
		n, err := l.one(ctx, `count(bellwether:sli_bad:bool{sli="csv"} == 0)`)
		if err == nil && n != 24 {
			return fmt.Errorf("have %v, want 24", n)
		}
		return err
	})
	// A cluster that joined a while ago may still come: it is missed after that.
	l.alive(hooks, 20)
	l.notified("no pages yet", hooks, toPager, map[string][]string{})

	f.change(bad, "outage", "twin-a", "twin-b")
	f.change(func(a *agent) { a.silent = true }, "silent")
	f.change(func(a *agent) { a.csv, a.others = "0", "0" }, "broken")
	failures := []string{
		"OperatorSLOBurn scope=operator operator_namespace=fleet operator=echo cluster=outage",
		"ReleaseSLOBurn scope=release operator_namespace=fleet operator=echo version=2.0.0",
		"ClusterFailing scope=cluster cluster=broken",
		"ClusterFailing scope=cluster cluster=silent",
	}
	l.notified("one notification of each failure", hooks, toPager, eachOf(failures, alertmanager.Firing))

	// Both servers are restarted while everything is down: Prometheus crashes, Alertmanager stops.
	l.Kill()
	if err := l.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.alive(hooks, 15)
	if err := manager.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.alive(hooks, 15)
	l.notified("nothing new after restarts", hooks, toPager, eachOf(failures, alertmanager.Firing))

	// What is only a ticket reaches the other receiver.
	f.change(func(a *agent) { a.desired = 2 }, "slim")
	ticket := []string{"OperatorSLOBurn scope=operator operator_namespace=fleet operator=echo cluster=slim"}
	l.eventually("a ticket", func(context.Context) error {
		if got := slices.Sorted(maps.Keys(received(hooks, toTickets))); len(got) == 0 {
			return fmt.Errorf("no tickets")
		}
		return nil
	})

	f.change(good, "outage", "twin-a", "twin-b")
	f.change(func(a *agent) { a.silent = false }, "silent")
	f.change(func(a *agent) { a.csv, a.others = "1", "" }, "broken")
	l.notified("each failure is resolved once", hooks, toPager,
		eachOf(failures, alertmanager.Firing, alertmanager.Resolved))
	// The windows of days still burn. What paged is no ticket now.
	l.alive(hooks, 60)
	l.notified("nothing comes after recovery", hooks, toPager,
		eachOf(failures, alertmanager.Firing, alertmanager.Resolved))
	for of, alerts := range fingerprints(hooks, toPager) {
		if len(alerts) != 1 {
			t.Errorf("%s is %d alerts, want 1", of, len(alerts))
		}
	}
	for of := range received(hooks, toTickets) {
		if !strings.HasSuffix(of, "cluster=slim") {
			t.Errorf("there is a ticket about %s, want only %q", of, ticket)
		}
	}
	if slices.ContainsFunc(hooks.At(toHeartbeat), func(n alertmanager.Notification) bool {
		return n.Status != alertmanager.Firing
	}) {
		t.Error("the heartbeat was resolved")
	}
}
