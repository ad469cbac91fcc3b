// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// Services of PagerDuty, and the namespaces whose policies page them.
const (
	platform = "bellwether-system"
	payments = "payments"
)

// patience is how long a test waits for what must happen, and patienceOfHub how long it does with the times of the hub:
// Alertmanager tries again each 5 minutes.
const (
	patience      = 5 * time.Minute
	patienceOfHub = 15 * time.Minute
)

// fixture is an Alertmanager, or several, that page services, and a tracker of tickets.
type fixture struct {
	t        *testing.T
	times    *strings.Replacer
	events   *pagerduty.Server
	tickets  *alertmanager.Webhooks
	managers []*alertmanager.Server
	// written is what the hub keeps of its configuration in a Secret.
	written map[string][]byte
}

// The operators. Those of payments page and open tickets at the same service.
var (
	echo     = paging.Operator{Namespace: "tools", Name: "echo"}
	router   = paging.Operator{Namespace: "tools", Name: "router", Critical: true}
	tenant   = paging.Operator{Namespace: payments, Name: "echo"}
	policies = []paging.Policy{
		{Namespace: platform, Name: "platform", Operators: []paging.Operator{echo, router},
			Spec: v1alpha1.PagingPolicySpec{Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterCritical,
				Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}}, Tickets: &v1alpha1.TicketTarget{
					Receivers: []string{"tracker"}}, Receivers: []v1alpha1.PagingReceiver{{Name: "oncall"},
					{Name: "tracker", Webhook: &v1alpha1.WebhookReceiver{}}}}},
		{
			Namespace: payments,
			Name:      "team",
			Operators: []paging.Operator{tenant},
			Spec: v1alpha1.PagingPolicySpec{
				Scope:         v1alpha1.PagingNamespace,
				SingleCluster: v1alpha1.SingleClusterCritical,
				Pages:         v1alpha1.PageTarget{Receivers: []string{"oncall"}},
				Receivers: []v1alpha1.PagingReceiver{
					{Name: "oncall"}},
			},
		},
	}
)

// faster makes seconds of the minutes in which Alertmanager gathers and repeats.
var faster = strings.NewReplacer("group_wait: 30s", "group_wait: 300ms", "group_interval: 5m", "group_interval: 1s",
	"group_interval: 30s", "group_interval: 1s")

// start runs one Alertmanager, or several replicas, with the configuration that the hub makes of the policies, in which
// seconds are made of minutes.
func start(t *testing.T, replicas int) *fixture {
	t.Helper()
	return startWith(t, replicas, faster)
}

// startWith does it with other times; nil: those of the hub.
func startWith(t *testing.T, replicas int, times *strings.Replacer) *fixture {
	t.Helper()
	f := &fixture{t: t, tickets: alertmanager.NewWebhooks(), times: times, written: map[string][]byte{}}
	t.Cleanup(f.tickets.Close)
	var err error
	if f.events, err = pagerduty.Start(
		t.Context(),
		pagerduty.Options{Services: []string{platform, payments}},
	); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.events.Close)
	paths, err := build.Ensure(t.Context(), t.Output(), build.Alertmanager)
	if err != nil {
		t.Fatal(err)
	}
	options := alertmanager.Options{Dir: t.TempDir(), Binary: paths[build.Alertmanager], Config: f.config(policies)}
	if replicas > 1 {
		// A replica has to wait longer than the news of another one take, and much shorter than groups do.
		options.Args = []string{"--cluster.peer-timeout=3s", "--cluster.gossip-interval=20ms"}
		options.Config = bytes.ReplaceAll(options.Config, []byte("group_interval: 1s"), []byte("group_interval: 15s"))
		f.managers, err = alertmanager.StartReplicas(t.Context(), replicas, options)
	} else {
		f.managers = make([]*alertmanager.Server, 1)
		f.managers[0], err = alertmanager.Start(t.Context(), options)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range f.managers {
			m.Stop(context.Background())
		}
	})
	return f
}

// config is the hub's configuration of the policies, with its secrets as files.
func (f *fixture) config(policies []paging.Policy) []byte {
	f.t.Helper()
	folder := f.t.TempDir()
	all := slices.Clone(policies)
	for i := range all {
		p := &all[i]
		p.Spec.Receivers = slices.Clone(p.Spec.Receivers)
		for j := range p.Spec.Receivers {
			if r := &p.Spec.Receivers[j]; r.Name == "oncall" {
				r.PagerDuty = &v1alpha1.PagerDutyReceiver{URL: f.events.URL() + pagerduty.EnqueuePath}
			}
		}
		for _, use := range p.Secrets() {
			value := f.tickets.URL() + "/tickets"
			if use.Format == paging.FormatRoutingKey {
				key, err := f.events.RoutingKey(p.Namespace)
				if err != nil {
					f.t.Fatal(err)
				}
				value = key
			}
			if err := os.WriteFile(filepath.Join(folder, use.File), []byte(value), 0o600); err != nil {
				f.t.Fatal(err)
			}
			f.written[use.File] = []byte(value)
		}
	}
	text, err := paging.BuildConfig(all, folder)
	if err != nil {
		f.t.Fatal(err)
	}
	inForce, err := json.Marshal(all)
	if err != nil {
		f.t.Fatal(err)
	}
	f.written[paging.PoliciesFile] = inForce
	if f.times == nil {
		return text
	}
	quick := f.times.Replace(string(text))
	if quick == string(text) {
		f.t.Fatal("the configuration has other times than this test knows")
	}
	return []byte(quick)
}

// alert is an alert as the rules make it.
type alert map[string]string

// of makes an alert about an operator; further are names and values of labels.
func of(op paging.Operator, name, severity, scope string, further ...string) alert {
	out := alert{"alertname": name, "severity": severity, "scope": scope, "operator_namespace": op.Namespace,
		"operator": op.Name}
	for i := 0; i+1 < len(further); i += 2 {
		out[further[i]] = further[i+1]
	}
	return out
}

// release is an alert about an SLI of version 1.1.0 of an operator.
func release(op paging.Operator, severity, sli string) alert {
	return of(op, slo.AlertRelease, severity, "release", "version", "1.1.0", "sli", sli)
}

// single is an alert about an operator on one cluster.
func single(op paging.Operator, severity, cluster string) alert {
	return of(op, slo.AlertOperator, severity, "operator", "cluster", cluster, "sli", "available")
}

func (a alert) with(name, value string) alert {
	out := maps.Clone(a)
	out[name] = value
	return out
}

// fire posts alerts that go on; end posts that they have ended.
func (f *fixture) fire(alerts ...alert) { f.post(time.Now().Add(time.Hour), alerts) }
func (f *fixture) end(alerts ...alert)  { f.post(time.Now(), alerts) }

func (f *fixture) post(ends time.Time, alerts []alert) {
	f.t.Helper()
	var posted []alertmanager.PostableAlert
	for _, a := range alerts {
		posted = append(posted, alertmanager.PostableAlert{Labels: a, EndsAt: ends, Annotations: map[string]string{
			"summary":     a["operator"] + " burns its " + a["sli"] + " budget",
			"clusters":    "canary, prod-eu",
			"change":      "1.0.0 to 1.1.0",
			"runbook_url": "https://example.com/runbook",
			"look":        "bellwether rollout get echo-2",
		}})
	}
	for _, m := range f.managers {
		if err := m.Post(f.t.Context(), posted...); err != nil {
			f.t.Fatal(err)
		}
	}
}

// until polls the ledger until done.
func (f *fixture) until(what string, done func(pagerduty.Ledger) bool) pagerduty.Ledger {
	f.t.Helper()
	limit := patience
	if f.times == nil {
		limit = patienceOfHub
	}
	var ledger pagerduty.Ledger
	testenv.Eventually(f.t, limit, what, func(context.Context) error {
		if ledger = f.events.Ledger(); done(ledger) {
			return nil
		}
		var out bytes.Buffer
		return errors.Join(ledger.Print(&out), fmt.Errorf("it did not happen:\n%s", out.String()))
	})
	return ledger
}

// in counts the incidents in a state.
func in(l pagerduty.Ledger, state pagerduty.State) int {
	n := 0
	for _, i := range l.Incidents {
		if i.State == state {
			n++
		}
	}
	return n
}

func (f *fixture) untilOpen(n int) pagerduty.Ledger {
	f.t.Helper()
	return f.until("incidents are open", func(l pagerduty.Ledger) bool { return in(l, pagerduty.Open) == n })
}

func (f *fixture) untilResolved(n int) pagerduty.Ledger {
	f.t.Helper()
	return f.until("incidents are resolved", func(l pagerduty.Ledger) bool {
		return in(l, pagerduty.Resolved) == n && in(l, pagerduty.Open) == 0
	})
}

// wantOnce fails unless every incident was opened once and resolved once, and nothing else came.
func (f *fixture) wantOnce(l pagerduty.Ledger, incidents int) {
	f.t.Helper()
	good := len(l.Incidents) == incidents && len(l.Anomalies) == 0
	for _, i := range l.Incidents {
		good = good && i.Opened == 1 && i.Resolved == 1
	}
	if !good {
		var out bytes.Buffer
		_ = l.Print(&out)
		f.t.Errorf("want %d incidents, each opened once and resolved once:\n%s", incidents, out.String())
	}
}
