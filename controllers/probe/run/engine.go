// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run runs probes in this process: thousands of them, each at its own
// interval, with the prober of blackbox_exporter. It takes probes and returns
// results and series. It knows no Kubernetes objects and writes nothing.
//
// Endpoints are not trusted: each run is bounded in time and bytes, connects
// only to permitted addresses, and cannot delay other probes (see pools).
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
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

// ErrDuplicate says that another probe has the same labels, and therefore the
// same series.
var ErrDuplicate = errors.New("another EndpointProbe has the same cluster, operator and name")

// ErrSpec says that the API server accepted a spec that cannot be used.
var ErrSpec = errSpec

// Probe is a probe to run.
type Probe struct {
	// Cluster, Name, Vantage and Spec.Operator are the labels of its series.
	Cluster, Name, Vantage string
	Spec                   v1alpha1.EndpointProbeSpec
	// Targets are the names of its endpoints: the label target of their series. Each
	// endpoint is run on its own. A probe of one endpoint has one, without a name.
	Targets []string
	// Resolve returns what to probe for a name in Targets, before each run. It must
	// not block for long.
	Resolve func(ctx context.Context, target string) (plan.Target, *plan.Failure)

	// cost is set by the Engine.
	cost cost
}

// Options of an Engine.
type Options struct {
	// Cluster is a label of what the Engine says of itself, because a process may have
	// an Engine for each of several clusters. Empty: no label.
	Cluster string
	// Fast and Slow limit how many runs there are at a time: of probes whose
	// last run was fast, and of all others. Default: 128, 384.
	Fast, Slow int
	// MatchingFast and MatchingSlow are the same for probes that match the answer.
	// Default: 8, 16.
	MatchingFast, MatchingSlow int
	// Denied are addresses that no probe connects to, whatever its spec says.
	Denied []netip.Prefix
	// NoPrivate refuses private addresses also to probes with spec.allowPrivate, and
	// Private are addresses that are private besides those that always are.
	NoPrivate bool
	Private   []netip.Prefix
	// Changed is called for each probe with an endpoint whose result differs from
	// the one before. It must not block.
	Changed func(types.NamespacedName)
	// Started is called with the delay of each run after its due time, for
	// measurements. It must not block.
	Started func(key types.NamespacedName, late time.Duration)
}

// Engine runs probes from Start until its context ends. Probes can be set and
// removed at any time.
type Engine struct {
	options  Options
	runner   *runner
	lateness prometheus.Histogram
	runs     *prometheus.CounterVec
	probes   *prometheus.Desc
	wake     chan struct{}
	// slowAfter is how long a run may take in the fast pool.
	slowAfter time.Duration
	running   sync.WaitGroup

	mu     sync.Mutex
	set    map[types.NamespacedName]*probeEntries
	owners map[identity]types.NamespacedName
	due    queue
	pools  pools
	// matching are the pools of probes that match the answer, and budget bounds what
	// that takes.
	matching pools
	budget   budget
}

// probeEntries are the endpoints of a probe by name.
type probeEntries struct {
	identity identity
	targets  map[string]*entry
}

// identity is what distinguishes the series of one probe from those of others.
type identity struct {
	cluster       string
	operator      v1alpha1.OperatorReference
	name, vantage string
}

// entry is an endpoint of a probe and its state, guarded by the Engine's lock.
type entry struct {
	key     types.NamespacedName
	target  string
	probe   *Probe
	labels  []*dto.LabelPair
	due     time.Time
	index   int   // in the queue; -1 while it waits in a pool or runs
	pool    *pool // while it runs
	removed bool
	slow    bool // whether the newest run was slow; true before the first one
	verdict plan.Verdict
	samples []sample
	// steps are those of the newest run, and those that are expected of the first one.
	steps int
	// attempts are the runs that ended, successes those of them that succeeded.
	attempts, successes float64
}

// New returns an Engine without probes. It is a prometheus.Collector.
func New(o Options) *Engine {
	o.Fast, o.Slow = cmp.Or(o.Fast, 128), cmp.Or(o.Slow, 384)
	o.MatchingFast, o.MatchingSlow = cmp.Or(o.MatchingFast, 8), cmp.Or(o.MatchingSlow, 16)
	if o.Changed == nil {
		o.Changed = func(types.NamespacedName) {}
	}
	if o.Started == nil {
		o.Started = func(types.NamespacedName, time.Duration) {}
	}
	var own prometheus.Labels
	if o.Cluster != "" {
		own = prometheus.Labels{series.Cluster: o.Cluster}
	}
	return &Engine{
		options:   o,
		slowAfter: slowAfter,
		runner: newRunner(addressResolver{names: net.DefaultResolver, isPrivate: withPrivate(o.Private),
			denied: o.Denied, noPrivate: o.NoPrivate}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: series.ProbeLateness, Help: "How long after its due time a probe started, in seconds.",
			Buckets: []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60}, ConstLabels: own,
		}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: series.ProbeRunsTotal, Help: "Probes that were run, by their result.", ConstLabels: own,
		}, []string{series.ProbeResult}),
		probes: prometheus.NewDesc(series.ProbesRun, "Endpoints that are probed here.", nil, own),
		wake:   make(chan struct{}, 1),
		set:    map[types.NamespacedName]*probeEntries{}, owners: map[identity]types.NamespacedName{},
		pools:    pools{fast: pool{limit: o.Fast}, slow: pool{limit: o.Slow}},
		matching: pools{fast: pool{limit: o.MatchingFast}, slow: pool{limit: o.MatchingSlow}},
		budget:   newBudget(),
	}
}

// Set adds or replaces a probe. Endpoints that it had before keep their state, and
// the series of those that it no longer has end. The error wraps ErrDuplicate or
// ErrSpec; the probe is not run then.
func (e *Engine) Set(key types.NamespacedName, p Probe) error {
	// The module is compiled again for each run, because it is larger than the
	// rest of the probe's state.
	_, err := compile(p.Spec)
	if err == nil {
		p.cost, err = costOf(p.Spec)
	}
	if err != nil {
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
	if existing, ok := e.set[key]; !ok || existing.identity != id {
		e.remove(key)
		e.set[key], e.owners[id] = &probeEntries{identity: id, targets: map[string]*entry{}}, key
	}
	e.setTargets(key, &p)
	return nil
}

// setTargets adds, updates and removes endpoints of a probe.
func (e *Engine) setTargets(key types.NamespacedName, p *Probe) {
	entries := e.set[key].targets
	for name, existing := range entries {
		if !slices.Contains(p.Targets, name) {
			e.removeEntry(existing)
			delete(entries, name)
		}
	}
	for _, name := range p.Targets {
		if existing, ok := entries[name]; ok {
			e.update(existing, p)
			continue
		}
		added := &entry{key: key, target: name, probe: p, labels: labelsOf(p, name), slow: true,
			steps: p.cost.expected()}
		added.due = nextTurn(added.turnKey(), p.interval(), time.Now())
		entries[name] = added
		e.due.add(added)
		e.wakeUp()
	}
}

// update replaces the spec. A changed spec is run immediately, unless a run is
// in progress.
func (e *Engine) update(x *entry, p *Probe) {
	same := equality.Semantic.DeepEqual(x.probe.Spec, p.Spec)
	x.probe = p
	if same || !e.due.remove(x) {
		return
	}
	x.due, x.steps = time.Now(), p.cost.expected()
	e.due.add(x)
	e.wakeUp()
}

func (p *Probe) identity() identity {
	return identity{p.Cluster, p.Spec.Operator, p.Name, p.Vantage}
}

func (p *Probe) interval() time.Duration {
	return plan.DurationOr(p.Spec.Interval, plan.DefaultInterval)
}

// Remove removes a probe and its series. The result of a run in progress is
// dropped.
func (e *Engine) Remove(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(key)
}

func (e *Engine) remove(key types.NamespacedName) {
	removed, ok := e.set[key]
	if !ok {
		return
	}
	for _, x := range removed.targets {
		e.removeEntry(x)
	}
	delete(e.set, key)
	delete(e.owners, removed.identity)
}

func (e *Engine) removeEntry(x *entry) {
	x.removed = true
	e.due.remove(x)
}

// Verdicts returns the result of the newest run of each endpoint of a probe by
// name; zero before the first one.
func (e *Engine) Verdicts(key types.NamespacedName) map[string]plan.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	verdicts := map[string]plan.Verdict{}
	if found, ok := e.set[key]; ok {
		for name, x := range found.targets {
			verdicts[name] = x.verdict
		}
	}
	return verdicts
}

// turnKey is the name of an endpoint among all.
func (x *entry) turnKey() string {
	if x.target == "" {
		return x.key.String()
	}
	return x.key.String() + "/" + x.target
}

// nextTurn returns the next time after now at which a probe is due. The offset
// within the interval follows from the endpoint's name: it stays the same after a
// restart, and probes are spread over the interval.
func nextTurn(key string, interval time.Duration, now time.Time) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	offset := time.Duration(h.Sum64() % uint64(interval))
	due := now.Truncate(interval).Add(offset)
	if !due.After(now) {
		due = due.Add(interval)
	}
	return due
}

// wakeUp makes Start look at the queue again.
func (e *Engine) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Start runs probes until ctx ends, and then waits for the running ones.
func (e *Engine) Start(ctx context.Context) error {
	defer e.runner.proxy.close()
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

// idle is how long Start sleeps if there are no probes. Adding one wakes it.
const idle = time.Hour

// dispatch starts the probes that are due and returns the time until the next
// one is.
func (e *Engine) dispatch(ctx context.Context) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for next := e.due.first(); next != nil; next = e.due.first() {
		if wait := next.due.Sub(now); wait > 0 {
			return wait
		}
		e.due.remove(next)
		pools := &e.pools
		if next.probe.cost.isMatched {
			pools = &e.matching
		}
		pool := pools.forProbe(next.slow)
		if !pool.acquire() {
			pool.waiting = append(pool.waiting, next)
			continue
		}
		next.pool = pool
		e.running.Go(func() { e.runProbes(ctx, next) })
	}
	return idle
}
