// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// To record: promtool tsdb create-blocks-from openmetrics testdata/prometheus/budgets.openmetrics DIR, start
// Prometheus on DIR with --storage.tsdb.retention.time=10y, then run TestSLOBudgets with -record URL -update.
var record = flag.String("record", "",
	"the URL of a Prometheus with testdata/prometheus/budgets.openmetrics, whose answers are recorded")

// recording is a Prometheus server that returns the recorded responses of a real server.
type recording struct {
	*httptest.Server

	// retention is the retention time that the server reports.
	retention string
	mu        sync.Mutex
	answers   map[string]json.RawMessage // by path and form
}

const recorded = "testdata/prometheus/answers.json"

func newRecording(t *testing.T) *recording {
	t.Helper()
	r := &recording{retention: "10y", answers: map[string]json.RawMessage{}}
	if *record == "" {
		text, err := os.ReadFile(recorded)
		if err == nil {
			err = json.Unmarshal(text, &r.answers)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := q.ParseForm(); err != nil {
			t.Error(err)
		}
		if q.URL.Path == "/api/v1/status/runtimeinfo" {
			_, _ = fmt.Fprintf(w, `{"status":"success","data":{"storageRetention":%q}}`, r.retention)
			return
		}
		key := q.URL.Path + "?" + q.Form.Encode()
		r.mu.Lock()
		defer r.mu.Unlock()
		if *record != "" {
			r.ask(t, key, q.URL.Path, q.Form)
		}
		answer, known := r.answers[key]
		if !known {
			t.Errorf("this was not recorded: %s", key)
			http.NotFound(w, q)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(func() {
		r.Close()
		if *record == "" {
			return
		}
		if err := r.save(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *recording) ask(t *testing.T, key, path string, form url.Values) {
	answer, err := http.PostForm(*record+path, form)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	r.answers[key] = text
}

// save writes one response per line.
func (r *recording) save() error {
	var text bytes.Buffer
	text.WriteString("{")
	for i, key := range slices.Sorted(maps.Keys(r.answers)) {
		if i > 0 {
			text.WriteString(",")
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		text.WriteString("\n" + string(name) + ": ")
		if err := json.Compact(&text, r.answers[key]); err != nil {
			return err
		}
	}
	text.WriteString("\n}\n")
	return os.WriteFile(recorded, text.Bytes(), 0o600)
}

func TestSLOBudgets(t *testing.T) {
	p := newRecording(t)
	for name, args := range map[string][]string{
		"list":      {"slo", "list"},
		"list-all":  {"slo", "list", "--all"},
		"list-json": {"slo", "list", "-o", "json"},
		"get":       {"slo", "get", "echo"},
		"get-quiet": {"slo", "get", "cert-manager", "--all"},
		"get-yaml":  {"slo", "get", "fleet/backup", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.NewHub().Run(t, append(args, "--prometheus", p.URL)...)
			if got.Code != exit.OK || got.Err != "" {
				t.Fatalf("%d %s", got.Code, got.Err)
			}
			path := filepath.Join("testdata", "prometheus", name+".txt")
			if *fixture.Update {
				if err := os.WriteFile(path, []byte(got.Out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.Out); diff != "" {
				t.Errorf("output; run with -update if it should be so (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("samples are deleted too early", func(t *testing.T) {
		p.retention = "15d or 10GiB"
		want := "Prometheus deletes samples after 15d, and the longest budget is for 30d: failures before that are " +
			"not counted. Set --storage.tsdb.retention.time of Prometheus to at least 30d, or make the period " +
			"shorter.\n"
		for _, args := range [][]string{{"slo", "list"}, {"slo", "get", "echo"}} {
			got := clitest.NewHub().Run(t, append(args, "--prometheus", p.URL)...)
			if got.Code != exit.OK || got.Err != want {
				t.Errorf("%v: exit code %d, %q, want %q", args, got.Code, got.Err, want)
			}
		}
		for _, retention := range []string{"30d", "10GiB", ""} {
			p.retention = retention
			if got := clitest.NewHub().Run(t, "slo", "list", "--prometheus", p.URL); got.Err != "" {
				t.Errorf("%q: %s", retention, got.Err)
			}
		}
	})
	t.Run("a name of two operators", func(t *testing.T) {
		got := clitest.NewHub().Run(t, "slo", "get", "backup", "--prometheus", p.URL)
		want := "Error: operators of 2 namespaces have the name \"backup\"\nHint:  use one of fleet/backup, " +
			"staging/backup\n"
		if got.Code != exit.Error || got.Err != want {
			t.Errorf("%d %q, want %q", got.Code, got.Err, want)
		}
	})
	t.Run("another operator", func(t *testing.T) {
		got := clitest.NewHub().Run(t, "slo", "get", "ehco", "--prometheus", p.URL)
		want := "Error: Prometheus at " + p.URL +
			" has no objectives for operator \"ehco\"\nHint:  available: fleet/backup, fleet/cert-manager, " +
			"fleet/echo, staging/backup\n"
		if got.Code != exit.Error || got.Err != want {
			t.Errorf("%d %q, want %q", got.Code, got.Err, want)
		}
	})
}

// TestTicketsAreListedAsTickets lists the firing alerts of an operator that does not page for a single cluster.
func TestTicketsAreListedAsTickets(t *testing.T) {
	p := newRecording(t)
	hub := clitest.NewHub(
		&v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "echo"}},
		&v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: "platform"},
			Spec: v1alpha1.PagingPolicySpec{Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterNone}})
	got := hub.Run(t, "slo", "list", "--prometheus", p.URL)
	if got.Code != exit.OK || !strings.Contains(got.Out, "ticket, budget spent") || strings.Contains(got.Out, "page") {
		t.Errorf("%d %s\n%s", got.Code, got.Err, got.Out)
	}
}

func TestSLOBudgetsWithoutAnswers(t *testing.T) {
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no address": {nil,
			[]string{"Error: no Prometheus address: set --prometheus or BELLWETHER_PROMETHEUS\nHint:  use a URL " +
				"such as http://localhost:9090\n"}},
		"no URL": {[]string{"--prometheus", "prometheus"},
			[]string{`Error: invalid address of Prometheus: "prometheus" is not a URL such as`, "Hint:  use a URL"}},
		"nobody listens": {[]string{"--prometheus", closed.URL},
			[]string{"Error: cannot reach Prometheus at " + closed.URL + ": ", "refused", "Hint:  use a URL"}},
		"no rules": {[]string{"--prometheus", answer(200,
			`{"status":"success","data":{"resultType":"vector","result":[]}}`)},
			[]string{"has no objectives\n",
				"Hint:  check that the rules are loaded with kubectl get operatorslos -A (column LOADED)"}},
		"a login": {[]string{"--prometheus", answer(401, "no")},
			[]string{"rejected", "Hint:  if it requires a login, set --prometheus-token-file"}},
		"out of order": {[]string{"--prometheus", answer(503, "down")}, []string{"cannot answer", "Hint:  try again"}},
		"a password": {[]string{"--prometheus", strings.Replace(closed.URL, "//", "//anna:secret@", 1)},
			[]string{"anna:xxxxx@"}},
		"no time": {[]string{"--prometheus", closed.URL, "--since", "1s"},
			[]string{"invalid value 1s of --since\nHint:  use at least 1m"}},
		"no token file": {[]string{"--prometheus", closed.URL, "--prometheus-token-file", "/none"},
			[]string{"connect to Prometheus: read credentials", "/none"}},
		"format": {[]string{"-o", "name"}, []string{"invalid value \"name\" of -o"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(command.EnvPrometheus, "")
			for _, verb := range [][]string{{"slo", "list"}, {"slo", "get", "echo"}} {
				got := clitest.NewHub().Run(t, append(verb, test.args...)...)
				for _, part := range test.want {
					if got.Code != exit.Error || !strings.Contains(got.Err, part) ||
						strings.Contains(got.Err, "secret") {
						t.Errorf("%v: %d %q, want %q in it", verb, got.Code, got.Err, part)
					}
				}
			}
		})
	}
}

func TestSLOListReadsTheEnvironment(t *testing.T) {
	p := newRecording(t)
	t.Setenv(command.EnvPrometheus, p.URL)
	got := clitest.NewHub().Run(t, "slo", "list", "-o", "json", "--all")
	var all []budgets.Budget
	if err := json.Unmarshal([]byte(got.Out), &all); err != nil || len(all) != 8 {
		t.Errorf("%d objectives (%v): %s%s", len(all), err, got.Out, got.Err)
	}
}

// TestWhatTheHubKnowsIsShown: if Prometheus does not respond, the command prints the rest of its output.
func TestWhatTheHubKnowsIsShown(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	objectives := &v1alpha1.OperatorSLO{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo"},
		Spec: v1alpha1.OperatorSLOSpec{Operator: "echo"}}
	objectives.Status.Objectives = []v1alpha1.SLOObjective{{SLI: "available", Target: "99.9", Period: "30d"}}
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), objectives)
	got := h.Run(t, "slo", "get", "echo", "--prometheus", closed.URL)
	for _, want := range []string{"available", "99.9", "30d", "not known", "the error budgets could not be read"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is not in\n%s", want, got.Out)
		}
	}
	if got.Code != exit.Error || !strings.Contains(got.Err, "cannot reach Prometheus") {
		t.Errorf("%d %q, want an error about Prometheus", got.Code, got.Err)
	}
	if got := h.Run(t, "slo", "get", "other", "--prometheus", closed.URL); got.Out != "" || got.Code != exit.Error {
		t.Errorf("an operator that the hub does not know: %d %q", got.Code, got.Out)
	}
}
