// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
)

const silences = `[{"id":"s1","createdBy":"anna","comment":"disk is replaced","status":{"state":"active"},
"updatedAt":"2026-11-21T10:00:00.000Z","startsAt":"2026-11-21T10:00:00.000Z","endsAt":"2026-11-21T14:00:00.000Z",
"matchers":[{"name":"cluster","value":"prod-1","isRegex":false,"isEqual":true},
{"name":"alertname","value":"Bellwether.+","isRegex":true},
{"name":"severity","value":"page","isRegex":false,"isEqual":false}]}]`

const firing = `[{"labels":{"alertname":"BellwetherHubDown"},"annotations":{},"fingerprint":"f","receivers":[],
"startsAt":"2026-11-21T10:00:00.000Z","endsAt":"2026-11-21T14:00:00.000Z","updatedAt":"2026-11-21T10:00:00.000Z",
"status":{"state":"suppressed","silencedBy":["s1"],"inhibitedBy":[],"mutedBy":[]}}]`

// server answers by path, and keeps the last request.
func server(t *testing.T, answers map[string]string) (*httptest.Server, *http.Request) {
	t.Helper()
	last := &http.Request{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = *r
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s, last
}

func TestReads(t *testing.T) {
	s, last := server(t, map[string]string{"/prefix/api/v2/silences": silences, "/prefix/api/v2/alerts": firing})
	folder := t.TempDir()
	token, ca := filepath.Join(folder, "token"), filepath.Join(folder, "ca")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := errors.Join(os.WriteFile(token, []byte("t0ken"), 0o600), os.WriteFile(ca, authority, 0o600)); err != nil {
		t.Fatal(err)
	}
	c, err := alertmanager.Endpoint{URL: s.URL + "/prefix/", TokenFile: token, CAFile: ca}.Client()
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Silences(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ten := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	want := []alertmanager.Silence{{ID: "s1", By: "anna", Comment: "disk is replaced", Starts: ten,
		Ends: ten.Add(4 * time.Hour), Matchers: []alertmanager.Matcher{{Name: "cluster", Value: "prod-1"},
			{Name: "alertname", Value: "Bellwether.+", Regex: true},
			{Name: "severity", Value: "page", Negated: true}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("silences (-want +got):\n%s", diff)
	}
	if header := last.Header.Get("Authorization"); header != "Bearer t0ken" {
		t.Errorf("the request is authorized by %q", header)
	}
	alerts, err := c.Alerts(t.Context(), `alertname=~"Bellwether.+"`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]alertmanager.Alert{{Labels: map[string]string{"alertname": "BellwetherHubDown"},
		Annotations: map[string]string{}, Since: ten, SilencedBy: []string{"s1"}}}, alerts); diff != "" {
		t.Errorf("alerts (-want +got):\n%s", diff)
	}
	if filter := last.URL.Query()["filter"]; len(filter) != 1 || filter[0] != `alertname=~"Bellwether.+"` {
		t.Errorf("the filter is %q", filter)
	}
}

// TestFailuresAreErrors has responses that must not be treated as "there are no silences".
func TestFailuresAreErrors(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	answer := func(status int, contentType, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	unknown, _ := server(t, nil)
	const json, html = "application/json", "text/html; charset=utf-8"
	for name, test := range map[string]struct{ url, want string }{
		"no URL":           {"alertmanager:9093", "invalid address of Alertmanager"},
		"no scheme":        {"//host", "invalid address of Alertmanager"},
		"nobody listens":   {closed.URL, "connection refused"},
		"a password":       {strings.Replace(closed.URL, "//", "//anna:secret@", 1), "anna:xxxxx@"},
		"a login":          {answer(401, html, "<html>"), "it answered with status 401"},
		"out of order":     {answer(503, json, "down"), "it answered with status 503"},
		"an error":         {answer(500, json, `"no storage"`), "it answered with status 500: no storage"},
		"a page":           {answer(200, html, "<html>"), "read the silences of Alertmanager at"},
		"an empty answer":  {answer(200, json, ""), "the answer has no list"},
		"nothing":          {answer(200, json, "null"), "the answer has no list"},
		"a broken answer":  {answer(200, json, `[{"id":`), "unexpected EOF"},
		"another answer":   {answer(200, json, `{"status":"success"}`), "cannot unmarshal object"},
		"no authority":     {unknown.URL, "certificate"},
		"a broken address": {"http://[::1", "invalid address of Alertmanager"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := alertmanager.Endpoint{URL: test.url}.Client()
			if err == nil {
				_, err = c.Silences(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestTheCauseOfATimeoutIsTold(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no answer within 30s"))
	c, err := alertmanager.Endpoint{URL: s.URL}.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Alerts(ctx); err == nil || !strings.HasSuffix(err.Error(), ": no answer within 30s") {
		t.Errorf("error %v", err)
	}
}
