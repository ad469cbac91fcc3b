// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run runs probes in this process: thousands of probes, each at its own interval, with
// the prober of blackbox_exporter. Its input is probes, and its output is results and series. It
// uses no Kubernetes objects and writes nothing.
//
// Endpoints are not trusted: each run is limited in time and bytes, connects only to permitted
// addresses, and cannot delay other probes (see pools).
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

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrDuplicate means that another probe has the same labels, and therefore the same series.
var ErrDuplicate = errors.New("another EndpointProbe has the same cluster, operator and name")

// ErrSpec means that the API server accepted a spec that cannot be used.
var ErrSpec = errSpec

// Probe is a probe to run.
type Probe struct {
	// Cluster, Name, Vantage and Spec.Operator are the labels of the probe's series.
	Cluster, Name, Vantage string
	Spec                   v1alpha1.EndpointProbeSpec
	// Targets are the names of the probe's endpoints: the label target of their series. Each
	// endpoint is run separately. A probe of a single endpoint has one empty name.
	Targets []string
	// Resolve returns the target for a name in Targets. It is called before each run,
	// and must not block for long.
	Resolve func(ctx context.Context, target string) (probes.Target, *probes.Failure)

	// cost is set by the Engine.
	cost cost
}

// Options of an Engine.
type Options struct {
	// Cluster is a label of the Engine's own metrics, because a process can have one Engine for
	// each of several clusters. Empty: no label.
	Cluster string
	// Fast limits the parallel runs of probes whose last run was fast, and Slow limits the
	// other runs. Default: 128, 384.
	Fast, Slow int
	// MatchingFast and MatchingSlow are the limits for probes that match
	// the answer. Default: 8, 16.
	MatchingFast, MatchingSlow int
	// Denied are addresses that no probe connects to, independent of its spec.
	Denied []netip.Prefix
	// NoPrivate refuses private addresses even to probes with spec.allowPrivate. Private are
	// additional private addresses.
	NoPrivate bool
	Private   []netip.Prefix
	// Changed is called for each probe with an endpoint whose result has
	// changed. It must not block.
	Changed func(types.NamespacedName)
	// Started is called at the start of each run with the delay after its due time. It is for
	// measurements, and must not block.
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

	mu      sync.Mutex
	entries map[types.NamespacedName]*probeEntries
	owners  map[identity]types.NamespacedName
	due     queue
	pools   pools
	// matching are the pools of probes that match the answer, and budget limits the
	// processor time of matching.
	matching pools
	budget   budget
}

// probeEntries are the endpoints of a probe by name.
type probeEntries struct {
	identity identity
	targets  map[string]*entry
}

// identity is the set of labels that distinguishes the series of one probe from
// the series of other probes.
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
	verdict probes.Verdict
	samples []sample
	// steps is the cost of the newest run; before the first run, it is the expected cost.
	steps int
	// attempts counts the runs that ended, and successes counts the successful runs.
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
	var constLabels prometheus.Labels
	if o.Cluster != "" {
		constLabels = prometheus.Labels{series.Cluster: o.Cluster}
	}
	return &Engine{
		options:   o,
		slowAfter: slowAfter,
		runner: newRunner(addressResolver{names: net.DefaultResolver, isPrivate: newPrivateCheck(o.Private),
			denied: o.Denied, noPrivate: o.NoPrivate}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: series.ProbeLateness, Help: "How long after its due time a probe started, in seconds.",
			Buckets: []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60}, ConstLabels: constLabels,
		}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: series.ProbeRunsTotal, Help: "Probes that were run, by their result.", ConstLabels: constLabels,
		}, []string{series.ProbeResult}),
		probes:  prometheus.NewDesc(series.ProbesRun, "Endpoints that are probed here.", nil, constLabels),
		wake:    make(chan struct{}, 1),
		entries: map[types.NamespacedName]*probeEntries{}, owners: map[identity]types.NamespacedName{},
		pools:    pools{fast: pool{limit: o.Fast}, slow: pool{limit: o.Slow}},
		matching: pools{fast: pool{limit: o.MatchingFast}, slow: pool{limit: o.MatchingSlow}},
		budget:   newBudget(),
	}
}

// Set adds or replaces a probe. Existing endpoints keep their state unless the probe's labels
// change, and the series of removed endpoints end. After an error, which wraps ErrDuplicate or
// ErrSpec, the Engine has no probe with the key.
func (e *Engine) Set(key types.NamespacedName, p Probe) error {
	// The module is compiled again for each run, because it is larger than the
	// rest of the probe's state.
	_, err := compile(p.Spec)
	if err == nil {
		p.cost, err = computeCost(p.Spec)
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
	if existing, ok := e.entries[key]; !ok || existing.identity != id {
		e.remove(key)
		e.entries[key], e.owners[id] = &probeEntries{identity: id, targets: map[string]*entry{}}, key
	}
	e.setTargets(key, &p)
	return nil
}

// setTargets adds, updates and removes endpoints of a probe. The caller holds the lock.
func (e *Engine) setTargets(key types.NamespacedName, p *Probe) {
	entries := e.entries[key].targets
	for name, existing := range entries {
		if !slices.Contains(p.Targets, name) {
			e.removeEntry(existing)
			delete(entries, name)
		}
	}
	for _, name := range p.Targets {
		if existing, ok := entries[name]; ok {
			e.updateEntry(existing, p)
			continue
		}
		added := &entry{key: key, target: name, probe: p, labels: buildLabels(p, name), slow: true,
			steps: p.cost.expectedSteps()}
		added.due = computeNextRun(added.scheduleKey(), p.interval(), time.Now())
		entries[name] = added
		e.due.add(added)
		e.wakeUp()
	}
}

// updateEntry replaces the probe of an endpoint. A changed spec is run immediately. If the
// endpoint runs or waits in a pool already, the changed spec is used from the next run.
func (e *Engine) updateEntry(x *entry, p *Probe) {
	isUnchanged := equality.Semantic.DeepEqual(x.probe.Spec, p.Spec)
	x.probe = p
	if isUnchanged || !e.due.remove(x) {
		return
	}
	x.due, x.steps = time.Now(), p.cost.expectedSteps()
	e.due.add(x)
	e.wakeUp()
}

// identity returns the labels that identify the probe's series.
func (p *Probe) identity() identity {
	return identity{cluster: p.Cluster, operator: p.Spec.Operator, name: p.Name, vantage: p.Vantage}
}

// interval returns the time between two runs.
func (p *Probe) interval() time.Duration {
	return probes.DurationOr(p.Spec.Interval, probes.DefaultInterval)
}

// Remove removes a probe and its series. The result of a run in progress is discarded.
func (e *Engine) Remove(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(key)
}

// remove removes a probe. The caller holds the lock.
func (e *Engine) remove(key types.NamespacedName) {
	removed, ok := e.entries[key]
	if !ok {
		return
	}
	for _, x := range removed.targets {
		e.removeEntry(x)
	}
	delete(e.entries, key)
	delete(e.owners, removed.identity)
}

// removeEntry removes an endpoint from the queue. The caller holds the lock.
func (e *Engine) removeEntry(x *entry) {
	x.removed = true
	e.due.remove(x)
}

// Verdicts returns the result of the newest run of each endpoint of a probe by name. A result is
// zero before the first run.
func (e *Engine) Verdicts(key types.NamespacedName) map[string]probes.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	verdicts := map[string]probes.Verdict{}
	if found, ok := e.entries[key]; ok {
		for name, x := range found.targets {
			verdicts[name] = x.verdict
		}
	}
	return verdicts
}

// scheduleKey returns a name that is unique among all endpoints.
func (x *entry) scheduleKey() string {
	if x.target == "" {
		return x.key.String()
	}
	return x.key.String() + "/" + x.target
}

// computeNextRun returns the next time after now at which a probe is due. The offset within the
// interval is computed from the endpoint's name, so that it stays the same after a restart and
// the probes are spread over the interval.
func computeNextRun(key string, interval time.Duration, now time.Time) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	offset := time.Duration(h.Sum64() % uint64(interval))
	due := now.Truncate(interval).Add(offset)
	if !due.After(now) {
		due = due.Add(interval)
	}
	return due
}

// wakeUp makes Start check the queue again.
func (e *Engine) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default: // Start is going to check the queue already
	}
}

// Start runs probes until ctx ends, and then waits until the running probes have ended.
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

// idleWait is how long Start waits if there are no probes. A new probe ends the wait.
const idleWait = time.Hour

// dispatch starts the probes that are due and returns the time until the next probe is due.
func (e *Engine) dispatch(ctx context.Context) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for next := e.due.peek(); next != nil; next = e.due.peek() {
		if wait := next.due.Sub(now); wait > 0 {
			return wait
		}
		e.due.remove(next)
		pools := &e.pools
		if next.probe.cost.isMatched {
			pools = &e.matching
		}
		pool := pools.selectPool(next.slow)
		if !pool.acquire() {
			pool.waiting = append(pool.waiting, next) // starts when another probe releases its place
			continue
		}
		next.pool = pool
		e.running.Go(func() { e.runProbes(ctx, next) })
	}
	return idleWait
}
