// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

func TestPrintIncidents(t *testing.T) {
	at := func(minute, second int) time.Time { return time.Date(2026, 11, 22, 3, minute, second, 0, time.UTC) }
	ledger := pagerduty.Ledger{Incidents: []pagerduty.Incident{
		{
			Service: "oncall", State: pagerduty.Resolved, Timeline: []pagerduty.Entry{
				{At: at(0, 0), Kind: pagerduty.WasOpened, Severity: "critical", Summary: "echo 1.2.0 is bad"},
				{At: at(1, 30), Kind: pagerduty.WasUpdated, Severity: "critical",
					Changed: []string{"summary", "details"}},
				{At: at(4, 5), Kind: pagerduty.WasResolved},
			},
			Last: pagerduty.Alert{
				Links: []pagerduty.Link{{Text: "Runbook", Href: "https://example.com/runbook"}},
				Payload: pagerduty.Payload{Summary: "echo 1.2.0 is bad\non 1 cluster", CustomDetails: map[string]any{
					"version": "echo 1.2.0", "rollback": "none", "clusters": "canary", "num_firing": 1, "team": "a"}},
			},
		},
		{Service: "oncall", State: pagerduty.Open, Timeline: []pagerduty.Entry{
			{At: at(9, 0), Kind: pagerduty.WasOpened, Severity: "warning"}},
			Last: pagerduty.Alert{Payload: pagerduty.Payload{Summary: "other"}}},
	}}
	const want = `INCIDENT 1 OF 2, resolved, service oncall
  echo 1.2.0 is bad on 1 cluster

  03:00:00  triggered  severity critical
  03:01:30  updated    changed: summary, details
  03:04:05  resolved   after 4m5s

  clusters       canary
  version        echo 1.2.0
  num_firing     1
  link: Runbook  https://example.com/runbook

INCIDENT 2 OF 2, open, service oncall
  other

  03:09:00  triggered  severity warning

`
	var out bytes.Buffer
	if err := ledger.PrintIncidents(&out, "clusters", "version", "rollback", "num_firing", "missing"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("incidents (-want +got):\n%s", diff)
	}
}
