// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probes measures what it costs one process to run thousands of probes on time: with the engine of the agents,
// against servers on this machine, of which some are broken as some always are.
package probes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/run"
)

// Load is what the engine is given.
type Load struct {
	Probes                 int
	Interval, Timeout, For time.Duration
	Targets                Targets
}

// Targets are URLs of servers.
type Targets struct{ Plain, Secure, Silent, Closed string }

// of says where the i-th probe goes: of 20 probes 16 ask a server, 2 one with TLS, 1 one that hangs and 1 nobody.
func (t Targets) of(i int) (url string, good bool) {
	switch i % 20 {
	case 0:
		return t.Silent, false
	case 1:
		return t.Closed, false
	case 2, 3:
		return t.Secure, true
	}
	return t.Plain, true
}

// Result is what was measured.
type Result struct {
	Runs, Wrong int
	// Least is the shortest time between the beginnings of two runs of one probe.
	Least time.Duration
	// How long after their time runs began.
	LateP50, LateP99, LateMost time.Duration
	// CPU is processor time, and Elapsed the time that it was taken in.
	CPU, Elapsed time.Duration
	// Resident is the most memory that the process had, IdleResident what it had before the first probe.
	Resident, IdleResident int64
	// Series is how many series a scrape has, and Scrape how long one takes.
	Series int
	Scrape time.Duration
}

var errNothing = errors.New("no probe was run")

// Run runs a load in this process and measures it. Twice in each interval all series are scraped, as Prometheus would.
func Run(ctx context.Context, l Load) (Result, error) {
	idle, err := resident()
	if err != nil {
		return Result{}, err
	}
	seen := &begun{last: map[types.NamespacedName]time.Time{}, least: l.For}
	engine := run.New(run.Options{Started: seen.add})
	registry := prometheus.NewRegistry()
	if err := registry.Register(engine); err != nil {
		return Result{}, fmt.Errorf("register metrics: %w", err)
	}
	spentBefore, begin := spent(), time.Now()
	result := Result{IdleResident: idle}
	running, cancel := context.WithTimeout(ctx, l.For)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- engine.Start(running) }()
	for i := range l.Probes {
		if err := engine.Set(keyOf(i), l.probe(i)); err != nil {
			return Result{}, fmt.Errorf("set probe: %w", err)
		}
	}
	if err := l.scrape(running, registry, &result); err != nil {
		return Result{}, err
	}
	for i := range l.Probes {
		_, good := l.Targets.of(i)
		if v := engine.Verdicts(keyOf(i))[""]; !v.At.IsZero() && (v.Failure == nil) != good {
			result.Wrong++
		}
	}
	if err := errors.Join(<-done, ctx.Err()); err != nil {
		return Result{}, err
	}
	result.CPU, result.Elapsed = spent()-spentBefore, time.Since(begin)
	return result, seen.tell(&result)
}

func keyOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "bench", Name: "probe-" + strconv.Itoa(i)}
}

func (l Load) probe(i int) run.Probe {
	url, _ := l.Targets.of(i)
	return run.Probe{
		Cluster: "bench", Name: "probe-" + strconv.Itoa(i), Vantage: "cluster",
		Spec: v1alpha1.EndpointProbeSpec{
			Operator:     v1alpha1.OperatorReference{Namespace: "bench", Name: "operator-" + strconv.Itoa(i%30)},
			AllowPrivate: true, Interval: &metav1.Duration{Duration: l.Interval},
			Timeout: &metav1.Duration{Duration: l.Timeout},
			TLS:     &v1alpha1.ProbeTLS{InsecureSkipVerify: true},
		},
		Targets: []string{""},
		Resolve: func(context.Context, string) (probes.Target, *probes.Failure) { return probes.Target{URL: url}, nil },
	}
}

// scrape reads all series until ctx ends, and watches the memory.
func (l Load) scrape(ctx context.Context, registry *prometheus.Registry, result *Result) error {
	tick := time.NewTicker(l.Interval / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		begin := time.Now()
		series, err := write(registry)
		if err != nil {
			return err
		}
		now, err := resident()
		if err != nil {
			return err
		}
		result.Series, result.Scrape, result.Resident = series, time.Since(begin), max(result.Resident, now)
	}
}

func write(registry *prometheus.Registry) (series int, err error) {
	families, err := registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("gather series: %w", err)
	}
	encoder := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		series += len(family.GetMetric())
		if err := encoder.Encode(family); err != nil {
			return 0, fmt.Errorf("encode series: %w", err)
		}
	}
	return series, nil
}

// begun notes when runs began.
type begun struct {
	mu    sync.Mutex
	late  []time.Duration
	last  map[types.NamespacedName]time.Time
	least time.Duration
}

func (b *begun) add(key types.NamespacedName, late time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if last, ok := b.last[key]; ok {
		b.least = min(b.least, now.Sub(last))
	}
	b.last[key] = now
	b.late = append(b.late, late)
}

func (b *begun) tell(result *Result) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.late) == 0 {
		return errNothing
	}
	slices.Sort(b.late)
	result.Runs, result.Least = len(b.late), b.least
	result.LateP50, result.LateP99, result.LateMost = b.late[len(b.late)/2], b.late[len(b.late)*99/100],
		b.late[len(b.late)-1]
	return nil
}

// spent is the processor time of this process.
func spent() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resident is the memory of this process.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read memory: unexpected %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}
