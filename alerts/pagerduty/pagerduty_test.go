// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
)

// The strict server of the testbed tests the requests; the tests here are about errors.

const key = "0123456789abcdef0123456789abcdef"

func TestURLs(t *testing.T) {
	for address, valid := range map[string]bool{
		"": true,
		"https://events.eu.pagerduty.com/v2/enqueue":   true,
		"http://127.0.0.1:1/prefix/v2/enqueue":         true,
		"https://events.pagerduty.com/v2/enqueue":      true,
		"http://events.pagerduty.com/v2/enqueue":       false,
		"https://Events.PagerDuty.com:443/v2/enqueue":  true,
		"https://events.pagerduty.com:8443/v2/enqueue": false,
		"https://a@events.pagerduty.com/v2/enqueue":    false,
		"https://evil.example.com/v2/enqueue":          false,
		"http://169.254.169.254/v2/enqueue":            false,
		"http://127.0.0.1:2/v2/enqueue":                false,
		"https://events.pagerduty.com":                 false,
		"https:///v2/enqueue":                          false,
		"ftp://events.pagerduty.com/v2/enqueue":        false,
		"https://a b/v2/enqueue":                       false,
	} {
		_, err := pagerduty.Hosts{"127.0.0.1:1"}.Client(address)
		if valid && err != nil || !valid && !errors.Is(err, pagerduty.ErrURL) {
			t.Errorf("%q: error %v, want valid %t", address, err, valid)
		}
	}
}

func TestFailures(t *testing.T) {
	for code, refused := range map[int]bool{400: true, 401: true, 408: false, 429: false, 500: false, 503: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"status":"invalid event","message":"Event object is invalid","errors":["x"]}`))
		}))
		c := client(t, server.URL)
		for what, err := range map[string]error{
			"trigger": c.Trigger(t.Context(), key, pagerduty.Event{Summary: "x", Source: "x", Severity: "info"}),
			"resolve": c.Resolve(t.Context(), key, "x"),
			"change":  c.Change(t.Context(), key, pagerduty.Change{Summary: "x"}),
		} {
			if err == nil || errors.Is(err, pagerduty.ErrRefused) != refused || strings.Contains(err.Error(), key) {
				t.Errorf("%s, status %d: error is %v, want refused %t and no key", what, code, err, refused)
			}
			if errors.Is(err, pagerduty.ErrNotAccepted) != (code == 429 || code == 503) {
				t.Errorf("%s, status %d: error is %v", what, code, err)
			}
		}
		server.Close()
		if err := c.Resolve(t.Context(), key, "x"); err == nil || !errors.Is(err, pagerduty.ErrNotAccepted) {
			t.Errorf("nobody listens: error is %v, want one that may go away", err)
		}
	}
}

func client(t *testing.T, base string) *pagerduty.Client {
	t.Helper()
	c, err := pagerduty.Hosts{strings.TrimPrefix(base, "http://")}.Client(base + "/v2/enqueue")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
