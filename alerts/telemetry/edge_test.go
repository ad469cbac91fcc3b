// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

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

// senderFixture is an agent's registry, a sender, and a receiver.
type senderFixture struct {
	*testing.T
	sender *Sender
	// succeeded is the agent's gauge of its operator's CSV, which the agent deletes with the operator.
	succeeded *prometheus.GaugeVec
	now       time.Time

	mu      sync.Mutex
	status  int
	header  http.Header
	arrived []prompb.TimeSeries
	asked   int
	reports []error
}

func newSenderFixture(t *testing.T) *senderFixture {
	t.Helper()
	f := &senderFixture{T: t, now: time.Now().Truncate(time.Minute), status: http.StatusNoContent}
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
	f.succeeded = of(series.OperatorCSVSucceeded)
	rules, err := slo.BuildPart(slo.Set{Default: slo.DefaultProfile()}, slo.Edge)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := NewEvaluator("prod-eu", rules.All())
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(http.HandlerFunc(f.receive))
	t.Cleanup(receiver.Close)
	f.sender, err = NewSender(evaluator, SenderOptions{Registry: registry, URL: receiver.URL + "/api/v1/write",
		Client: http.DefaultClient, Metrics: prometheus.NewRegistry(), Now: func() time.Time { return f.now },
		Report: func(err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.reports = append(f.reports, err)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *senderFixture) receive(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		f.Error(err)
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		f.Error(err)
	}
	var request prompb.WriteRequest
	if err := request.Unmarshal(raw); err != nil {
		f.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	for name, values := range f.header {
		out.Header()[name] = values
	}
	out.WriteHeader(f.status)
	if f.status/100 == 2 {
		f.arrived = append(f.arrived, request.Timeseries...)
	}
}

// answers sets what the receiver answers from now on, and returns how many requests it had before.
func (f *senderFixture) answers(status int, header http.Header) (asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.header = status, header
	return f.asked
}

// minute makes the slices of a minute.
func (f *senderFixture) minute() {
	f.Helper()
	f.now = f.now.Add(time.Minute)
	if err := f.sender.Observe(f.Context(), true); err != nil {
		f.Fatal(err)
	}
}

// eventually polls the samples that the receiver has received.
func (f *senderFixture) eventually(what string, ok func() bool) {
	f.Helper()
	deadline, tick := time.After(limit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		f.mu.Lock()
		done := ok()
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-deadline:
			f.Fatalf("not so: %s", what)
		case <-tick.C:
		}
	}
}

// slices are the values of the slices of csv that arrived, in their order.
func (f *senderFixture) slices() []float64 {
	var out []float64
	for _, s := range f.arrived {
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
	f := newSenderFixture(t)
	go f.sender.sendBatches(t.Context())
	f.minute()
	f.eventually("the first slice arrives", func() bool { return slices.Equal(f.slices(), []float64{0}) })

	f.answers(http.StatusServiceUnavailable, http.Header{"Retry-After": {"1"}})
	f.succeeded.WithLabelValues("fleet", "echo").Set(0)
	f.minute()
	f.eventually("the failure is reported once", func() bool { return f.asked >= 3 && len(f.reports) == 1 })
	f.succeeded.WithLabelValues("fleet", "echo").Set(1)
	f.minute()
	before := f.answers(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}})
	f.eventually("it goes on asking after 429", func() bool { return f.asked >= before+2 })
	if n := testutil.ToFloat64(f.sender.sent); n == 0 || f.sender.outbox.countSamples() == 0 {
		t.Errorf("%v samples are sent, and %d wait", n, f.sender.outbox.countSamples())
	}
	f.answers(http.StatusNoContent, nil)
	f.eventually("the others arrive", func() bool { return slices.Equal(f.slices(), []float64{0, 1, 0}) })
	f.eventually("the end of the failure is reported", func() bool {
		return len(f.reports) == 2 && f.reports[1] == nil
	})
	for _, reason := range []string{droppedOld, droppedRefused} {
		if n := testutil.ToFloat64(f.sender.dropped.WithLabelValues(reason)); n != 0 {
			t.Errorf("%v samples are dropped: %s", n, reason)
		}
	}
}

// TestSenderDropsWhatIsRefused checks that the sender continues after refused samples, and counts them.
func TestSenderDropsWhatIsRefused(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := newSenderFixture(t)
	f.answers(http.StatusBadRequest, nil)
	go f.sender.sendBatches(t.Context())
	f.minute()
	f.eventually("it is reported", func() bool { return len(f.reports) == 1 && f.reports[0] != nil })
	if n := testutil.ToFloat64(f.sender.dropped.WithLabelValues(droppedRefused)); n < 1 {
		t.Errorf("%v samples are dropped", n)
	}
	if asked := f.answers(http.StatusNoContent, nil); asked != 1 {
		t.Errorf("a request that was refused was sent %d times", asked)
	}
	f.minute()
	f.eventually("the next slice arrives", func() bool { return slices.Equal(f.slices(), []float64{0}) })
}

// TestSenderDropsTheOldest checks that the sender keeps two hours of samples
// while the receiver accepts nothing, and counts the dropped samples.
func TestSenderDropsTheOldest(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	for range 3 * 60 {
		f.minute()
	}
	oldest, ok := f.sender.outbox.peek()
	if !ok || f.now.Sub(oldest.at) > slo.OutOfOrderWindow {
		t.Errorf("the oldest samples are of %s ago", f.now.Sub(oldest.at))
	}
	waiting, dropped := f.sender.outbox.countSamples(), testutil.ToFloat64(f.sender.dropped.WithLabelValues(droppedOld))
	if dropped < 50 || float64(waiting) < 1.9*dropped || float64(waiting) > 2.2*dropped {
		t.Errorf("%d samples wait, and %v are dropped; want two hours and one", waiting, dropped)
	}
	box := newOutbox(time.Hour, 10)
	at := time.Unix(0, 0)
	if n := box.add(batch{at, make([]Sample, 8)}); n != 0 {
		t.Errorf("%d are dropped", n)
	}
	if n := box.add(batch{at.Add(1), make([]Sample, 8)}); n != 8 || box.countSamples() != 8 {
		t.Errorf("%d are dropped, %d wait", n, box.countSamples())
	}
	if box.finish(batch{at: at}) || !box.finish(batch{at: at.Add(1)}) || box.countSamples() != 0 {
		t.Error("a batch that was dropped meanwhile is done, or the next one is not")
	}
}

// TestSeriesEnd checks that the end of a series is marked as in
// Prometheus, so that its last value is not used as the current value.
func TestSeriesEnd(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.succeeded.WithLabelValues("fleet", "echo").Set(0)
	f.minute()
	f.succeeded.DeleteLabelValues("fleet", "echo")
	f.minute()
	f.minute()
	var values [][]float64
	for _, b := range f.sender.outbox.batches {
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
		if _, err := NewEvaluator("c", groups); !errors.Is(err, ErrRules) {
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
		m.dropOld(at)
	}
	for name, most := range map[string]int{"short": 42, "long": maxPoints + 20, "unwanted": 0} {
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
