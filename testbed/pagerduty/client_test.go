// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"errors"
	"testing"
	"time"

	client "github.com/PagerDuty/go-pagerduty"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// TestGoPagerDuty has PagerDuty's own client send every kind of event.
func TestGoPagerDuty(t *testing.T) {
	s := start(t, nil)
	key := keyOf(t, s, "payments")
	pager := client.NewClient("", client.WithV2EventsAPIEndpoint(s.URL()))
	event := &client.V2Event{
		RoutingKey: key, Action: "trigger", DedupKey: "web", Client: "Bellwether", ClientURL: "https://example.com",
		Links: []any{map[string]string{"href": "https://example.com/runbook", "text": "Runbook"}},
		Payload: &client.V2Payload{
			Summary: "web 1.1.0 fails", Source: "hub", Severity: "critical", Component: "web", Group: "shop",
			Class: "release", Timestamp: time.Now().Format(time.RFC3339), Details: map[string]any{"clusters": 3},
		},
	}
	for _, action := range []string{"trigger", "acknowledge", "resolve"} {
		event.Action = action
		answer, err := pager.ManageEventWithContext(t.Context(), event)
		if err != nil {
			t.Fatalf("%s: %v", action, err)
		}
		want := &client.V2EventResponse{Status: "success", Message: "Event processed", DedupKey: "web"}
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Errorf("%s: answer (-want +got):\n%s", action, diff)
		}
		event.Payload = nil // the others do not need one
	}
	changed := client.ChangeEvent{
		RoutingKey: key, Links: []client.ChangeEventLink{{Href: "https://example.com/rollout"}},
		Payload: client.ChangeEventPayload{Summary: "wave 1 begins", CustomDetails: map[string]any{"wave": 1}},
	}
	answer, err := pager.CreateChangeEventWithContext(t.Context(), changed)
	if err != nil {
		t.Fatal(err)
	}
	want := &client.ChangeEventResponse{Status: "success", Message: "Change event processed"}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}

	ledger := s.Ledger()
	incident, _ := ledger.Incident("payments", "web")
	if incident.State != pagerduty.Resolved || incident.Opened != 1 || incident.Acknowledged != 1 ||
		incident.Last.Payload.CustomDetails["clusters"] != 3.0 || incident.Last.Links[0].Text != "Runbook" {
		t.Errorf("incident is %+v, want it opened, acknowledged and resolved once", incident)
	}
	if len(ledger.Changes) != 1 || ledger.Changes[0].Payload.Summary != "wave 1 begins" || len(ledger.Anomalies) > 0 {
		t.Errorf("changes are %+v, anomalies %v; want one change", ledger.Changes, ledger.Anomalies)
	}
}

// TestGoPagerDutyErrors finds that the client understands each refusal.
func TestGoPagerDutyErrors(t *testing.T) {
	for name, c := range map[string]struct {
		faults    pagerduty.Faults
		severity  string
		code      int
		temporary bool
	}{
		"invalid":     {severity: "page", code: 400},
		"limited":     {faults: pagerduty.Faults{Limit: &pagerduty.Limit{Window: time.Minute}}, severity: "info", code: 429, temporary: true},
		"unavailable": {faults: pagerduty.Faults{Unavailable: true}, severity: "info", code: 503, temporary: true},
		"rejected":    {faults: pagerduty.Faults{Rejected: []string{"payments"}}, severity: "info", code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			setFaults(t, s, c.faults)
			pager := client.NewClient("", client.WithV2EventsAPIEndpoint(s.URL()))
			_, err := pager.ManageEventWithContext(t.Context(), &client.V2Event{
				RoutingKey: keyOf(t, s, "payments"), Action: "trigger",
				Payload: &client.V2Payload{Summary: "x", Source: "x", Severity: c.severity},
			})
			var refused client.APIError
			if !errors.As(err, &refused) || refused.StatusCode != c.code || refused.Temporary() != c.temporary {
				t.Errorf("error is %v, want status %d, temporary %t", err, c.code, c.temporary)
			}
		})
	}
}
