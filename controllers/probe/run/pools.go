// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"container/heap"
	"context"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
)

// pools prevent endpoints that do not answer from delaying other probes. A probe starts in the
// slow pool if its last run took longer than slowAfter, or if it has not run yet. A probe that
// becomes slow in the fast pool moves to the slow pool during its run, if that pool has a free
// place. Therefore, if many endpoints do not answer, only their probes are late.
//
// Probes whose answers are kept and matched have separate, smaller pools: this limits the memory
// of all answers, and matching cannot use all processors.
type pools struct{ fast, slow pool }

// slowAfter is the duration after which a run counts as slow.
const slowAfter = time.Second

// pool limits the parallel runs. waiting are the endpoints that wait for a place.
type pool struct {
	limit, running int
	waiting        []*entry
}

// selectPool returns the slow or the fast pool.
func (l *pools) selectPool(slow bool) *pool {
	if slow {
		return &l.slow
	}
	return &l.fast
}

// acquire takes a place in the pool; false if there is no free place.
func (l *pool) acquire() bool {
	if l.running >= l.limit {
		return false
	}
	l.running++
	return true
}

// release returns the endpoint that has waited longest, which takes over the place. If none
// waits, it frees the place and returns nil.
func (l *pool) release() *entry {
	for len(l.waiting) > 0 {
		oldest := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		if !oldest.removed {
			return oldest
		}
	}
	l.running--
	return nil
}

// runProbes runs a probe, and then the probes that wait for the same place in the pool.
func (e *Engine) runProbes(ctx context.Context, x *entry) {
	for x != nil && ctx.Err() == nil {
		x = e.runNext(ctx, x)
	}
}

// runNext runs a probe that has a place in a pool, and returns the probe that
// gets the place afterwards.
func (e *Engine) runNext(ctx context.Context, x *entry) (next *entry) {
	e.mu.Lock()
	p, paid := x.probe, x.steps
	e.mu.Unlock()
	if p.cost.isMatched {
		e.budget.waitForSteps(ctx, paid)
	}
	e.mu.Lock()
	startedAt := time.Now()
	late := startedAt.Sub(x.due)
	e.mu.Unlock()
	e.lateness.Observe(late.Seconds())
	e.options.Started(x.key, late)
	moveTimer := time.AfterFunc(e.slowAfter, func() { e.moveToSlow(ctx, x, startedAt) })
	result, url := e.runOnce(ctx, p, x.target)
	moveTimer.Stop()
	e.budget.charge(paid, result.steps)
	e.mu.Lock()
	x.steps = result.steps
	changed := e.record(ctx, x, result, url, startedAt)
	next = e.releasePlace(x)
	e.mu.Unlock()
	if changed {
		e.options.Changed(x.key)
	}
	return next
}

// releasePlace releases the place of a probe, and returns the probe that gets the place; nil if
// none waits. The caller holds the Engine's lock.
func (e *Engine) releasePlace(x *entry) *entry {
	freed := x.pool
	x.pool = nil
	next := freed.release()
	if next != nil {
		next.pool = freed
	}
	return next
}

// moveToSlow moves a probe that has been running since startedAt to the slow pool, and
// gives its place in the fast pool to the next probe. It does nothing if that run has ended
// or the slow pool is full.
func (e *Engine) moveToSlow(ctx context.Context, x *entry, startedAt time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, pools := range []*pools{&e.pools, &e.matching} {
		// A due time after startedAt means that the run has ended.
		if x.pool == &pools.fast && !x.due.After(startedAt) && pools.slow.acquire() {
			e.moveToPool(ctx, x, &pools.slow)
			return
		}
	}
}

// moveToPool moves a running probe to another pool, in which it has a place already, and starts
// the probe that gets its old place. The caller holds the Engine's lock.
func (e *Engine) moveToPool(ctx context.Context, x *entry, to *pool) {
	next := e.releasePlace(x)
	x.pool = to
	if next != nil {
		e.running.Go(func() { e.runProbes(ctx, next) })
	}
}

// runOnce runs an endpoint of a probe once, within its timeout. It also
// returns the URL of the target.
func (e *Engine) runOnce(ctx context.Context, p *Probe, name string) (result, string) {
	ctx, cancel := context.WithTimeout(ctx, probes.DurationOr(p.Spec.Timeout, probes.DefaultTimeout))
	defer cancel()
	interval := sample{series: series.ProbeInterval,
		value: probes.DurationOr(p.Spec.Interval, probes.DefaultInterval).Seconds()}
	target, failure := p.Resolve(ctx, name)
	if failure != nil {
		return result{failure: failure, samples: []sample{{series: series.ProbeSuccess}, interval}}, ""
	}
	out := e.runner.run(ctx, p, target)
	out.samples = append(out.samples, interval)
	return out, target.URL
}

// record stores the result of a run, puts the probe back into the queue, and returns whether the
// verdict changed. The result is discarded if the probe was removed or ctx has ended. The caller
// holds the Engine's lock.
func (e *Engine) record(ctx context.Context, x *entry, result result, url string, startedAt time.Time) bool {
	if x.removed || ctx.Err() != nil {
		return false
	}
	now := time.Now()
	verdict := probes.Verdict{At: now, URL: url, Failure: result.failure}
	changed := !verdict.HasSameOutcome(x.verdict)
	x.verdict, x.samples, x.slow = verdict, result.samples, now.Sub(startedAt) > e.slowAfter
	outcome := "failure"
	x.attempts++
	if result.failure == nil {
		outcome = "success"
		x.successes++
	}
	e.runs.WithLabelValues(outcome).Inc()
	x.due = computeNextRun(x.scheduleKey(), x.probe.interval(), now)
	e.due.add(x)
	e.wakeUp()
	return changed
}

// queue is a heap of probes, sorted by the time at which they are due.
type queue []*entry

// add adds an endpoint to the queue.
func (q *queue) add(x *entry) { heap.Push(q, x) }

// remove removes an endpoint from the queue; false if the queue does not have it.
func (q *queue) remove(x *entry) bool {
	if x.index < 0 || x.index >= len(*q) || (*q)[x.index] != x {
		return false
	}
	heap.Remove(q, x.index)
	return true
}

// peek returns the endpoint that is due first; nil if the queue is empty.
func (q *queue) peek() *entry {
	if len(*q) == 0 {
		return nil
	}
	return (*q)[0]
}

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	added := x.(*entry)
	added.index = len(*q)
	*q = append(*q, added)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	removed := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	removed.index = -1
	return removed
}
