// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oncall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/explain/handover"
)

// server responds to requests by the beginning of their query, or by their path, and records the requests.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func serve(t *testing.T, answers map[string]string) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		key := r.URL.Path
		if query := r.Form.Get("query"); query != "" {
			key = query
		}
		s.mu.Lock()
		s.asked = append(s.asked, key)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		for _, prefix := range slices.Backward(slices.Sorted(maps.Keys(answers))) { // the longer ones first
			if strings.HasPrefix(key, prefix) {
				_, _ = io.WriteString(w, answers[prefix])
				return
			}
		}
		http.NotFound(w, r)
		t.Errorf("nobody expects %s", key)
	}))
	t.Cleanup(s.Close)
	return s
}

// was reports whether a request had this text.
func (s *server) was(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.asked, "\n"), text)
}

// everyMinute returns the points of a series from some time ago until now.
func everyMinute(labels string, since time.Duration) string {
	var points []string
	for at := fixture.Noon.Add(-since); !at.After(fixture.Noon); at = at.Add(time.Minute) {
		points = append(points, fmt.Sprintf(`[%d,"1"]`, at.Unix()))
	}
	return matrix(fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(points, ",")))
}

func matrix(result string) string {
	return `{"status":"success","data":{"resultType":"matrix","result":[` + result + `]}}`
}

func vector(labels, value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{%s},"value":[0,%q]}]}}`,
		labels, value)
}

const (
	ofAlert     = `"alertname":"BellwetherOperatorSLOBurn","cluster":"prod-1","operator":"echo","operator_namespace":"default","sli":"available"`
	ofObjective = `"operator":"echo","operator_namespace":"default","sli":"available"`
)

func prometheus(t *testing.T) *server {
	return serve(t, map[string]string{
		"max(bellwether:rules_evaluated:timestamp)": everyMinute("", 12*time.Hour),
		`ALERTS{alertstate="firing"`:                everyMinute(`"severity":"page",`+ofAlert, 30*time.Minute),
		"/api/v1/alerts": `{"status":"success","data":{"alerts":[{"state":"firing","activeAt":"2026-11-21T11:30:00Z",` +
			`"value":"1","labels":{"severity":"page",` + ofAlert + `},"annotations":{"summary":"echo burns"}}]}}`,
		"bottomk by":           vector(`"cluster":"prod-1",`+ofObjective, "0.125"),
		"topk by":              vector(`"cluster":"prod-1",`+ofObjective, "0.5"),
		"count by":             vector(ofObjective, "3"),
		"bellwether:slo_budge": vector(`"cluster":"prod-1",`+ofObjective, "0.125"),
	})
}

func alertmanager(t *testing.T) *server {
	return serve(t, map[string]string{
		"/api/v2/silences": `[{"id":"s1","createdBy":"anna","comment":"disk is replaced","status":{"state":"active"},` +
			`"updatedAt":"2026-11-21T11:00:00Z","startsAt":"2026-11-21T11:00:00Z","endsAt":"2026-11-21T14:00:00Z",` +
			`"matchers":[{"name":"cluster","value":"prod-1","isRegex":false,"isEqual":true}]}]`,
		"/api/v2/alerts": `[{"labels":{"severity":"page",` + ofAlert + `},"annotations":{},"fingerprint":"f",` +
			`"receivers":[],"startsAt":"2026-11-21T11:30:00Z","endsAt":"2026-11-21T12:30:00Z",` +
			`"updatedAt":"2026-11-21T11:30:00Z","status":{"state":"suppressed","silencedBy":["s1"],"inhibitedBy":[],"mutedBy":[]}}]`,
	})
}

func newHub() *clitest.Hub {
	rollout := clitest.GatedRollout()
	rollout.Status.StartedAt = fixture.AgoPtr(time.Hour)
	elsewhere := clitest.Operator("backup", "1.0.0")
	elsewhere.Namespace = "other"
	elsewhere.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.2.0", Reason: "it lost data"}}
	return clitest.NewHub(clitest.Operator("echo", "1.1.0"), elsewhere, rollout, clitest.Cluster("prod-1", nil))
}

func TestHandover(t *testing.T) {
	p, am := prometheus(t), alertmanager(t)
	h := newHub()
	got := h.MustRun(t, "oncall", "handover", "--prometheus", p.URL, "--alertmanager", am.URL)
	fixture.AssertGolden(t, "handover", got.Out)
	fixture.AssertWidth(t, "the report", got.Out)
	whole := h.MustRun(t, "oncall", "handover", "--prometheus", p.URL, "--alertmanager", am.URL, "-o", "markdown").Out
	if strings.ReplaceAll(got.Out, "\n  ", " ") != whole || got.Err != "" {
		t.Errorf("the default is not the same Markdown, or there are warnings: %s\n%s", got.Err, whole)
	}
	var report handover.Report
	text := h.MustRun(t, "oncall", "handover", "--prometheus", p.URL, "--alertmanager", am.URL, "-o", "json").Out
	if err := json.Unmarshal([]byte(text), &report); err != nil || report.Kind != handover.Kind ||
		*report.Open.Incidents.Total != 1 || report.Open.Incidents.Items[0].Silences[0].ID != "s1" {
		t.Errorf("as data (%v):\n%s", err, text)
	}
}

func TestHandoverOfANamespace(t *testing.T) {
	p, am := prometheus(t), alertmanager(t)
	got := newHub().MustRun(t, "oncall", "handover", "--prometheus", p.URL, "--alertmanager", am.URL, "-n", "default")
	if !strings.Contains(got.Out, "Only operators of namespace default") || strings.Contains(got.Out, "it lost data") {
		t.Errorf("the report is\n%s", got.Out)
	}
	for _, want := range []string{`operator_namespace=~"default|"`, `ratio{operator_namespace="default"}`} {
		if !p.was(want) {
			t.Errorf("no query has %s", want)
		}
	}
}

func TestHandoverWithoutSources(t *testing.T) {
	t.Setenv(command.EnvPrometheus, "")
	t.Setenv(command.EnvAlertmanager, "")
	closed := httptest.NewServer(nil)
	closed.Close()
	p, am := prometheus(t).URL, alertmanager(t).URL
	noRules := serve(t, map[string]string{"max(": matrix(""), "": `{"status":"success","data":{"resultType":"vector",` +
		`"result":[]}}`}).URL
	for name, test := range map[string]struct {
		args []string
		code int
		err  string
		want []string
	}{
		"no addresses": {code: exit.OK, want: []string{
			"### Firing alerts\n\n**Not known:** no Prometheus address: set --prometheus or BELLWETHER_PROMETHEUS",
			"### Silences\n\n**Not known:** no Alertmanager address: set --alertmanager or BELLWETHER_ALERTMANAGER",
			"### Held versions and settings: 1\n"}},
		"Alertmanager is down": {args: []string{"--prometheus", p, "--alertmanager", closed.URL}, code: exit.Error,
			err: "the report is not complete: cannot read Alertmanager at " + closed.URL,
			want: []string{"### Silences\n\n**Not known:** read the silences of Alertmanager at",
				"### Firing alerts: 1"}},
		"Prometheus is down": {args: []string{"--prometheus", closed.URL, "--alertmanager", am}, code: exit.Error,
			err: "cannot read Prometheus at " + closed.URL, want: []string{
				"### Alerts that ended\n\n**Not known:** cannot reach Prometheus", "### Silences: 1"}},
		"Prometheus has no rules": {args: []string{"--prometheus", noRules, "--alertmanager", am}, code: exit.Error,
			err: "cannot read Prometheus at " + noRules, want: []string{
				"did not evaluate Bellwether's rules in this time", "has no objectives"}},
		"no URLs": {args: []string{"--prometheus", "p", "--alertmanager", "a"}, code: exit.Error,
			err: "cannot read Prometheus, Alertmanager", want: []string{"invalid address of Prometheus",
				"invalid address of Alertmanager"}},
		"a bad flag": {args: []string{"--limit", "-1"}, code: exit.Error, err: "invalid value -1 of --limit"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newHub().Run(t, append([]string{"oncall", "handover"}, test.args...)...)
			if got.Code != test.code || !strings.Contains(got.Err, test.err) || test.err == "" && got.Err != "" {
				t.Errorf("exit code %d: %s", got.Code, got.Err)
			}
			for _, want := range test.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%q is not in\n%s", want, got.Out)
				}
			}
		})
	}
}

// TestHandoverOfAHubInPart: if one kind cannot be listed, the report has the other kinds.
func TestHandoverOfAHubInPart(t *testing.T) {
	h := newHub()
	refuse := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*v1alpha1.OperatorRolloutList); is {
			return errors.New("nobody may list them")
		}
		return c.List(ctx, list, opts...)
	}
	h.WithWatch = interceptor.NewClient(h.WithWatch, interceptor.Funcs{List: refuse})
	got := h.Run(t, "oncall", "handover")
	if got.Code != exit.Error || !strings.Contains(got.Err, "cannot read the hub") ||
		!strings.Contains(got.Out, "### Rollouts\n\n**Not known:** list OperatorRollouts: nobody may list them.\n") ||
		!strings.Contains(got.Out, "### Held versions and settings: 1\n") {
		t.Errorf("exit code %d: %s\n%s", got.Code, got.Err, got.Out)
	}
}
