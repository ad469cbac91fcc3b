// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"errors"
	"testing"
	"time"

	client "github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// TestClient has the product's client, which is built on PagerDuty's own, send every kind of event.
func TestClient(t *testing.T) {
	s := start(t, nil)
	key, pager := keyOf(t, s, "payments"), clientOf(t, s)
	event := client.Event{
		DedupKey: "web", Summary: "web 1.1.0 fails", Source: "hub", Severity: "critical",
		Details: map[string]any{"clusters": 3},
		Links:   []client.Link{{URL: "https://example.com/runbook", Text: "Runbook"}},
	}
	change := client.Change{
		Summary: "wave 1 begins", Source: "hub", Time: time.Now(), Details: map[string]any{"wave": 1},
		Links: []client.Link{{URL: "https://example.com/rollout"}},
	}
	for what, err := range map[string]error{
		"trigger": pager.Trigger(t.Context(), key, event), "resolve": pager.Resolve(t.Context(), key, "web"),
		"resolve again": pager.Resolve(t.Context(), key, "web"), "change": pager.Change(t.Context(), key, change),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	ledger := s.Ledger()
	incident, _ := ledger.Incident("payments", "web")
	if incident.Opened != 1 || incident.Last.Payload.CustomDetails["clusters"] != 3.0 ||
		incident.Last.Links[0].Text != "Runbook" {
		t.Errorf("incident is %+v, want it opened once, with details and link", incident)
	}
	if len(ledger.Changes) != 1 || ledger.Changes[0].Payload.Summary != "wave 1 begins" {
		t.Errorf("changes are %+v, want one", ledger.Changes)
	}
}

// TestClientErrors finds that the client tells what is refused for good from what may work later.
func TestClientErrors(t *testing.T) {
	for name, c := range map[string]struct {
		faults   pagerduty.Faults
		severity string
		refused  bool
	}{
		"invalid":     {severity: "page", refused: true},
		"unavailable": {faults: pagerduty.Faults{Unavailable: true}, severity: "info"},
		"rejected":    {faults: pagerduty.Faults{Rejected: []string{"payments"}}, severity: "info", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			setFaults(t, s, c.faults)
			err := clientOf(t, s).Trigger(t.Context(), keyOf(t, s, "payments"),
				client.Event{Summary: "x", Source: "x", Severity: c.severity})
			if err == nil || errors.Is(err, client.ErrRefused) != c.refused {
				t.Errorf("error is %v, want refused for good: %t", err, c.refused)
			}
		})
	}
}

func clientOf(t *testing.T, s *pagerduty.Server) *client.Client {
	t.Helper()
	c, err := client.Hosts{s.Host()}.Client(s.URL() + pagerduty.EnqueuePath)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
