// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// pull is a pull request in the form of the API.
type pull struct {
	Number  int     `json:"number"`
	State   string  `json:"state"`
	Title   string  `json:"title"`
	Body    string  `json:"body"`
	Merged  *string `json:"merged_at"`
	HTMLURL string  `json:"html_url"`
	Labels  []named `json:"labels"`
	Head    ref     `json:"head"`
	Base    ref     `json:"base"`
	repo    string
}

// text returns the body as it was sent.
func (p *pull) text() string { return strings.ReplaceAll(p.Body, "\r\n", "\n") }

type (
	named struct {
		Name string `json:"name"`
	}
	ref struct {
		Ref string `json:"ref"`
		SHA string `json:"sha,omitempty"`
	}
)

// server implements GitHub's API for pull requests, with the same checks, for bare repositories in a folder.
type server struct {
	t     *testing.T
	dir   string
	mu    sync.Mutex
	pulls []*pull
	// requests are the methods and paths of all requests; writes counts the requests that change data.
	requests []string
	writes   int
	// refusals are the responses to the first requests.
	refusals []func(http.ResponseWriter)
}

const token = "good"

// startGitHub serves the repositories OWNER/NAME.git in a folder.
func startGitHub(t *testing.T, dir string) (*server, *GitHub) {
	t.Helper()
	s := &server{t: t, dir: dir}
	http := httptest.NewServer(s)
	t.Cleanup(http.Close)
	return s, s.client(http.URL, token)
}

func (s *server) client(address, token string) *GitHub {
	s.t.Helper()
	g, err := NewGitHub(address, token)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if value != nil {
		_ = json.NewEncoder(w).Encode(value)
	}
}

func refuse(w http.ResponseWriter, status int, message string, fields ...string) {
	errs := []map[string]string{}
	for _, f := range fields {
		errs = append(errs, map[string]string{"resource": "PullRequest", "code": "invalid", "field": f,
			"message": message})
	}
	answer(w, status, map[string]any{"message": message, "errors": errs,
		"documentation_url": "https://docs.github.com/rest"})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v3/repos/")
	parts := strings.Split(path, "/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		refuse(w, http.StatusUnauthorized, "Bad credentials")
		return
	case len(s.refusals) > 0:
		first := s.refusals[0]
		s.refusals = s.refusals[1:]
		first(w)
		return
	case !ok || len(parts) < 3 || r.Header.Get("User-Agent") == "" ||
		!isThere(filepath.Join(s.dir, parts[0], parts[1]+".git")):
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	repo, rest := parts[0]+"/"+parts[1], parts[2:]
	if r.Method != http.MethodGet {
		s.writes++
	}
	switch {
	case r.Method == http.MethodGet && len(rest) == 1 && rest[0] == "pulls":
		s.list(w, r, repo)
	case r.Method == http.MethodPost && len(rest) == 1 && rest[0] == "pulls":
		s.create(w, r, repo)
	case r.Method == http.MethodPatch && len(rest) == 2 && rest[0] == "issues":
		s.edit(w, r, repo, rest[1])
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request, repo string) {
	q, out := r.URL.Query(), []*pull{}
	owner, branch, _ := strings.Cut(q.Get("head"), ":")
	for _, p := range slices.Backward(s.pulls) {
		matches := p.repo == repo && (q.Get("state") == "all" || p.State == cmp.Or(q.Get("state"), "open"))
		if matches && strings.HasPrefix(repo, owner+"/") && p.Head.Ref == branch && p.Base.Ref == q.Get("base") {
			out = append(out, p)
		}
	}
	answer(w, http.StatusOK, out)
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil || r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return false
	}
	return true
}

func (s *server) has(repo, branch string) bool {
	return remoteHas(s.t, filepath.Join(s.dir, repo+".git"), branch)
}

func (s *server) create(w http.ResponseWriter, r *http.Request, repo string) {
	var in struct {
		Title, Head, Base, Body string
	}
	if !decode(w, r, &in) {
		return
	}
	same := func(p *pull) bool {
		return p.repo == repo && p.State == "open" && p.Head.Ref == in.Head && p.Base.Ref == in.Base
	}
	switch {
	case in.Title == "":
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed", "title")
	case !s.has(repo, in.Head):
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed", "head")
	case !s.has(repo, in.Base):
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed", "base")
	case slices.ContainsFunc(s.pulls, same):
		refuse(w, http.StatusUnprocessableEntity, "A pull request already exists for acme:"+in.Head+".", "head")
	case len(in.Body) > 65536:
		refuse(w, http.StatusUnprocessableEntity, "body is too long (maximum is 65536 characters)", "body")
	default:
		p := &pull{Number: len(s.pulls) + 1, State: "open", Title: in.Title, Body: in.Body, repo: repo,
			Labels: []named{}, Head: ref{Ref: in.Head}, Base: ref{Ref: in.Base}}
		p.HTMLURL = fmt.Sprintf("https://github.example.com/%s/pull/%d", repo, p.Number)
		s.pulls = append(s.pulls, p)
		answer(w, http.StatusCreated, p)
	}
}

func (s *server) edit(w http.ResponseWriter, r *http.Request, repo, number string) {
	in := struct {
		Title, Body *string
		Labels      []string
	}{}
	at := slices.IndexFunc(s.pulls, func(p *pull) bool { return p.repo == repo && fmt.Sprint(p.Number) == number })
	switch {
	case at < 0:
		refuse(w, http.StatusNotFound, "Not Found")
		return
	case !decode(w, r, &in):
		return
	}
	p := s.pulls[at]
	if in.Title != nil {
		p.Title = *in.Title
	}
	if in.Body != nil {
		p.Body = strings.ReplaceAll(*in.Body, "\n", "\r\n") // like GitHub's editor
	}
	if in.Labels != nil {
		p.Labels = nil
		for _, name := range in.Labels {
			p.Labels = append(p.Labels, named{name})
		}
	}
	answer(w, http.StatusOK, p)
}

// merge merges a pull request with the content of its branch, like a user on GitHub's page.
func (s *server) merge(p *pull) {
	s.t.Helper()
	dir, merged := filepath.Join(s.dir, p.repo+".git"), "2026-11-28T12:00:00Z"
	p.State, p.Merged, p.Head.SHA = "closed", &merged, git(s.t, dir, "rev-parse", "refs/heads/"+p.Head.Ref)
	git(s.t, dir, "update-ref", "refs/heads/"+p.Base.Ref, p.Head.SHA)
}

func limited(status int, headers map[string]string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		refuse(w, status, "You have exceeded a secondary rate limit")
	}
}

// TestRateLimits checks that a client waits as long as GitHub requires, but not forever.
func TestRateLimits(t *testing.T) {
	reset := func(d time.Duration) map[string]string {
		return map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "5000",
			"X-RateLimit-Reset": fmt.Sprint(time.Now().Add(d).Unix())}
	}
	for name, c := range map[string]struct {
		refusals []func(http.ResponseWriter)
		waits    int
		longest  time.Duration
		failed   bool
	}{
		"secondary, 403": {[]func(http.ResponseWriter){limited(403, map[string]string{"Retry-After": "7"})}, 1,
			7 * time.Second, false},
		"secondary, 429": {[]func(http.ResponseWriter){limited(429, map[string]string{"Retry-After": "7"})}, 1,
			7 * time.Second, false},
		"without a word": {[]func(http.ResponseWriter){limited(429, nil)}, 1, time.Minute, false},
		"primary": {[]func(http.ResponseWriter){limited(403, reset(30*time.Second))}, 1, 31 * time.Second,
			false},
		"an hour":       {[]func(http.ResponseWriter){limited(403, reset(time.Hour))}, 0, 0, true},
		"no permission": {[]func(http.ResponseWriter){limited(403, nil)}, 0, 0, true},
		"again and again": {slices.Repeat([]func(http.ResponseWriter){
			limited(403, map[string]string{"Retry-After": "7"})}, 9), 2, 7 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "echo")
			var waits []time.Duration
			f.GitHub.wait = func(_ context.Context, d time.Duration) error {
				waits = append(waits, d)
				return nil
			}
			f.server.refusals = c.refusals
			u := f.update()[0]
			if (u.Outcome == Failed) != c.failed || u.Outcome != Failed && u.Outcome != Opened {
				t.Errorf("got %s", u)
			}
			if len(waits) != c.waits || len(waits) > 0 && slices.Max(waits) > c.longest {
				t.Errorf("waited %v", waits)
			}
		})
	}
}

// TestWrongTokens checks the error message, and that the token is sent to no other server.
func TestWrongTokens(t *testing.T) {
	f := newFixture(t, "echo")
	f.GitHub = f.server.client(f.GitHub.client.BaseURL.String(), "bad")
	if u := f.update()[0]; u.Outcome != Failed || !strings.Contains(u.Detail, "401 Bad credentials") ||
		strings.Contains(u.Detail, "bad") {
		t.Errorf("got %s", u)
	}
	if f.server.writes > 0 || f.branch("echo", "") != "" {
		t.Error("something was pushed")
	}
	leaked := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked = r.Header.Get("Authorization")
	}))
	defer elsewhere.Close()
	redirect := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusMovedPermanently))
	defer redirect.Close()
	f.GitHub = f.server.client(redirect.URL, token)
	if u := f.update()[0]; u.Outcome != Failed || leaked != "" {
		t.Errorf("got %s; the token was sent elsewhere: %q", u, leaked)
	}
	for _, address := range []string{"http://github.example.com", "://", "github.example.com"} {
		if _, err := NewGitHub(address, token); err == nil {
			t.Errorf("%s is not refused", address)
		}
	}
}
