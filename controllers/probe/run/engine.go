// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run runs probes in this process: thousands of them, each at its own
// interval, with the prober of blackbox_exporter. It is given probes and tells
// verdicts and series; it knows no objects and writes nothing.
//
// What a probe is aimed at is hostile until shown otherwise: each run is bounded
// in time and bytes, goes only to addresses that it may go to, and takes no place
// from others (see lanes).
package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// ErrDuplicate says that another probe has the same labels, and so the same
// series.
var ErrDuplicate = errors.New("another EndpointProbe has the same cluster, operator and name")

// ErrSpec says that a spec passed admission and still cannot be used.
var ErrSpec = errSpec

// Probe is what is run.
type Probe struct {
	// Cluster, Name and Vantage are labels of its series, with Spec.Operator.
	Cluster, Name, Vantage string
	Spec                   v1alpha1.EndpointProbeSpec
	// Aim says, before each run, where to go. It must not wait long.
	Aim func(context.Context) (plan.Target, *plan.Failure)
}

// Options of an Engine.
type Options struct {
	// Quick and Slow are how many runs there may be at a time: of probes that
	// answered quickly when they last ran, and of all others. Default: 128, 384.
	Quick, Slow int
	// Changed is told of each probe whose verdict is not like the one before. It
	// must not block.
	Changed func(types.NamespacedName)
	// Began is told how long after its time each run began, for measurements. It
	// must not block.
	Began func(key types.NamespacedName, late time.Duration)
}

// Engine runs probes from Start until its context ends. Probes can be set and
// removed at any time.
type Engine struct {
	options  Options
	asker    *asker
	lateness prometheus.Histogram
	runs     *prometheus.CounterVec
	probes   *prometheus.Desc
	wake     chan struct{}
	running  sync.WaitGroup

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	owners  map[identity]types.NamespacedName
	due     queue
	lanes   lanes
}

// identity is what tells the series of one probe from those of others.
type identity struct {
	cluster       string
	operator      v1alpha1.OperatorReference
	name, vantage string
}

// entry is a probe and what is known of it; the Engine's lock guards it.
type entry struct {
	key     types.NamespacedName
	probe   *Probe
	labels  []*dto.LabelPair
	due     time.Time
	index   int   // in the queue; -1 while it waits for a lane or runs
	at      *lane // while it runs
	gone    bool
	slow    bool // how the newest run went; true before the first one
	verdict plan.Verdict
	samples []sample
}

// New returns an Engine without probes. It is a prometheus.Collector.
func New(o Options) *Engine {
	if o.Quick == 0 {
		o.Quick = 128
	}
	if o.Slow == 0 {
		o.Slow = 384
	}
	if o.Changed == nil {
		o.Changed = func(types.NamespacedName) {}
	}
	if o.Began == nil {
		o.Began = func(types.NamespacedName, time.Duration) {}
	}
	return &Engine{
		options: o,
		asker:   newAsker(guard{resolver: net.DefaultResolver, private: private}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: series.ProbeLateness, Help: "How long after its time a probe began, in seconds.",
			Buckets: []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60},
		}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: series.ProbeRunsTotal, Help: "Probes that were run, by their result.",
		}, []string{series.ProbeResult}),
		probes:  prometheus.NewDesc(series.ProbesRun, "Probes that are run here.", nil, nil),
		wake:    make(chan struct{}, 1),
		entries: map[types.NamespacedName]*entry{}, owners: map[identity]types.NamespacedName{},
		lanes: lanes{quick: lane{most: o.Quick}, slow: lane{most: o.Slow}},
	}
}

// Set adds a probe or replaces it; one that is the same keeps what is known of
// it. The error wraps ErrDuplicate or ErrSpec; then the probe is not run.
func (e *Engine) Set(key types.NamespacedName, p Probe) error {
	// Compiled again for each run: a module is larger than all else that is kept
	// of a probe.
	if _, err := compile(p.Spec); err != nil {
		e.Remove(key)
		return err
	}
	id := p.identity()
	e.mu.Lock()
	defer e.mu.Unlock()
	if owner, ok := e.owners[id]; ok && owner != key {
		e.remove(key)
		return fmt.Errorf("%w: %s", ErrDuplicate, owner)
	}
	if was, ok := e.entries[key]; ok && was.probe.identity() == id {
		e.change(was, &p)
		return nil
	}
	e.remove(key)
	added := &entry{key: key, probe: &p, labels: labelsOf(&p), slow: true, due: slot(key, p.interval(), time.Now())}
	e.entries[key], e.owners[id] = added, key
	e.due.add(added)
	e.prod()
	return nil
}

// change takes a spec over. One that is new is tried at once, unless the old one
// is running.
func (e *Engine) change(x *entry, p *Probe) {
	same := equality.Semantic.DeepEqual(x.probe.Spec, p.Spec)
	x.probe = p
	if same || !e.due.drop(x) {
		return
	}
	x.due = time.Now()
	e.due.add(x)
	e.prod()
}

func (p *Probe) identity() identity {
	return identity{p.Cluster, p.Spec.Operator, p.Name, p.Vantage}
}

func (p *Probe) interval() time.Duration { return plan.Length(p.Spec.Interval, plan.DefaultInterval) }

// Remove ends a probe and its series. A run that is on its way is let go.
func (e *Engine) Remove(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(key)
}

func (e *Engine) remove(key types.NamespacedName) {
	was, ok := e.entries[key]
	if !ok {
		return
	}
	was.gone = true
	e.due.drop(was)
	delete(e.entries, key)
	delete(e.owners, was.probe.identity())
}

// Verdict of a probe's newest run; the zero value before the first one.
func (e *Engine) Verdict(key types.NamespacedName) plan.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found, ok := e.entries[key]; ok {
		return found.verdict
	}
	return plan.Verdict{}
}

// slot is the first time after now at which a probe has its turn. Its name says
// where in the interval that is: after a restart each has its old place, and all
// of them never come at once.
func slot(key types.NamespacedName, interval time.Duration, now time.Time) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.String()))
	offset := time.Duration(h.Sum64() % uint64(interval))
	due := now.Truncate(interval).Add(offset)
	if !due.After(now) {
		due = due.Add(interval)
	}
	return due
}

// prod makes Start look at the queue again.
func (e *Engine) prod() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Start runs probes until ctx ends, and then waits for those that run.
func (e *Engine) Start(ctx context.Context) error {
	defer e.asker.relay.close()
	defer e.running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake:
		case <-timer.C:
		}
		timer.Reset(e.dispatch(ctx))
	}
}

// idle is how long Start sleeps without probes; setting one wakes it.
const idle = time.Hour

// dispatch starts what is due and returns how long nothing else will be.
func (e *Engine) dispatch(ctx context.Context) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for next := e.due.peek(); next != nil; next = e.due.peek() {
		if wait := next.due.Sub(now); wait > 0 {
			return wait
		}
		e.due.drop(next)
		at := e.lanes.of(next.slow)
		if !at.enter() {
			at.waiting = append(at.waiting, next)
			continue
		}
		next.at = at
		e.running.Go(func() { e.work(ctx, next) })
	}
	return idle
}
