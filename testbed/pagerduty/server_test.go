// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// noon is when the tests' clocks begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is set by a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// accept sends an event that must be accepted.
func accept(t *testing.T, s *pagerduty.Server, path string, event any) reply {
	t.Helper()
	got := post(t, s, path, event)
	if got.Code != http.StatusAccepted {
		t.Fatalf("answer is %d %s, want it accepted", got.Code, got.Text)
	}
	return got
}

// with returns an alert event with another severity, summary and cluster list.
func with(event object, severity, summary, clusters string) object {
	p := event["payload"].(object)
	p["severity"], p["summary"] = severity, summary
	p["custom_details"] = object{"clusters": clusters}
	return event
}

// unclean is a text that a person must not get as it is.
var unclean = "c2\n\x1b[31m\tand " + strings.Repeat("c3 ", 50)

// story fills a ledger with everything that it tells apart.
func story(t *testing.T, s *pagerduty.Server, c *clock) {
	t.Helper()
	key, other := keyOf(t, s, "payments"), keyOf(t, s, "search")
	step := func(path string, event any) {
		t.Helper()
		accept(t, s, path, event)
		c.advance(time.Minute)
	}
	step(pagerduty.ChangeEnqueuePath, change(key, "web 1.1.0: wave canary begins"))
	step(pagerduty.ChangeEnqueuePath, change(key, "web 1.1.0: wave canary begins"))
	step(pagerduty.ChangeEnqueuePath, change(other, "web 1.1.0: wave canary begins"))
	one := with(alert(key, "trigger", "web"), "warning", "web 1.1.0 fails on c1", "c1")
	step(pagerduty.EnqueuePath, one)
	step(pagerduty.EnqueuePath, one)
	const three = "web 1.1.0 fails on 3 clusters"
	step(pagerduty.EnqueuePath, with(alert(key, "trigger", "web"), "critical", three, "c1, c2, c3"))
	step(pagerduty.EnqueuePath, alert(key, "acknowledge", "web"))
	step(pagerduty.EnqueuePath, with(alert(key, "trigger", "web"), "critical", three, "c1, c2, and c3"))
	// The key of an incident counts for its service only.
	step(pagerduty.EnqueuePath, alert(other, "resolve", "web"))
	step(pagerduty.EnqueuePath, alert(key, "resolve", "web"))
	step(pagerduty.EnqueuePath, alert(key, "resolve", "web"))
	step(pagerduty.EnqueuePath, with(alert(other, "trigger", "web"), "info", "search is slow", "c9"))
	step(pagerduty.EnqueuePath, with(alert(key, "trigger", "web"), "error", "web 1.1.1 fails on c2", unclean))
	if got := post(t, s, pagerduty.EnqueuePath, object{"routing_key": other, "dedup_key": "x"}); got.Code != 400 {
		t.Errorf("answer is %d, want 400", got.Code)
	}
}

// TestLedger follows one incident through its life.
func TestLedger(t *testing.T) {
	c := &clock{now: noon}
	s := start(t, c.read)
	story(t, s, c)
	ledger := s.Ledger()
	got, ok := ledger.Incident("payments", "web")
	if !ok {
		t.Fatal("the incident is not in the ledger")
	}
	got.Last = pagerduty.Alert{Payload: pagerduty.Payload{CustomDetails: got.Last.Payload.CustomDetails}}
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	const single, three = "web 1.1.0 fails on c1", "web 1.1.0 fails on 3 clusters"
	want := pagerduty.Incident{
		Service: "payments", DedupKey: "web", State: pagerduty.Open,
		Opened: 2, Updates: 3, Acknowledged: 1, Resolved: 1, Repeated: 1,
		Last: pagerduty.Alert{Payload: pagerduty.Payload{CustomDetails: object{"clusters": unclean}}},
		Timeline: []pagerduty.Entry{
			{At: at(3), Kind: pagerduty.WasOpened, Severity: "warning", Summary: single},
			{At: at(4), Kind: pagerduty.WasUpdated, Severity: "warning", Summary: single, Repeated: true},
			{At: at(5), Kind: pagerduty.WasUpdated, Severity: "critical", Summary: three,
				Changed: []string{"severity", "summary", "details"}},
			{At: at(6), Kind: pagerduty.WasAcknowledged},
			{At: at(7), Kind: pagerduty.WasUpdated, Severity: "critical", Summary: three, Changed: []string{"details"}},
			{At: at(9), Kind: pagerduty.WasResolved},
			{At: at(12), Kind: pagerduty.WasOpened, Severity: "error", Summary: "web 1.1.1 fails on c2"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("incident (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"warning", "critical", "error"}, got.Severities()); diff != "" {
		t.Errorf("severities (-want +got):\n%s", diff)
	}
	notOpen := []string{"resolve of what is not open"}
	wantAnomalies := []pagerduty.Anomaly{
		{At: at(8), Status: 202, Service: "search", DedupKey: "web", Reasons: notOpen},
		{At: at(10), Status: 202, Service: "payments", DedupKey: "web", Reasons: notOpen},
		{At: at(13), Status: 400, Service: "search", DedupKey: "x",
			Reasons: []string{"'event_action' is missing or blank"}},
	}
	if diff := cmp.Diff(wantAnomalies, ledger.Anomalies); diff != "" {
		t.Errorf("anomalies (-want +got):\n%s", diff)
	}
	// The third change event is of another service. Besides the second one, a trigger and a resolve were repeated.
	if len(ledger.Changes) != 3 || len(ledger.Duplicates()) != 1 || ledger.Repeated != 3 || ledger.Pages() != 3 {
		t.Errorf("changes %d, duplicates %d, repeated %d, pages %d; want 3, 1, 3, 3", len(ledger.Changes),
			len(ledger.Duplicates()), ledger.Repeated, ledger.Pages())
	}
}

// TestPrint compares the tables with a golden file.
func TestPrint(t *testing.T) {
	c := &clock{now: noon}
	s := start(t, c.read)
	story(t, s, c)
	var out bytes.Buffer
	if err := s.Ledger().Print(&out); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "ledger.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

// TestSnapshot finds that a ledger does not change after it was returned.
func TestSnapshot(t *testing.T) {
	s := start(t, nil)
	key := keyOf(t, s, "payments")
	accept(t, s, pagerduty.EnqueuePath, alert(key, "trigger", "web"))
	before := s.Ledger()
	accept(t, s, pagerduty.EnqueuePath, alert(key, "resolve", "web"))
	if got := before.Incidents[0]; got.State != pagerduty.Open || len(got.Timeline) != 1 {
		t.Errorf("incident is %s with %d entries, want it open with 1", got.State, len(got.Timeline))
	}
	s.Ledger().Incidents[0].Timeline[0].Summary = "written by the caller"
	if got := s.Ledger().Incidents[0].Timeline[0].Summary; got != "web 1.1.0 fails on 3 clusters" {
		t.Errorf("summary in the server is %q after a change to its copy", got)
	}
}

// TestDuplicates finds which change events came before.
func TestDuplicates(t *testing.T) {
	for name, c := range map[string]struct {
		change mutation
		want   int
	}{
		"same bytes":      {func(object, object) {}, 1},
		"another source":  {payload("source", "somebody"), 1},
		"other links":     {withoutTop("links"), 1},
		"another summary": {payload("summary", "wave 2 begins"), 0},
		"another time":    {payload("timestamp", "2026-03-01T12:00:01Z"), 0},
		"no time":         {withoutPayload("timestamp"), 0},
		"other details":   {payload("custom_details", object{"wave": "rest"}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			event := change(keyOf(t, s, "payments"), "wave 1 begins")
			accept(t, s, pagerduty.ChangeEnqueuePath, event)
			c.change(event, event["payload"].(object))
			accept(t, s, pagerduty.ChangeEnqueuePath, event)
			ledger := s.Ledger()
			if len(ledger.Changes) != 2 || len(ledger.Duplicates()) != c.want {
				t.Errorf("%d changes, %d duplicates; want 2, %d", len(ledger.Changes), len(ledger.Duplicates()), c.want)
			}
		})
	}
}

// TestKeysAreKept finds routing keys neither in the ledger nor in answers, wherever a client puts them.
func TestKeysAreKept(t *testing.T) {
	s := start(t, nil)
	key, other := keyOf(t, s, "payments"), keyOf(t, s, "search")
	leaks := map[string]mutation{
		"summary":      payload("summary", "page "+key),
		"details":      payload("custom_details", object{"a": []any{object{"b": other}}}),
		"dedup key":    top("dedup_key", key),
		"link":         top("links", []any{object{"href": "https://example.com/" + other}}),
		"field's name": top(key, "x"),
		"name inside":  payload("custom_details", object{other: "x"}),
		"action":       top("event_action", key),
	}
	var answers strings.Builder
	for name, leak := range leaks {
		event := alert(key, "trigger", "web")
		leak(event, event["payload"].(object))
		got := post(t, s, pagerduty.EnqueuePath, event)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Text, "contains a routing key") {
			t.Errorf("%s: answer is %d %s, want it refused", name, got.Code, got.Text)
		}
		answers.WriteString(got.Text)
	}
	// Keys that are wrong could be right ones elsewhere.
	for _, wrong := range []string{key[:31], key + "0", strings.Repeat("k", 32), strings.Repeat("?", 32)} {
		answers.WriteString(post(t, s, pagerduty.EnqueuePath, alert(wrong, "trigger", "web")).Text)
		if text := fmt.Sprintf("%s %+v", answers.String(), s.Ledger()); strings.Contains(text, wrong) {
			t.Errorf("the answers or the ledger contain the wrong key %s", wrong)
		}
	}
	accept(t, s, pagerduty.EnqueuePath, alert(key, "trigger", "web"))
	accept(t, s, pagerduty.ChangeEnqueuePath, change(other, "wave 1 begins"))
	text := fmt.Sprintf("%s %+v", answers.String(), s.Ledger())
	for _, k := range []string{key, other} {
		if strings.Contains(text, k) {
			t.Errorf("the answers or the ledger contain a routing key:\n%s", text)
		}
	}
	if _, err := s.RoutingKey("nothing"); !errors.Is(err, pagerduty.ErrUnknownService) {
		t.Errorf("error is %v, want ErrUnknownService", err)
	}
}

func setFaults(t *testing.T, s *pagerduty.Server, faults pagerduty.Faults) {
	t.Helper()
	if err := s.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
}

// TestFaults has each fault once, and the same event accepted after it.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		faults pagerduty.Faults
		want   int
		count  pagerduty.Attempts
	}{
		"unavailable":      {pagerduty.Faults{Unavailable: true}, 503, pagerduty.Attempts{Total: 2, Unavailable: 1}},
		"rejected":         {pagerduty.Faults{Rejected: []string{"payments"}}, 400, pagerduty.Attempts{Total: 2, Rejected: 1}},
		"another rejected": {pagerduty.Faults{Rejected: []string{"search"}}, 202, pagerduty.Attempts{Total: 2}},
		"slow":             {pagerduty.Faults{Delay: time.Millisecond}, 202, pagerduty.Attempts{Total: 2, Delayed: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			key := keyOf(t, s, "payments")
			setFaults(t, s, c.faults)
			got := post(t, s, pagerduty.EnqueuePath, alert(key, "trigger", "web"))
			if got.Code != c.want {
				t.Errorf("answer is %d, want %d", got.Code, c.want)
			}
			if taken := len(s.Ledger().Incidents) == 1; taken != (c.want == http.StatusAccepted) {
				t.Errorf("the event was taken in: %t, but the answer was %d", taken, got.Code)
			}
			setFaults(t, s, pagerduty.Faults{})
			accept(t, s, pagerduty.EnqueuePath, alert(key, "trigger", "web"))
			ledger := s.Ledger()
			if diff := cmp.Diff(c.count, ledger.Attempts); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if len(ledger.Anomalies) > 0 {
				t.Errorf("anomalies are %v, want none of a fault", ledger.Anomalies)
			}
		})
	}
}

// TestRefused closes the port, also for connections that are kept, and serves at the same address afterwards.
func TestRefused(t *testing.T) {
	s := start(t, nil)
	key := keyOf(t, s, "payments")
	accept(t, s, pagerduty.EnqueuePath, alert(key, "trigger", "web"))
	url := s.URL()
	for range 3 {
		setFaults(t, s, pagerduty.Faults{Refused: true})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+pagerduty.EnqueuePath, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			t.Error("the server answered, want connections refused")
		}
		setFaults(t, s, pagerduty.Faults{})
		accept(t, s, pagerduty.EnqueuePath, alert(key, "trigger", "web"))
	}
	s.Close()
	if err := s.SetFaults(pagerduty.Faults{}); err != nil {
		t.Errorf("faults after the end: %v", err)
	}
	if ledger := s.Ledger(); ledger.Pages() != 1 || ledger.Attempts.Total != 4 || s.URL() != url {
		t.Errorf("%d pages and %d attempts at %s; want 1 and 4 at %s", ledger.Pages(), ledger.Attempts.Total,
			s.URL(), url)
	}
}
