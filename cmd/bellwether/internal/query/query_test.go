// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/inventory"
)

// fakeHub answers each query with the same rows, and keeps the request.
type fakeHub struct {
	answer  inventory.Answer
	failure string
	got     inventory.Request
	token   string
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.token = r.Header.Get("Authorization")
	if err := json.NewDecoder(r.Body).Decode(&h.got); err != nil || r.URL.Path != inventory.QueryPath {
		http.Error(w, "no query", http.StatusNotFound)
		return
	}
	var body any = h.answer
	if h.failure != "" {
		w.WriteHeader(http.StatusBadRequest)
		body = inventory.Failure{Error: h.failure}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// start serves the hub with TLS, and returns the flags with which it is reached.
func (h *fakeHub) start(t *testing.T) []string {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	ca, token := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "token")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for path, content := range map[string][]byte{ca: block, token: []byte("token-of-anna\n")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--inventory", server.URL + "/", "--inventory-ca-file", ca, "--inventory-token-file", token}
}

func observed(at time.Time) map[inventory.Source]time.Time {
	return map[inventory.Source]time.Time{inventory.FromHub: at}
}

// TestQuery asks questions and prints the answer in each format.
func TestQuery(t *testing.T) {
	h := &fakeHub{answer: inventory.Answer{Columns: []string{"cluster", "version", "share"}, At: fixture.Noon,
		Observed: observed(fixture.Noon), Rows: [][]any{{"prod-1", "1.2.0", 0.5}, {"prod-2, old", nil, 12345678}}}}
	flags := h.start(t)
	run := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.NewHub().Run(t, append(append([]string{"query"}, args...), flags...)...)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"table": {nil, "CLUSTER       VERSION   SHARE\n" +
			"prod-1        1.2.0     0.5\nprod-2, old   -         12345678\n"},
		"csv": {[]string{"-o", "csv"}, "cluster,version,share\nprod-1,1.2.0,0.5\n\"prod-2, old\",,12345678\n"},
		"yaml": {[]string{"-o", "yaml"}, "- cluster: prod-1\n  share: 0.5\n  version: 1.2.0\n- cluster: prod-2, old\n" +
			"  share: 12345678\n  version: null\n"},
	} {
		r := run(
			append(
				[]string{"who-ran", "operator=echo", "version=1.2.0", "--at", "2026-11-20T10:00+01:00"},
				c.args...)...)
		if diff := cmp.Diff(c.want, r.Out); diff != "" || r.Code != 0 || r.Err != "" {
			t.Errorf("%s: code %d, %s (-want +got):\n%s", name, r.Code, r.Err, diff)
		}
	}
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	if h.got.At == nil || !h.got.At.Equal(at) {
		t.Errorf("asked about %v, want %v", h.got.At, at)
	}
	h.got.At = nil
	if diff := cmp.Diff(inventory.Request{Question: "who-ran",
		Arguments: map[string]string{"operator": "echo", "version": "1.2.0"}}, h.got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if h.token != "Bearer token-of-anna" {
		t.Errorf("token %q", h.token)
	}
	run("SELECT 1", "--at", "-2h")
	if want := fixture.Noon.Add(-2 * time.Hour); h.got.SQL != "SELECT 1" || !h.got.At.Equal(want) {
		t.Errorf("request %+v", h.got)
	}
}

// TestQueryWarnsOfGaps says that the answer is not what was true at that time.
func TestQueryWarnsOfGaps(t *testing.T) {
	h := &fakeHub{answer: inventory.Answer{Columns: []string{"x"}, At: fixture.Noon, Truncated: true,
		Observed: observed(fixture.Noon.Add(-time.Hour)), Rows: [][]any{{1}}}}
	r := clitest.NewHub().Run(t, append([]string{"query", "SELECT 1"}, h.start(t)...)...)
	for _, want := range []string{"The hub did not observe the fleet at ", "what it observed last, at ",
		"more rows than the first 1"} {
		if !strings.Contains(r.Err, want) {
			t.Errorf("%q is missing in:\n%s", want, r.Err)
		}
	}
	h.answer = inventory.Answer{At: fixture.Noon, Observed: observed(fixture.Noon)}
	if r := clitest.NewHub().Run(t, append([]string{"query", "SELECT 1"}, h.start(t)...)...); r.Err != "No rows.\n" {
		t.Errorf("without rows: %s", r.Err)
	}
}

// TestQueryFailures are mistakes, each with what to do.
func TestQueryFailures(t *testing.T) {
	h := &fakeHub{failure: "the query cannot be answered: no such column: x"}
	flags := h.start(t)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	token := flags[len(flags)-2:]
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a",
		"contexts":[{"name":"a","context":{"cluster":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	to := func(address string, more ...string) []string {
		return append([]string{"SELECT 1", "--inventory", address}, more...)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no server": {[]string{"SELECT 1"},
			"no address of the hub's inventory: set --inventory or BELLWETHER_INVENTORY"},
		"no URL":             {to("hub"), `invalid value "hub" of --inventory`},
		"HTTP":               {to("http://hub.example.com", token...), "must not cross a network"},
		"no time":            {append([]string{"SELECT 1", "--at", "noon"}, flags...), `invalid value "noon" of --at`},
		"no argument":        {append([]string{"who-ran", "echo"}, flags...), "write it as NAME=VALUE"},
		"no quotes":          {append([]string{"SELECT", "1"}, flags...), `invalid argument "1"`},
		"two statements":     {append([]string{"SELECT 1", "SELECT 2"}, flags...), "put the whole statement in quotes"},
		"--views and more":   {append([]string{"versions", "--views"}, flags...), "exclude each other"},
		"a refused query":    {append([]string{"SELECT x"}, flags...), "no such column: x"},
		"another server":     {to(other.URL, token...), "is no inventory of a hub"},
		"nobody there":       {to("http://127.0.0.1:1", token...), "cannot reach the hub's inventory"},
		"an unknown issuer":  {to(flags[1], token...), "certificate"},
		"no token, no files": {to(flags[1]), "no kubeconfig"},
		"another user":       {to(flags[1], "--as", "bob", "--kubeconfig", kubeconfig), "does not support --as"},
		"no token":           {to(flags[1], "--kubeconfig", kubeconfig), "the kubeconfig has no token"},
		"an unknown format":  {append([]string{"SELECT 1", "-o", "xml"}, flags...), `invalid value "xml" of -o`},
	} {
		r := clitest.NewHub().Run(t, append([]string{"query"}, c.args...)...)
		if r.Code != 1 || !strings.Contains(r.Err, c.want) {
			t.Errorf("%s: code %d\n%s%s", name, r.Code, r.Out, r.Err)
		}
	}
}

// TestQueryLists prints what can be asked.
func TestQueryLists(t *testing.T) {
	questions := clitest.NewHub().Run(t, "query")
	for _, q := range inventory.Questions() {
		if !strings.Contains(questions.Out, q.Name+" ") {
			t.Errorf("the question %s is not listed:\n%s", q.Name, questions.Out)
		}
	}
	views := clitest.NewHub().Run(t, "query", "--views")
	for _, v := range inventory.Views() {
		if !strings.Contains(views.Out, "\n"+v.Name+": ") && !strings.HasPrefix(views.Out, v.Name+": ") {
			t.Errorf("the view %s is not listed", v.Name)
		}
	}
	if r := clitest.NewHub().Run(t, "query", "--views", "-o", "json"); !json.Valid([]byte(r.Out)) {
		t.Errorf("--views -o json: %s%s", r.Out, r.Err)
	}
}
