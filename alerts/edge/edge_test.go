// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// limit bounds every wait.
const limit = 3 * time.Minute

// world is an agent's registry, a sender, and a receiver.
type world struct {
	*testing.T
	sender *Sender
	// succeeded is what the agent says of its operator's CSV, and deletes with the operator.
	succeeded *prometheus.GaugeVec
	now       time.Time

	mu      sync.Mutex
	status  int
	header  http.Header
	arrived []prompb.TimeSeries
	asked   int
	reports []error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: time.Now().Truncate(time.Minute), status: http.StatusNoContent}
	registry := prometheus.NewRegistry()
	of := func(name string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name,
			ConstLabels: prometheus.Labels{series.Cluster: "prod-eu"}}, series.OfOperator())
		registry.MustRegister(g)
		g.WithLabelValues("fleet", "echo").Set(1)
		return g
	}
	of(series.OperatorExpected)
	of(series.OperatorUpgrading).WithLabelValues("fleet", "echo").Set(0)
	w.succeeded = of(series.OperatorCSVSucceeded)
	rules, err := slo.BuildPart(slo.Set{Default: slo.DefaultProfile()}, slo.Edge)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := New("prod-eu", rules.All())
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(receiver.Close)
	w.sender, err = NewSender(evaluator, Options{Registry: registry, URL: receiver.URL + "/api/v1/write",
		Client: http.DefaultClient, Metrics: prometheus.NewRegistry(), Now: func() time.Time { return w.now },
		Report: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, err)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) receive(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		w.Error(err)
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		w.Error(err)
	}
	var request prompb.WriteRequest
	if err := request.Unmarshal(raw); err != nil {
		w.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	for name, values := range w.header {
		out.Header()[name] = values
	}
	out.WriteHeader(w.status)
	if w.status/100 == 2 {
		w.arrived = append(w.arrived, request.Timeseries...)
	}
}

// answers sets what the receiver answers from now on, and returns how many requests it had before.
func (w *world) answers(status int, header http.Header) (asked int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.header = status, header
	return w.asked
}

// minute makes the slices of a minute.
func (w *world) minute() {
	w.Helper()
	w.now = w.now.Add(time.Minute)
	if err := w.sender.Observe(w.Context(), true); err != nil {
		w.Fatal(err)
	}
}

// eventually polls what the receiver has seen.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	deadline, tick := time.After(limit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		done := ok()
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("not so: %s", what)
		case <-tick.C:
		}
	}
}

// slices are the values of the slices of csv that arrived, in their order.
func (w *world) slices() []float64 {
	var out []float64
	for _, s := range w.arrived {
		l := prompbLabels(s)
		if l.Get(model.MetricNameLabel) == series.SLIBad && l.Get(series.SLI) == "csv" &&
			l.Get(series.Operator) == "echo" &&
			l.Get(series.Cluster) == "prod-eu" {
			out = append(out, s.Samples[0].Value)
		}
	}
	return out
}

func prompbLabels(s prompb.TimeSeries) labels.Labels {
	builder := labels.NewScratchBuilder(8)
	return s.ToLabels(&builder, nil)
}

// TestSenderThroughAnOutage has a receiver that is away for some minutes, one of which is bad: all of it arrives.
func TestSenderThroughAnOutage(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	go w.sender.send(t.Context())
	w.minute()
	w.eventually("the first slice arrives", func() bool { return slices.Equal(w.slices(), []float64{0}) })

	w.answers(http.StatusServiceUnavailable, http.Header{"Retry-After": {"1"}})
	w.succeeded.WithLabelValues("fleet", "echo").Set(0)
	w.minute()
	w.eventually("the failure is reported once", func() bool { return w.asked >= 3 && len(w.reports) == 1 })
	w.succeeded.WithLabelValues("fleet", "echo").Set(1)
	w.minute()
	before := w.answers(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}})
	w.eventually("it goes on asking after 429", func() bool { return w.asked >= before+2 })
	if n := testutil.ToFloat64(w.sender.sent); n == 0 || w.sender.outbox.waiting() == 0 {
		t.Errorf("%v samples are sent, and %d wait", n, w.sender.outbox.waiting())
	}
	w.answers(http.StatusNoContent, nil)
	w.eventually("the others arrive", func() bool { return slices.Equal(w.slices(), []float64{0, 1, 0}) })
	w.eventually("the end of the failure is reported", func() bool {
		return len(w.reports) == 2 && w.reports[1] == nil
	})
	for _, reason := range []string{droppedOld, droppedRefused} {
		if n := testutil.ToFloat64(w.sender.dropped.WithLabelValues(reason)); n != 0 {
			t.Errorf("%v samples are dropped: %s", n, reason)
		}
	}
}

// TestSenderDropsWhatIsRefused goes on after samples that the receiver does not take, and says how many they were.
func TestSenderDropsWhatIsRefused(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	w.answers(http.StatusBadRequest, nil)
	go w.sender.send(t.Context())
	w.minute()
	w.eventually("it is reported", func() bool { return len(w.reports) == 1 && w.reports[0] != nil })
	if n := testutil.ToFloat64(w.sender.dropped.WithLabelValues(droppedRefused)); n < 1 {
		t.Errorf("%v samples are dropped", n)
	}
	if asked := w.answers(http.StatusNoContent, nil); asked != 1 {
		t.Errorf("a request that was refused was sent %d times", asked)
	}
	w.minute()
	w.eventually("the next slice arrives", func() bool { return slices.Equal(w.slices(), []float64{0}) })
}

// TestSenderDropsTheOldest keeps two hours, also while nobody takes anything, and counts what it drops.
func TestSenderDropsTheOldest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 * 60 {
		w.minute()
	}
	oldest, ok := w.sender.outbox.next()
	if !ok || w.now.Sub(oldest.at) > slo.OutOfOrderWindow {
		t.Errorf("the oldest samples are of %s ago", w.now.Sub(oldest.at))
	}
	waiting, dropped := w.sender.outbox.waiting(), testutil.ToFloat64(w.sender.dropped.WithLabelValues(droppedOld))
	if dropped < 50 || float64(waiting) < 1.9*dropped || float64(waiting) > 2.2*dropped {
		t.Errorf("%d samples wait, and %v are dropped; want two hours and one", waiting, dropped)
	}
	box := newOutbox(time.Hour, 10)
	at := time.Unix(0, 0)
	if n := box.put(batch{at, make([]Sample, 8)}); n != 0 {
		t.Errorf("%d are dropped", n)
	}
	if n := box.put(batch{at.Add(1), make([]Sample, 8)}); n != 8 || box.waiting() != 8 {
		t.Errorf("%d are dropped, %d wait", n, box.waiting())
	}
	if box.done(batch{at: at}) || !box.done(batch{at: at.Add(1)}) || box.waiting() != 0 {
		t.Error("a batch that was dropped meanwhile is done, or the next one is not")
	}
}

// TestSeriesEnd marks the end of a series as Prometheus does, so that nobody takes its last value for the present one.
func TestSeriesEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.succeeded.WithLabelValues("fleet", "echo").Set(0)
	w.minute()
	w.succeeded.DeleteLabelValues("fleet", "echo")
	w.minute()
	w.minute()
	var values [][]float64
	for _, b := range w.sender.outbox.batches {
		var bad []float64
		for _, s := range b.samples {
			if s.Labels.Get(model.MetricNameLabel) == series.SLIBadSlice {
				bad = append(bad, s.V)
			}
		}
		values = append(values, bad)
	}
	if len(values) != 3 || len(values[0]) != 1 || values[0][0] != 1 || len(values[1]) != 1 ||
		!value.IsStaleNaN(values[1][0]) || len(values[2]) != 0 {
		t.Errorf("bad slices of three minutes: %v, want 1, its end, none", values)
	}
}

func TestRulesAreChecked(t *testing.T) {
	group := func(r monitoringv1.Rule) []monitoringv1.RuleGroup {
		return []monitoringv1.RuleGroup{{Name: "g", Rules: []monitoringv1.Rule{r}}}
	}
	for _, groups := range [][]monitoringv1.RuleGroup{
		group(monitoringv1.Rule{Alert: "A", Expr: intstr.FromString("up")}),
		group(monitoringv1.Rule{Record: "a:b", Expr: intstr.FromString("up +")}),
	} {
		if _, err := New("c", groups); !errors.Is(err, ErrRules) {
			t.Errorf("%v: %v", groups, err)
		}
	}
}

// TestMemoryIsBounded has a day's samples of series, of which one is looked back for over a day.
func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(map[string]time.Duration{"short": 10 * time.Minute, "long": 24 * time.Hour})
	end := int64(48 * time.Hour / time.Millisecond)
	for at := int64(0); at <= end; at += observeEvery.Milliseconds() {
		for _, name := range []string{"short", "long", "unwanted"} {
			m.add(labels.FromStrings(model.MetricNameLabel, name), at, float64(at))
		}
		m.forget(at)
	}
	for name, most := range map[string]int{"short": 42, "long": mostPoints + 20, "unwanted": 0} {
		points := 0
		for _, s := range m.series[name] {
			points += len(s.points)
			if last := s.points[len(s.points)-1]; last.t != end {
				t.Errorf("the newest sample of %s is not there", name)
			}
		}
		if points > most || points < most/2 {
			t.Errorf("%d samples of %s are kept, want at most %d", points, name, most)
		}
	}
}
