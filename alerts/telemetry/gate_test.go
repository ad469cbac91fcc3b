// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// fixture is a gate, the store behind it, and what arrived there.
type fixture struct {
	*testing.T
	gate *Gate
	now  time.Time
	// asked is the number of authentications.
	asked int

	mu      sync.Mutex
	arrived []*http.Request
	bodies  [][]byte
	// answer writes the response of the store.
	answer func(http.ResponseWriter)
	store  *httptest.Server
}

func newFixture(t *testing.T, limits Limits) *fixture {
	t.Helper()
	f := &fixture{T: t, now: time.Unix(1_800_000_000, 0), answer: func(out http.ResponseWriter) {
		out.WriteHeader(http.StatusNoContent)
	}}
	f.store = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.arrived, f.bodies = append(f.arrived, in), append(f.bodies, body)
		f.answer(out)
	}))
	t.Cleanup(f.store.Close)
	store, err := url.Parse(f.store.URL + "/api/v1/push")
	if err != nil {
		t.Fatal(err)
	}
	f.gate, err = NewGate(GateOptions{
		Authenticate: func(_ context.Context, token, address string) (string, error) {
			f.asked++
			if address != "192.0.2.1" {
				t.Errorf("the address is %q", address)
			}
			switch cluster, ok := strings.CutPrefix(token, "token-of-"); {
			case ok:
				return cluster, nil
			case token == "down":
				return "", errors.New("the API server does not answer")
			}
			return "", fmt.Errorf("%w: rubbish", ErrUnauthenticated)
		},
		Limits: limits, Metrics: prometheus.NewRegistry(),
		Now:   func() time.Time { return f.now },
		Store: Store{URL: store, Client: http.DefaultClient, Header: http.Header{"X-Scope-Orgid": {"fleet"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// send sends a body as a cluster.
func (f *fixture) send(token, contentType string, body []byte) *httptest.ResponseRecorder {
	f.Helper()
	request := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(body))
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	f.gate.ServeHTTP(answer, request)
	return answer
}

func (f *fixture) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.arrived)
}

const (
	v1 = "application/x-protobuf"
	v2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
)

// slice are the labels of a slice of an operator, in the order of Prometheus.
func slice(cluster, operator string) []prompb.Label {
	return []prompb.Label{{Name: "__name__", Value: series.SLIBad}, {Name: "cluster", Value: cluster},
		{Name: "operator", Value: operator}, {Name: "sli", Value: "csv"}}
}

func ofV1(t *testing.T, all ...[]prompb.Label) []byte {
	t.Helper()
	request := &prompb.WriteRequest{}
	for _, l := range all {
		request.Timeseries = append(request.Timeseries, prompb.TimeSeries{Labels: l,
			Samples: []prompb.Sample{{Timestamp: 1_800_000_000_000, Value: 1}}})
	}
	return packed(t, request)
}

func packed(t *testing.T, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

func ofV2(t *testing.T, all ...labels.Labels) []byte {
	t.Helper()
	symbols := writev2.NewSymbolTable()
	request := &writev2.Request{}
	for _, l := range all {
		request.Timeseries = append(request.Timeseries, writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(l, nil),
			Samples: []writev2.Sample{{Timestamp: 1_800_000_000_000, Value: 1}}})
	}
	request.Symbols = symbols.Symbols()
	return packed(t, request)
}

// TestGatePasses checks that a cluster's own series are forwarded
// unchanged, with the headers of the store and without the token.
func TestGatePasses(t *testing.T) {
	for contentType, body := range map[string][]byte{
		v1: ofV1(t, slice("prod-eu", "echo"), slice("prod-eu", "backup")),
		v2: ofV2(t, labels.FromStrings("__name__", series.SLIBad, "cluster", "prod-eu", "operator", "echo"),
			labels.FromStrings("__name__", series.SlicesRecorded, "cluster", "prod-eu")),
	} {
		f := newFixture(t, Limits{})
		f.answer = func(out http.ResponseWriter) {
			out.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "2")
			out.WriteHeader(http.StatusNoContent)
		}
		got := f.send("token-of-prod-eu", contentType, body)
		if got.Code != http.StatusNoContent || f.count() != 1 {
			t.Fatalf("%s: %d %s", contentType, got.Code, got.Body)
		}
		if got.Header().Get("X-Prometheus-Remote-Write-Samples-Written") != "2" {
			t.Errorf("%s: the sender is not told how many samples were written", contentType)
		}
		there := f.arrived[0]
		if !bytes.Equal(f.bodies[0], body) || there.Header.Get("Content-Type") != contentType ||
			there.Header.Get("Content-Encoding") != "snappy" || there.Header.Get("X-Scope-OrgID") != "fleet" ||
			there.Header.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" || there.URL.Path != "/api/v1/push" ||
			there.Header.Get("Authorization") != "" {
			t.Errorf("%s: %s %s arrived", contentType, there.URL, there.Header)
		}
		if n := testutil.ToFloat64(f.gate.metrics.samples.WithLabelValues("prod-eu")); n != 2 {
			t.Errorf("%s: %v samples are counted", contentType, n)
		}
	}
}

// TestGateRefuses checks that no part of a refused request reaches the store, and the response to its sender.
func TestGateRefuses(t *testing.T) {
	own := slice("prod-eu", "echo")
	foreign := slice("prod-us", "echo")
	var request prompb.WriteRequest
	request.Timeseries = []prompb.TimeSeries{{Labels: own}}
	request.Metadata = []prompb.MetricMetadata{{MetricFamilyName: "secret_metric"}}
	bad2 := &writev2.Request{Symbols: []string{"", "__name__"}, Timeseries: []writev2.TimeSeries{
		{LabelsRefs: []uint32{1, 4_000_000_000}}}}
	odd2 := &writev2.Request{Symbols: []string{"", "__name__"}, Timeseries: []writev2.TimeSeries{
		{LabelsRefs: []uint32{1}}}}
	name := func(name string) []prompb.Label {
		return []prompb.Label{{Name: "__name__", Value: name}, {Name: "cluster", Value: "prod-eu"}}
	}
	// A store that takes every body for 1.0 would write the foreign series of this one.
	own2, err := snappy.Decode(nil, ofV2(t, labels.FromStrings("__name__", series.SLIBad, "cluster", "prod-eu")))
	if err != nil {
		t.Fatal(err)
	}
	foreign1, err := snappy.Decode(nil, ofV1(t, foreign))
	if err != nil {
		t.Fatal(err)
	}
	both := snappy.Encode(nil, append(own2, foreign1...))
	bomb := snappy.Encode(nil, make([]byte, 17<<20))
	for what, test := range map[string]struct {
		token, contentType string
		body               []byte
		code               int
		says               string
	}{
		"no token":            {"", v1, ofV1(t, own), 401, "token"},
		"a wrong token":       {"rubbish", v1, ofV1(t, own), 401, "no cluster"},
		"another's token":     {"token-of-prod-us", v1, ofV1(t, own), 403, `"prod-us"`},
		"another's series":    {"token-of-prod-eu", v1, ofV1(t, foreign), 403, "prod-us"},
		"another's among own": {"token-of-prod-eu", v1, ofV1(t, own, foreign), 403, "prod-us"},
		"no cluster":          {"token-of-prod-eu", v1, ofV1(t, own[:1]), 403, `cluster=""`},
		"two clusters": {"token-of-prod-eu", v1, ofV1(t, []prompb.Label{own[0], own[1], foreign[1]}), 400,
			"two of the name"},
		"two clusters, mixed": {"token-of-prod-eu", v1, ofV1(t, []prompb.Label{foreign[1], own[0], own[1]}), 400, "sorted"},
		"an objective":        {"token-of-prod-eu", v1, ofV1(t, name(series.SLOObjective)), 403, "no rule reads"},
		"an alert":            {"token-of-prod-eu", v1, ofV1(t, name("ALERTS")), 403, "no rule reads"},
		"the fleet":           {"token-of-prod-eu", v1, ofV1(t, name(series.FleetClusters)), 403, "no rule reads"},
		"metadata":            {"token-of-prod-eu", v1, packed(t, &request), 400, "metadata"},
		"2.0 of another": {"token-of-prod-eu", v2,
			ofV2(t, labels.FromStrings("__name__", series.SLIBad, "cluster", "prod-us")), 403, "prod-us"},
		"2.0 without a symbol": {"token-of-prod-eu", v2, packed(t, bad2), 400, "symbol"},
		"2.0 without a value":  {"token-of-prod-eu", v2, packed(t, odd2), 400, "no value"},
		"1.0 said to be 2.0":   {"token-of-prod-eu", v2, ofV1(t, foreign), 400, "version"},
		"2.0 and a hidden 1.0": {"token-of-prod-eu", v2, both, 400, "version"},
		"1.0 and a hidden 2.0": {"token-of-prod-eu", v1, both, 400, "version"},
		"JSON":                 {"token-of-prod-eu", "application/json", []byte("{}"), 415, "protobuf"},
		"not compressed":       {"token-of-prod-eu", v1, []byte("rubbish"), 400, "snappy"},
		"not protobuf":         {"token-of-prod-eu", v1, snappy.Encode(nil, []byte("rubbish")), 400, "WriteRequest"},
		"a bomb":               {"token-of-prod-eu", v1, bomb, 413, "uncompressed"},
		"a large body":         {"token-of-prod-eu", v1, make([]byte, 2<<20), 413, "max_samples_per_send"},
		"a long label": {"token-of-prod-eu", v1, ofV1(t, []prompb.Label{own[0], own[1],
			{Name: "operator", Value: strings.Repeat("x", 2000)}}), 400, "bytes"},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, Limits{})
			got := f.send(test.token, test.contentType, test.body)
			if got.Code != test.code || !strings.Contains(got.Body.String(), test.says) {
				t.Errorf("%d %s, want %d that says %q", got.Code, got.Body, test.code, test.says)
			}
			if f.count() > 0 {
				t.Error("it reached the store")
			}
			if retry := got.Header().Get("Retry-After"); retry != "" {
				t.Errorf("the sender is to send it again after %s", retry)
			}
		})
	}
}

// TestGateRefusesWhatCannotBe expects that no cluster sends values that its series cannot have, or of another time.
func TestGateRefusesWhatCannotBe(t *testing.T) {
	const now = 1_800_000_000
	one := func(name string, seconds int64, values ...float64) *prompb.WriteRequest {
		ts := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name},
			{Name: "cluster", Value: "prod-eu"}}}
		for _, v := range values {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: seconds * 1000, Value: v})
		}
		return &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{ts}}
	}
	stale := math.Float64frombits(value.StaleNaN)
	for what, test := range map[string]struct {
		request *prompb.WriteRequest
		code    int
		says    string
	}{
		"as it is":                  {one(series.SLIBad, now, 0, 1, 1), 204, ""},
		"the end of a series":       {one(series.SLIBad, now, stale), 204, ""},
		"with a value before":       {one(series.SLIBad, now, 1, stale), 204, ""},
		"after an outage":           {one(series.SLIBad, now-7200, 1), 204, ""},
		"by a fast clock":           {one(series.SlicesRecorded, now+240, now+240), 204, ""},
		"many requests":             {one(series.SLIRequests, now, 1e6), 204, ""},
		"good slices to come":       {one(series.SLIBadSlice, now, -100), 400, "between -100 and -100"},
		"more bad than there is":    {one(series.SLIBad, now, 2), 400, "can be between 0 and 1 only"},
		"one of many":               {one(series.SLIBad, now, 1, 0, -1, 1), 400, "between -1 and 1"},
		"nothing that is a number":  {one(series.SLIBad, now, 1, math.NaN()), 400, "NaN"},
		"everything":                {one(series.SLIRequests, now, math.Inf(1)), 400, "+Inf"},
		"less than nothing":         {one(series.SLIRequests, now, math.Inf(-1)), 400, "-Inf"},
		"more than a cluster has":   {one(series.SLIRequests, now, 1e18), 400, "1e+18"},
		"slices of the year 2100":   {one(series.SlicesRecorded, now, 4_102_444_800), 400, "can be between"},
		"in the year 2100":          {one(series.SLIBad, 4_102_444_800, 1), 400, "2100-01-01"},
		"in the year 1970":          {one(series.SLIBad, 1, 1), 400, "check the clock"},
		"too late":                  {one(series.SLIBad, now-3*3600, 1), 400, "2h10m0s old"},
		"as far ahead as can be":    {one(series.SLIBad, math.MaxInt64/1000, 1), 400, "check the clock"},
		"as long ago as can be":     {one(series.SLIBad, math.MinInt64/1000, 1), 400, "check the clock"},
		"the end, in the year 2100": {one(series.SLIBad, 4_102_444_800, stale), 400, "2100"},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, Limits{})
			got := f.send("token-of-prod-eu", v1, packed(t, test.request))
			if got.Code != test.code || !strings.Contains(got.Body.String(), test.says) {
				t.Errorf("%d %s, want %d that says %q", got.Code, got.Body, test.code, test.says)
			}
			if reached := f.count() > 0; reached != (test.code == 204) {
				t.Errorf("it reached the store: %t", reached)
			}
		})
	}
}

// TestCheapChecksComeFirst checks that tokens are not authenticated if the request is refused for another reason.
func TestCheapChecksComeFirst(t *testing.T) {
	f := newFixture(t, Limits{})
	for what, test := range map[string]struct {
		token, contentType string
		size, code         int
	}{
		"no token":        {"", v1, 10, 401},
		"another type":    {"rubbish", "application/json", 10, 415},
		"too large":       {"rubbish", v1, 2 << 20, 413},
		"a type too long": {"rubbish", strings.Repeat("x", 1<<16), 10, 415},
	} {
		got := f.send(test.token, test.contentType, make([]byte, test.size))
		if got.Code != test.code || f.asked > 0 || got.Body.Len() > 2000 {
			t.Errorf("%s: %d %.200s, asked %d times", what, got.Code, got.Body, f.asked)
		}
	}
}

// TestGateAsksForLater expects 503 and Retry-After wherever it is not the sender's fault, because senders drop samples
// after any other error.
func TestGateAsksForLater(t *testing.T) {
	body := ofV1(t, slice("prod-eu", "echo"))
	for what, answer := range map[string]func(http.ResponseWriter){
		"the store fails":                 func(out http.ResponseWriter) { out.WriteHeader(http.StatusInternalServerError) },
		"the store is busy":               func(out http.ResponseWriter) { out.WriteHeader(http.StatusTooManyRequests) },
		"the store refuses the gate":      func(out http.ResponseWriter) { out.WriteHeader(http.StatusUnauthorized) },
		"the gate's URL is wrong":         func(out http.ResponseWriter) { out.WriteHeader(http.StatusNotFound) },
		"the store has no remote write":   func(out http.ResponseWriter) { out.WriteHeader(http.StatusMethodNotAllowed) },
		"the store is somewhere else now": func(out http.ResponseWriter) { out.WriteHeader(http.StatusMultipleChoices) },
	} {
		f := newFixture(t, Limits{})
		f.answer = answer
		if got := f.send("token-of-prod-eu", v1, body); got.Code != 503 || got.Header().Get("Retry-After") != "10" {
			t.Errorf("%s: %d %v", what, got.Code, got.Header())
		}
	}
	f := newFixture(t, Limits{})
	f.answer = func(out http.ResponseWriter) {
		out.Header().Set("Retry-After", "77")
		out.WriteHeader(http.StatusServiceUnavailable)
	}
	if got := f.send("token-of-prod-eu", v1, body); got.Code != 503 || got.Header().Get("Retry-After") != "77" {
		t.Errorf("the store says when: %d %v", got.Code, got.Header())
	}
	f.answer = func(out http.ResponseWriter) { http.Error(out, "out of bounds", http.StatusBadRequest) }
	if got := f.send("token-of-prod-eu", v1, body); got.Code != 400 || !strings.Contains(got.Body.String(),
		"out of bounds") {
		t.Errorf("samples that the store refuses: %d %s", got.Code, got.Body)
	}
	f.store.Close()
	got := f.send("token-of-prod-eu", v1, body)
	if got.Code != 503 || strings.Contains(got.Body.String(), "127.0.0.1") {
		t.Errorf("the store is gone: %d %s", got.Code, got.Body)
	}
	if got := f.send("down", v1, body); got.Code != 503 {
		t.Errorf("tokens cannot be checked: %d %s", got.Code, got.Body)
	}
}

// TestGateLimits bounds what a cluster takes, so that it disturbs no other.
func TestGateLimits(t *testing.T) {
	f := newFixture(t, Limits{Series: 3, PerCluster: 1, Requests: 2})
	ok := func(what string, want int, got *httptest.ResponseRecorder) {
		t.Helper()
		if got.Code != want {
			t.Errorf("%s: %d %s, want %d", what, got.Code, got.Body, want)
		}
	}
	some := ofV1(t, slice("prod-eu", "a"), slice("prod-eu", "b"))
	ok("two series", 204, f.send("token-of-prod-eu", v1, some))
	ok("the same again", 204, f.send("token-of-prod-eu", v1, some))
	ok("two more", 403, f.send("token-of-prod-eu", v1, ofV1(t, slice("prod-eu", "c"), slice("prod-eu", "d"))))
	ok("those of before", 204, f.send("token-of-prod-eu", v1, some))
	ok("one more", 204, f.send("token-of-prod-eu", v1, ofV1(t, slice("prod-eu", "c"))))
	ok("another cluster", 204, f.send("token-of-prod-us", v1, ofV1(t, slice("prod-us", "a"))))
	f.now = f.now.Add(time.Hour)
	ok("others in the next hour", 204, f.send("token-of-prod-eu", v1, ofV1(t, slice("prod-eu", "d"))))

	// While a request of a cluster is active, another request of the
	// cluster must wait. Requests of other clusters need not wait.
	begun, end := make(chan struct{}), make(chan struct{})
	f.answer = func(out http.ResponseWriter) {
		close(begun)
		<-end
		out.WriteHeader(http.StatusNoContent)
	}
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- f.send("token-of-prod-eu", v1, some) }()
	<-begun
	ok("a second request", 503, f.send("token-of-prod-eu", v1, some))
	ok("another cluster's wrong one", 403, f.send("token-of-prod-us", v1, some))
	f.gate.requests <- struct{}{}
	ok("too many of all", 503, f.send("token-of-prod-us", v1, some))
	<-f.gate.requests
	close(end)
	ok("the first request", 204, <-done)
}
