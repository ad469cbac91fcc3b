// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/bellwether-dev/bellwether/inventory"
	"github.com/bellwether-dev/bellwether/inventory/store"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// user answers from a store, as a user sees it.
type user struct {
	*store.Store
	visible inventory.Visible
	err     error
}

func (u *user) Query(ctx context.Context, r inventory.Request) (*inventory.Answer, error) {
	at := noon.Add(time.Hour)
	if r.At != nil {
		at = *r.At
	}
	if u.err != nil {
		return nil, u.err
	}
	return u.Store.Query(ctx, inventory.Query{SQL: r.SQL, Arguments: r.Arguments, At: at, Visible: u.visible})
}

// fact returns the facts that are one row, whose other values are NULL.
func fact(table *inventory.Table, values map[string]any, key ...string) inventory.Facts {
	r := inventory.Row{Key: key, Values: make([]any, len(table.Values))}
	for i, c := range table.Values {
		r.Values[i] = values[c.Name]
		delete(values, c.Name)
	}
	if len(values) > 0 {
		panic(fmt.Sprint("no columns ", values))
	}
	return inventory.Facts{Table: table, Owner: key, Rows: []inventory.Row{r}}
}

// attack is a text that must not become a part of a page.
const attack = `<script>alert("x")</script>'"{{.}}`

// newStore returns the inventory of a fleet of three clusters, in which an upgrade halts.
func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "inventory.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	record := func(minute int, facts ...inventory.Facts) {
		t.Helper()
		batch := store.Batch{Source: inventory.FromHub, At: noon.Add(time.Duration(minute) * time.Minute),
			Facts: slices.Values(facts), IsComplete: minute == 0}
		if err := s.Record(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	cluster := func(name, region string, stale any) inventory.Facts {
		return fact(
			inventory.Clusters,
			map[string]any{"labels": `{"region":"` + region + `"}`, "online": "True", "ready": "True",
				"reason": "Succeeded", "stale_since": stale, "kubernetes": "v1.34.1", "paused": int64(0)},
			name,
		)
	}
	install := func(cluster, version, ready, reason, message string) inventory.Facts {
		return fact(
			inventory.Installs,
			map[string]any{"version": version, "ready": ready, "reason": reason, "message": message,
				"rollout": "echo-2", "wave": "canary"},
			"team-a",
			"echo",
			cluster,
		)
	}
	operator := func(target string) inventory.Facts {
		return fact(inventory.Operators, map[string]any{"package": "echo", "catalog": "main", "channel": "stable",
			"target": target, "waiting_version": "2.0.0", "ready": "False", "reason": "RolloutHalted",
			"message":  attack,
			"selected": int64(3), "updated": int64(1), "ready_clusters": int64(2)}, "team-a", "echo")
	}
	record(
		0,
		cluster("prod-1", "eu", nil),
		cluster("prod-2", "us", nil),
		cluster("prod-3", "eu", "2026-11-24T11:30:00Z"),
		operator("1.1.0"),
		install("prod-1", "1.1.0", "True", "Succeeded", "runs"),
		install("prod-2", "1.1.0", "True", "Succeeded", "runs"),
	)
	record(
		1,
		operator("1.2.0"),
		install("prod-1", "1.2.0", "False", "WorkloadUnavailable", attack),
		fact(
			inventory.Rollouts,
			map[string]any{"operator": "echo", "version": "1.2.0", "phase": "Halted", "revision": int64(2),
				"message": "a gate failed", "started_at": "2026-11-24T12:01:00Z",
				"total": int64(3), "succeeded": int64(0),
				"failed": int64(1), "paused": int64(0)},
			"team-a",
			"echo-2",
		),
		fact(
			inventory.Waves,
			map[string]any{"position": int64(1), "phase": "Verifying", "total": int64(1)},
			"team-a",
			"echo-2",
			"canary",
		),
		fact(
			inventory.Gates,
			map[string]any{"verdict": "Failed", "evidence": "burn rate 20", "approval": int64(0)},
			"team-a",
			"echo-2",
			"canary",
			"budget",
		),
		fact(
			inventory.Decisions,
			map[string]any{"reason": "tested"},
			"team-a",
			"echo",
			"2026-11-24T12:01:00Z",
			"Approved",
			"echo-2",
			"canary/people",
			"anna",
		),
	)
	for minute := 2; minute <= 60; minute++ { // the hub goes on observing
		record(minute)
	}
	return s
}

// browser is a user with a browser.
type browser struct {
	*http.Client
	server *httptest.Server
}

// newBrowser serves the console for users by their tokens.
func newBrowser(t *testing.T, users map[string]*user, now func() time.Time) *browser {
	t.Helper()
	h, err := New(Options{Now: now, IsInsecure: true, Login: func(_ context.Context, token string) (Inventory, error) {
		if u := users[token]; u != nil {
			return u, nil
		}
		return nil, fmt.Errorf("%w: it is not valid", ErrLogin)
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{&http.Client{Jar: jar}, server}
}

// get returns a page as HTML, and its status.
func (b *browser) get(t *testing.T, path string) (string, int) {
	t.Helper()
	response, err := b.Get(b.server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response), response.StatusCode
}

func (b *browser) post(t *testing.T, path string, form url.Values) (string, int) {
	t.Helper()
	response, err := b.PostForm(b.server.URL+path, form)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response), response.StatusCode
}

// read returns the body of a page, which must be HTML without scripts and styles of its own.
func read(t *testing.T, response *http.Response) string {
	t.Helper()
	defer func() { _ = response.Body.Close() }()
	var b strings.Builder
	if err := response.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(response.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s has no policy", response.Request.URL)
	}
	_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
	document, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		if node.Data == "script" || node.Data == "style" || node.Data == "iframe" || node.Data == "img" {
			t.Errorf("%s has the element %s", response.Request.URL, node.Data)
		}
		for _, a := range node.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") ||
				strings.HasPrefix(strings.TrimSpace(a.Val), "javascript:") {
				t.Errorf("%s has the attribute %s=%q", response.Request.URL, a.Key, a.Val)
			}
		}
	}
	return body
}

func (b *browser) login(t *testing.T, token string) (string, int) {
	t.Helper()
	return b.post(t, "/login", url.Values{"token": {token}})
}

// TestPages reads every page now and as of an earlier time.
func TestPages(t *testing.T) {
	s := newStore(t)
	b := newBrowser(
		t,
		map[string]*user{"1": {Store: s, visible: inventory.Visible{AllClusters: true, AllNamespaces: true}}},
		func() time.Time { return noon },
	)
	if page, status := b.get(t, "/"); status != 200 || !strings.Contains(page, "Token of the hub") {
		t.Errorf("without a login: status %d\n%s", status, page)
	}
	if page, status := b.login(t, "1"); status != 200 || !strings.Contains(page, "3 clusters") {
		t.Fatalf("after the login: status %d\n%s", status, page)
	}
	for path, want := range map[string][]string{
		"/": {"3 clusters", "1 without current reports", "prod-1", "1.2.0", "WorkloadUnavailable", "2 of 3 ready",
			"last report <time datetime=\"2026-11-24T11:30:00Z\">2026-11-24 11:30:00<"},
		"/?at=2026-11-24T12:00":       {"As of", "1.1.0", "/clusters/prod-1?at=2026-11-24T12%3A00", ">Now<"},
		"/?label=region=us":           {"prod-2"},
		"/?state=stale":               {"prod-3"},
		"/?state=not-ready&name=prod": {"prod-1"},
		"/?name=nothing":              {"No cluster matches."},
		"/?after=prod-1":              {"prod-2"},
		"/operators":                  {"team-a", "2.0.0 waits for an approval", "RolloutHalted"},
		"/operators/team-a/echo":      {"package echo", "Not ready", "echo-2", "anna", "Versions on clusters"},
		"/rollouts":                   {"echo-2", "Halted", "0 of 3, 1 failed"},
		"/rollouts/team-a/echo-2":     {"Wave canary", "burn rate 20", "Failed", "prod-1", "What happened"},
		"/clusters/prod-1":            {"Kubernetes v1.34.1", "team-a/echo", "1.1.0", "1.2.0", "What changed"},
		"/clusters/prod-3": {"none since <time datetime=\"2026-11-24T11:30:00Z\"",
			"You see no operators on it."},
		"/waiting":                          {"budget", "Versions to approve", "Halted rollouts"},
		"/waiting?at=2026-11-24T12:00:30":   {"Versions to approve"},
		"/decisions":                        {"anna", "Approved", "canary/people", "tested"},
		"/decisions?at=2026-11-24T12:00:30": {"Nobody has decided anything."},
	} {
		page, status := b.get(t, path)
		if status != 200 {
			t.Errorf("%s: status %d\n%s", path, status, page)
		}
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s lacks %q:\n%s", path, text, page)
			}
		}
	}
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/machines":               {404, "There is no such page."},
		"/clusters/other":         {404, "you see no cluster other"},
		"/operators/team-a/other": {404, "you see no operator team-a/other"},
		"/rollouts/team-a/other":  {404, "you see no rollout team-a/other"},
		"/?at=noon":               {400, "cannot be read"},
		"/?at=2020-01-01":         {400, "the inventory begins at 2026-11-24T12:00:00Z"},
		"/?state=x":               {404, "there is no state"},
	} {
		if page, status := b.get(t, path); status != want.status || !strings.Contains(page, want.text) {
			t.Errorf("%s: status %d\n%s", path, status, page)
		}
	}
}

// TestPagesShowOnlyTheUsersPart shows pages to a user who sees no cluster and another namespace.
func TestPagesShowOnlyTheUsersPart(t *testing.T) {
	s := newStore(t)
	b := newBrowser(t, map[string]*user{"1": {Store: s, visible: inventory.Visible{Namespaces: []string{"team-b"}}}},
		func() time.Time { return noon })
	b.login(t, "1")
	for _, path := range []string{"/", "/operators", "/rollouts", "/waiting", "/decisions", "/clusters/prod-1",
		"/operators/team-a/echo", "/rollouts/team-a/echo-2"} {
		page, _ := b.get(t, path)
		for _, secret := range []string{"prod-2", "1.2.0", "burn rate", "anna", "3 clusters"} {
			if strings.Contains(page, secret) {
				t.Errorf("%s shows %q", path, secret)
			}
		}
	}
}

// TestSessions begins and ends sessions.
func TestSessions(t *testing.T) {
	s := newStore(t)
	now := noon
	anna := &user{Store: s, visible: inventory.Visible{AllClusters: true, AllNamespaces: true}}
	b := newBrowser(t, map[string]*user{"1": anna}, func() time.Time { return now })
	isLoggedIn := func() bool {
		page, _ := b.get(t, "/operators")
		return strings.Contains(page, "Log out")
	}
	if page, status := b.login(t, "2"); status != http.StatusUnauthorized ||
		!strings.Contains(page, "it is not valid") {
		t.Errorf("with another token: status %d\n%s", status, page)
	}
	b.login(t, "1")
	if !isLoggedIn() {
		t.Error("not logged in after the login")
	}
	now = now.Add(sessionLifetime + time.Second)
	if isLoggedIn() {
		t.Error("still logged in after the session's lifetime")
	}
	b.login(t, "1")
	b.post(t, "/logout", nil)
	if isLoggedIn() {
		t.Error("still logged in after the logout")
	}
	b.login(t, "1")
	anna.err = fmt.Errorf("%w: it was revoked", ErrLogin)
	if isLoggedIn() {
		t.Error("still logged in with a revoked token")
	}
	anna.err = nil
	if isLoggedIn() {
		t.Error("the session goes on after the token was revoked")
	}
}

// TestOtherSitesCannotPost sends forms from another site.
func TestOtherSitesCannotPost(t *testing.T) {
	b := newBrowser(t, nil, func() time.Time { return noon })
	for _, path := range []string{"/login", "/logout"} {
		request, err := http.NewRequest(http.MethodPost, b.server.URL+path, strings.NewReader("token=1"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", "cross-site")
		response, err := b.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d", path, response.StatusCode)
		}
	}
}
