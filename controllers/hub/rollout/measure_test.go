// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	server "github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func question(queries ...string) rollouts.Question {
	q := rollouts.Question{Wave: "one", Gate: "query", Since: noon.Add(-time.Minute), At: noon, Clusters: []string{"a"},
		Queries: map[string]string{}}
	for _, text := range queries {
		q.Queries[text] = text
	}
	return q
}

// prometheusAt returns a measurer that queries an address.
func prometheusAt(t *testing.T, url string) *Measurer {
	t.Helper()
	evaluator, err := newEvaluator(server.Endpoint{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return newMeasurer(evaluator)
}

// TestEvaluate returns from the Prometheus API every kind of answer of a Prometheus, or
// of a server in front of it.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	success := func(data string) string { return `{"status":"success","data":` + data + `}` }
	failure := func(kind, text string) string {
		return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, kind, text)
	}
	one := success(`{"resultType":"vector","result":[{"metric":{"sli":"csv"},"value":[1,"0.5"]}]}`)
	tests := map[string]struct {
		code    int
		body    string
		want    map[string]rollouts.Result
		failure string
	}{
		"a vector": {200, one, map[string]rollouts.Result{"up": {Type: "vector",
			Samples: []rollouts.Sample{{Labels: map[string]string{"sli": "csv"}, Value: 0.5}}}}, ""},
		"an empty vector": {200, success(`{"resultType":"vector","result":[]}`),
			map[string]rollouts.Result{"up": {Type: "vector"}}, ""},
		"a scalar": {200, success(`{"resultType":"scalar","result":[1,"7"]}`),
			map[string]rollouts.Result{"up": {Type: "scalar", Samples: []rollouts.Sample{{Value: 7}}}}, ""},
		"a string": {200, success(`{"resultType":"string","result":[1,"text"]}`), nil, "unexpected value type"},
		"a matrix": {200, success(`{"resultType":"matrix","result":[]}`),
			map[string]rollouts.Result{"up": {Type: "matrix"}}, ""},
		"a native histogram": {200, success(`{"resultType":"vector","result":[{"metric":{},"histogram":` +
			`[1,{"count":"1","sum":"1","buckets":[]}]}]}`), map[string]rollouts.Result{"up": {Type: "histogram"}}, ""},
		"a part of the result": {200, strings.Replace(one, "{", `{"warnings":["a store is gone"],`, 1), nil,
			"it warns: a store is gone"},
		"restarting":       {503, "Service Unavailable", nil, "it refused: server_error: server error: 503"},
		"a time-out of it": {503, failure("timeout", "query timed out"), nil, "timed out"},
		"a bad query":      {400, failure("bad_data", "parse error"), nil, "parse error"},
		"no rights":        {401, "who are you", nil, "who are you"},
		"garbage":          {200, "<html>welcome</html>", nil, "it refused: bad_response"},
		"an error as 200":  {200, failure("bad_data", "no"), nil, "it refused"},
		"nothing":          {200, "", nil, "it refused: bad_response"},
		"an unknown type":  {200, success(`{"resultType":"picture","result":[]}`), nil, "it refused: bad_response"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			}))
			defer s.Close()
			a := prometheusAt(t, s.URL).evaluate(t.Context(), question("up"))
			if diff := cmp.Diff(test.want, a.Results); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if (a.Failure == "") != (test.failure == "") || !strings.Contains(a.Failure, test.failure) {
				t.Errorf("failure %q, want it to contain %q", a.Failure, test.failure)
			}
			if len([]rune(a.Failure)) > maxFailureLength {
				t.Errorf("the failure has %d characters", len(a.Failure))
			}
		})
	}
}

func TestEvaluateWithoutPrometheus(t *testing.T) {
	t.Parallel()
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.NotFoundHandler())
		s.Close()
		a := prometheusAt(t, s.URL).evaluate(t.Context(), question("up"))
		if !strings.Contains(a.Failure, "connection refused") || a.Results != nil {
			t.Errorf("%+v", a)
		}
	})
	t.Run("not set", func(t *testing.T) {
		t.Parallel()
		a := prometheusAt(t, "").evaluate(t.Context(), question("up"))
		if !strings.Contains(a.Failure, "--prometheus-url") || a.Results != nil {
			t.Errorf("%+v", a)
		}
	})
	t.Run("one of several queries fails", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("query") == "bad" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
		}))
		defer s.Close()
		a := prometheusAt(t, s.URL).evaluate(t.Context(), question("a", "bad", "z"))
		if a.Failure == "" || a.Results != nil {
			t.Errorf("%+v", a)
		}
	})
}

// TestSlowPrometheus verifies that a rollout with questions does not wait, queries once even if
// it is reconciled often, and that other rollouts are answered meanwhile.
func TestSlowPrometheus(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		mu.Lock()
		asked[query]++
		mu.Unlock()
		if query == "slow" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`))
	}))
	defer s.Close()
	m := prometheusAt(t, s.URL)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- m.Start(ctx) }()
	slow, quick := &v1alpha1.OperatorRollout{}, &v1alpha1.OperatorRollout{}
	slow.Name, slow.UID, quick.Name, quick.UID = "slow", "1", "quick", "2"
	for len(m.listAnswers("1")) == 0 && !isBusy(m, "1") { // it has to be started
		m.startMeasurements(slow, []rollouts.Question{question("slow")})
	}
	m.startMeasurements(slow, []rollouts.Question{question("slow")})
	m.startMeasurements(quick, []rollouts.Question{question("quick")})
	if got := hear(t, m); got != "quick" {
		t.Errorf("%s has the first answer", got)
	}
	if a := m.listAnswers("1"); len(a) != 0 {
		t.Errorf("answers that were not given: %+v", a)
	}
	close(release)
	if got := hear(t, m); got != "slow" {
		t.Errorf("%s has the second answer", got)
	}
	if a := m.listAnswers("1"); len(a) != 1 || a[0].Results["slow"].Samples[0].Value != 1 {
		t.Errorf("answers: %+v", a)
	}
	later := question("quick")
	later.At = noon.Add(time.Hour)
	m.startMeasurements(quick, []rollouts.Question{later})
	hear(t, m)
	if a := m.listAnswers("1"); len(a) != 0 {
		t.Errorf("answers of a rollout that nobody asks about any more: %+v", a)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(map[string]int{"slow": 1, "quick": 2}, asked); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func isBusy(m *Measurer, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byRollout[uid] != nil
}

// hear waits for the next answer.
func hear(t *testing.T, m *Measurer) string {
	t.Helper()
	select {
	case e := <-m.answered:
		return e.Object.Name
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		return ""
	}
}

// hanging answers nothing to a query that hangs, until its time is up.
type hanging struct{}

func (hanging) Evaluate(ctx context.Context, query string, _ time.Time, _ time.Duration) (model.Value, error) {
	if query == "hang" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	all := model.Vector{}
	for i := range 10_000 {
		all = append(all, &model.Sample{Metric: model.Metric{"pod": model.LabelValue(strings.Repeat("x", i%100))}})
	}
	return all, nil
}

// TestOneTenantHoldsUpNoOther verifies that the queries of one namespace, even many slow
// queries, do not block the queries of another namespace or Bellwether's own queries.
func TestOneTenantHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := newMeasurer(hanging{})
	m.ctx = ctx
	defer m.running.Wait()
	defer cancel()
	ask := func(namespace, query string, custom bool, gates ...string) {
		ro := &v1alpha1.OperatorRollout{}
		ro.Namespace, ro.Name, ro.UID = namespace, namespace, types.UID(namespace)
		var all []rollouts.Question
		for _, gate := range gates {
			q := question(query)
			q.Gate, q.Custom = gate, custom
			all = append(all, q)
		}
		m.startMeasurements(ro, all)
	}
	ask("a", "hang", true, "1", "2", "3", "4", "5", "6", "7", "8")
	ask("b", "up", false, "slo")
	ask("c", "up", true, "query")
	answered := map[string]bool{}
	for len(answered) < 2 {
		answered[(<-m.answered).Object.Namespace] = true
	}
	if !answered["b"] || !answered["c"] {
		t.Errorf("answered: %v", answered)
	}
	// The result of a tenant's query keeps only enough to determine that it is not one number.
	got := m.listAnswers("c")[0].Results["up"].Samples
	if len(got) != 2 || got[0].Labels != nil {
		t.Errorf("kept: %+v", got)
	}
	if own := m.listAnswers("b")[0].Results["up"].Samples; len(own) != 10_000 {
		t.Errorf("of our own query %d samples are kept", len(own))
	}
}
