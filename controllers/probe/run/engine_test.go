// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func newTestEngine(o Options) *Engine {
	e := New(o)
	e.runner = newRunner(testAddresses(nil))
	return e
}

func startEngine(t *testing.T, e *Engine) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

// echo is the operator that the probes belong to.
var echo = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}

// probeOf returns a probe whose runs have a minute: none of a healthy endpoint ends too early on a busy machine.
func probeOf(url string, interval time.Duration) Probe {
	return Probe{
		Cluster: "prod-1", Name: "web", Vantage: "cluster",
		Spec: v1alpha1.EndpointProbeSpec{Operator: echo, Interval: &metav1.Duration{Duration: interval},
			Timeout: &metav1.Duration{Duration: max(interval, time.Minute)}},
		Targets: []string{""},
		Resolve: func(context.Context, string) (probes.Target, *probes.Failure) { return probes.Target{URL: url}, nil },
	}
}

func named(p Probe, name string) Probe {
	p.Name = name
	return p
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		<-tick.C
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSeriesExistOnlyWhileProbeExists(t *testing.T) {
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	e := newTestEngine(Options{})
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(e))
	startEngine(t, e)
	must(t, e.Set(key("a"), probeOf(server.URL+"/ok", 20*time.Millisecond)))
	must(t, e.Set(key("b"), named(probeOf("http://127.0.0.1:1/", 20*time.Millisecond), "dead")))
	eventually(t, "both have run", func() bool {
		return !e.Verdicts(key("a"))[""].At.IsZero() &&
			!e.Verdicts(key("b"))[""].At.IsZero()
	})
	want := `
# HELP probe_success Whether the probe succeeded.
# TYPE probe_success gauge
probe_success{cluster="prod-1",operator="echo",operator_namespace="fleet",probe="dead",target="",vantage="cluster"} 0
probe_success{cluster="prod-1",operator="echo",operator_namespace="fleet",probe="web",target="",vantage="cluster"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), series.ProbeSuccess); err != nil {
		t.Error(err)
	}
	eventually(t, "both have run three times", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.entries[key("a")].targets[""].attempts >= 3 && e.entries[key("b")].targets[""].attempts >= 3
	})
	e.mu.Lock()
	healthy, dead := e.entries[key("a")].targets[""], e.entries[key("b")].targets[""]
	if healthy.successes != healthy.attempts || dead.successes != 0 {
		t.Errorf("%v of %v and %v of %v runs succeeded", healthy.successes, healthy.attempts, dead.successes,
			dead.attempts)
	}
	e.mu.Unlock()
	families, err := registry.Gather()
	must(t, err)
	if len(families) < 12 {
		t.Errorf("only %d families of series", len(families))
	}
	e.Remove(key("a"))
	e.Remove(key("b"))
	for _, name := range []string{series.ProbeSuccess, series.ProbeHTTPDuration, series.ProbeAttempts} {
		if n, err := testutil.GatherAndCount(registry, name); n != 0 || err != nil {
			t.Errorf("%d series of %s are left after their probes were removed (%v)", n, name, err)
		}
	}
}

// TestEnginesOfSeveralClusters verifies that one process can have the
// Engines of several clusters.
func TestEnginesOfSeveralClusters(t *testing.T) {
	var all prometheus.Gatherers
	for _, cluster := range []string{"", "prod-1", "prod-2"} {
		e := New(Options{Cluster: cluster})
		e.runs.WithLabelValues("success").Inc()
		registry := prometheus.NewPedanticRegistry()
		must(t, registry.Register(e))
		all = append(all, registry)
	}
	want := `
# HELP bellwether_probe_runs_total Probes that were run, by their result.
# TYPE bellwether_probe_runs_total counter
bellwether_probe_runs_total{result="success"} 1
bellwether_probe_runs_total{cluster="prod-1",result="success"} 1
bellwether_probe_runs_total{cluster="prod-2",result="success"} 1
# HELP bellwether_probes Endpoints that are probed here.
# TYPE bellwether_probes gauge
bellwether_probes 0
bellwether_probes{cluster="prod-1"} 0
bellwether_probes{cluster="prod-2"} 0
`
	err := testutil.GatherAndCompare(all, strings.NewReader(want), series.ProbesRun, series.ProbeRunsTotal)
	if err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(all, series.ProbeLateness); n != 3 || err != nil {
		t.Errorf("%d series of %s, %v", n, series.ProbeLateness, err)
	}
}

func TestRunsOfOneProbeDoNotOverlap(t *testing.T) {
	var now, most, runs atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		runs.Add(1)
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Millisecond): // impatient: so long it takes, which is longer than the interval
		}
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(server.Close)
	e := newTestEngine(Options{})
	startEngine(t, e)
	p := probeOf(server.URL, 10*time.Millisecond)
	must(t, e.Set(key("a"), p))
	eventually(t, "it has run ten times", func() bool {
		e.Verdicts(key("a"))
		must(t, e.Set(key("a"), p)) // as each reconcile does
		return runs.Load() >= 10
	})
	if most.Load() != 1 {
		t.Errorf("%d runs of one probe at a time", most.Load())
	}
}

// Probes of working endpoints run on time while many other endpoints do not
// answer.
func TestHangingEndpointsDoNotDelayOthers(t *testing.T) {
	hang := serveRaw(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	var served sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count, _ := served.LoadOrStore(r.URL.Path, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(server.Close)
	e := newTestEngine(Options{Fast: 2, Slow: 4})
	e.slowAfter = time.Minute // no healthy one becomes slow; those that hang start so
	for i := range 20 {
		name := fmt.Sprintf("healthy-%d", i)
		must(t, e.Set(key(name), named(probeOf(server.URL+"/"+name, 200*time.Millisecond), name)))
	}
	startEngine(t, e)
	all := func(n int64) bool {
		for i := range 20 {
			count, ok := served.Load(fmt.Sprintf("/healthy-%d", i))
			if !ok || count.(*atomic.Int64).Load() < n {
				return false
			}
		}
		return true
	}
	eventually(t, "each has run once", func() bool { return all(1) })
	for i := range 40 {
		name := fmt.Sprintf("hang-%d", i)
		must(t, e.Set(key(name), named(probeOf("http://"+hang, time.Hour), name)))
		p := e.entries[key(name)].targets[""]
		e.mu.Lock()
		e.due.remove(p)
		p.due = time.Now()
		e.due.add(p)
		e.mu.Unlock()
	}
	e.wakeUp()
	eventually(t, "the slow pool is full", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.pools.slow.running == 4 && len(e.pools.slow.waiting) > 0
	})
	before := int64(0)
	served.Range(func(_, count any) bool { before = max(before, count.(*atomic.Int64).Load()); return true })
	eventually(t, "each has run three times more while others hang", func() bool { return all(before + 3) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pools.slow.running != 4 {
		t.Errorf("%d runs in the slow pool, want 4", e.pools.slow.running)
	}
	if most := e.pools.fast.running; most > 2 {
		t.Errorf("%d runs in the fast pool, want at most 2", most)
	}
}

// A probe whose endpoint stops answering leaves the fast pool during its run.
func TestProbeThatBecomesSlowMovesToSlowPool(t *testing.T) {
	hang := serveRaw(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	e := newTestEngine(Options{Fast: 1, Slow: 1})
	must(t, e.Set(key("a"), probeOf("http://"+hang, 10*time.Minute)))
	x := e.entries[key("a")].targets[""]
	e.due.remove(x)
	x.slow, x.due = false, time.Now()
	e.due.add(x)
	startEngine(t, e)
	eventually(t, "it moves to the slow pool", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.pools.fast.running == 0 && e.pools.slow.running == 1 && x.pool == &e.pools.slow
	})
}

func TestSet(t *testing.T) {
	e := newTestEngine(Options{})
	must(t, e.Set(key("a"), probeOf("http://127.0.0.1:1/", time.Minute)))
	if err := e.Set(key("b"), probeOf("http://127.0.0.1:2/", time.Minute)); !errors.Is(err, ErrDuplicate) {
		t.Errorf("a second probe of the same name: %v", err)
	}
	e.Remove(key("a"))
	if err := e.Set(key("b"), probeOf("http://127.0.0.1:2/", time.Minute)); err != nil {
		t.Errorf("after the first one is removed: %v", err)
	}
	for name, change := range map[string]func(*v1alpha1.EndpointProbeSpec){
		"spec.http.matches": func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{"("}}
		},
		"spec.http.json: ERROR": func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{JSON: "body."} },
		"must be true or false": func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{JSON: "'ok'"} },
		"spec.http.headerMatches": func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{HeaderMatches: []v1alpha1.HeaderMatch{{Name: "X", Regex: "("}}}
		},
		"spec.tls":      func(s *v1alpha1.EndpointProbeSpec) { s.TLS = &v1alpha1.ProbeTLS{CA: "no PEM"} },
		"spec.interval": func(s *v1alpha1.EndpointProbeSpec) { s.Interval = &metav1.Duration{} },
		"spec.dns cannot be used": func(s *v1alpha1.EndpointProbeSpec) {
			s.DNS = &v1alpha1.DNSProbe{Query: "a.example"}
		},
		"spec.tcp cannot be used": func(s *v1alpha1.EndpointProbeSpec) { s.TCP = &v1alpha1.TCPProbe{} },
		"needs spec.dns.query":    func(s *v1alpha1.EndpointProbeSpec) { s.Target.URL = "dns://127.0.0.1" },
		"spec.dns.transport": func(s *v1alpha1.EndpointProbeSpec) {
			s.Target.URL, s.DNS, s.TLS = "dns://127.0.0.1", &v1alpha1.DNSProbe{Query: "a.example"}, &v1alpha1.ProbeTLS{}
		},
	} {
		p := probeOf("http://127.0.0.1:1/", time.Minute)
		change(&p.Spec)
		if err := e.Set(key("b"), p); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(e.entries) != 0 || len(e.owners) != 0 || len(e.due) != 0 {
		t.Error("a probe that was refused is still run")
	}
}

func TestChangedSpecRunsImmediately(t *testing.T) {
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	changed := make(chan types.NamespacedName, 10)
	e := newTestEngine(Options{Changed: func(k types.NamespacedName) { changed <- k }})
	startEngine(t, e)
	p := probeOf(server.URL+"/ok", 10*time.Minute)
	must(t, e.Set(key("a"), p))
	p.Spec.HTTP = &v1alpha1.HTTPProbe{Statuses: []int32{204}}
	must(t, e.Set(key("a"), p))
	if got := <-changed; got != key("a") {
		t.Errorf("changed probe is %s", got)
	}
	if v := e.Verdicts(key("a"))[""]; v.Failure == nil || v.Failure.Reason != v1alpha1.ReasonBadStatus {
		t.Errorf("verdict %+v, want %s", v, v1alpha1.ReasonBadStatus)
	}
}

func TestTurnsAreSpreadAndStable(t *testing.T) {
	now := time.Unix(1_800_000_000, 123)
	const n, interval = 3000, 30 * time.Second
	perSecond := map[int]int{}
	for i := range n {
		k := key(fmt.Sprintf("probe-%d", i))
		due := computeNextRun(k.String(), interval, now)
		if wait := due.Sub(now); wait <= 0 || wait > interval {
			t.Fatalf("%s is due in %s", k, wait)
		}
		if again := computeNextRun(k.String(), interval, due); again != due.Add(interval) {
			t.Fatalf("after %s comes %s", due, again)
		}
		if restarted := computeNextRun(k.String(), interval, due.Add(-time.Millisecond)); restarted != due {
			t.Fatalf("after a restart %s is %s", due, restarted)
		}
		perSecond[int(due.Sub(now)/time.Second)]++
	}
	for second, count := range perSecond {
		if count > 2*n/30 {
			t.Errorf("%d of %d probes are due in second %d", count, n, second)
		}
	}
}
