// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

var update = flag.Bool("update", false, "write the golden file")

// object is JSON that a test changes.
type object = map[string]any

// start serves the services payments and search until the test ends.
func start(t *testing.T, now func() time.Time) *pagerduty.Server {
	t.Helper()
	s, err := pagerduty.Start(t.Context(), pagerduty.Options{Services: []string{"payments", "search"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func keyOf(t *testing.T, s *pagerduty.Server, service string) string {
	t.Helper()
	key, err := s.RoutingKey(service)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// reply is an answer of the server.
type reply struct {
	Code    int
	Header  http.Header
	Text    string
	Status  string   `json:"status"`
	Message string   `json:"message"`
	Key     string   `json:"dedup_key"`
	Errors  []string `json:"errors"`
}

// send makes one request.
func send(t *testing.T, method, url, contentType string, body []byte) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var content bytes.Buffer
	if _, err := content.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	r := reply{Code: response.StatusCode, Header: response.Header, Text: content.String()}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(content.Bytes(), &r); err != nil {
			t.Fatalf("answer %q: %v", content.String(), err)
		}
	}
	return r
}

// post sends an event as JSON.
func post(t *testing.T, s *pagerduty.Server, path string, event any) reply {
	t.Helper()
	body, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, http.MethodPost, s.URL()+path, "application/json", body)
}

// alert is a valid event with every field.
func alert(key, action, dedupKey string) object {
	return object{
		"routing_key": key, "event_action": action, "dedup_key": dedupKey,
		"client": "Alertmanager", "client_url": "http://alertmanager.example.com",
		"links":  []any{object{"href": "https://example.com/runbook", "text": "Runbook"}},
		"images": []any{object{"src": "https://example.com/a.png", "href": "", "alt": "burn rate"}},
		"payload": object{
			"summary": "web 1.1.0 fails on 3 clusters", "source": "hub", "severity": "error",
			"timestamp": "2026-03-01T12:00:00.315+0000", "component": "web", "group": "shop", "class": "release",
			"custom_details": object{"clusters": "c1, c2, c3", "burn": 14.4},
		},
	}
}

// change is a valid change event with every field.
func change(key, summary string) object {
	return object{
		"routing_key": key,
		"links":       []any{object{"href": "https://example.com/rollout", "text": "Rollout"}},
		"payload": object{
			"summary": summary, "source": "bellwether", "timestamp": "2026-03-01T12:00:00Z",
			"custom_details": object{"wave": "canary"},
		},
	}
}

// patience is how long a test waits for what must happen.
const patience = 5 * time.Minute

// eventually checks the ledger until done.
func eventually(t *testing.T, s *pagerduty.Server, what string, done func(pagerduty.Ledger) bool) {
	t.Helper()
	testenv.Eventually(t, patience, what, func(context.Context) error {
		ledger := s.Ledger()
		if done(ledger) {
			return nil
		}
		var out bytes.Buffer
		return errors.Join(ledger.Print(&out), fmt.Errorf("%w:\n%s", errNotYet, out.String()))
	})
}

var errNotYet = errors.New("it did not happen")
