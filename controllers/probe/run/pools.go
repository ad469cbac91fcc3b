// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"container/heap"
	"context"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// pools keep endpoints that do not answer from delaying the probes of others. A
// probe starts in the slow pool if its last run took longer than slowAfter, or
// if it has not run yet. A probe that becomes slow in the fast pool moves to
// the slow pool during its run, if there is room. So if many endpoints do not
// answer, only their probes are late.
//
// Probes whose answers are kept and matched have pools of their own, which are smaller: what all answers take together
// is bounded, and matching cannot take every processor.
type pools struct{ fast, slow pool }

const slowAfter = time.Second

type pool struct {
	limit, running int
	waiting        []*entry
}

func (l *pools) forProbe(slow bool) *pool {
	if slow {
		return &l.slow
	}
	return &l.fast
}

func (l *pool) acquire() bool {
	if l.running >= l.limit {
		return false
	}
	l.running++
	return true
}

// release gives the place to the probe that has waited longest, or frees it.
func (l *pool) release() *entry {
	for len(l.waiting) > 0 {
		first := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		if !first.removed {
			return first
		}
	}
	l.running--
	return nil
}

// runProbes runs a probe, and then those that wait for the same place in the
// pool.
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
		e.budget.wait(ctx, paid)
	}
	e.mu.Lock()
	began := time.Now()
	late := began.Sub(x.due)
	e.mu.Unlock()
	e.lateness.Observe(late.Seconds())
	e.options.Started(x.key, late)
	moveTimer := time.AfterFunc(e.slowAfter, func() { e.moveToSlow(ctx, x, began) })
	result, url := e.runOnce(ctx, p, x.target)
	moveTimer.Stop()
	e.budget.charge(paid, result.steps)
	e.mu.Lock()
	x.steps = result.steps
	changed := e.record(ctx, x, result, url, began)
	next = e.releasePlace(x)
	e.mu.Unlock()
	if changed {
		e.options.Changed(x.key)
	}
	return next
}

// releasePlace gives up the place of a probe. The Engine's lock is held.
func (e *Engine) releasePlace(x *entry) *entry {
	from := x.pool
	x.pool = nil
	next := from.release()
	if next != nil {
		next.pool = from
	}
	return next
}

// moveToSlow moves a probe that has been running since began to the slow pool,
// and gives its place in the fast pool to the next probe.
func (e *Engine) moveToSlow(ctx context.Context, x *entry, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, pools := range []*pools{&e.pools, &e.matching} {
		if x.pool == &pools.fast && !x.due.After(began) && pools.slow.acquire() {
			e.move(ctx, x, &pools.slow)
			return
		}
	}
}

func (e *Engine) move(ctx context.Context, x *entry, to *pool) {
	next := e.releasePlace(x)
	x.pool = to
	if next != nil {
		e.running.Go(func() { e.runProbes(ctx, next) })
	}
}

// runOnce runs an endpoint of a probe once, within its timeout.
func (e *Engine) runOnce(ctx context.Context, p *Probe, name string) (result, string) {
	ctx, cancel := context.WithTimeout(ctx, plan.DurationOr(p.Spec.Timeout, plan.DefaultTimeout))
	defer cancel()
	interval := sample{series: series.ProbeInterval,
		value: plan.DurationOr(p.Spec.Interval, plan.DefaultInterval).Seconds()}
	target, failure := p.Resolve(ctx, name)
	if failure != nil {
		return result{failure: failure, samples: []sample{{series: series.ProbeSuccess}, interval}}, ""
	}
	out := e.runner.run(ctx, p, target)
	out.samples = append(out.samples, interval)
	return out, target.URL
}

// record stores the result of a run and puts the probe back into the queue. The
// Engine's lock is held. It returns whether the verdict changed.
func (e *Engine) record(ctx context.Context, x *entry, result result, url string, began time.Time) bool {
	if x.removed || ctx.Err() != nil {
		return false
	}
	now := time.Now()
	verdict := plan.Verdict{At: now, URL: url, Failure: result.failure}
	changed := !verdict.HasSameOutcome(x.verdict)
	x.verdict, x.samples, x.slow = verdict, result.samples, now.Sub(began) > e.slowAfter
	outcome := "failure"
	x.attempts++
	if result.failure == nil {
		outcome = "success"
		x.successes++
	}
	e.runs.WithLabelValues(outcome).Inc()
	x.due = nextTurn(x.turnKey(), x.probe.interval(), now)
	e.due.add(x)
	e.wakeUp()
	return changed
}

// queue is a heap of probes, ordered by the time at which they are due.
type queue []*entry

func (q *queue) add(x *entry) { heap.Push(q, x) }

// remove removes a probe from the queue, if it is in it.
func (q *queue) remove(x *entry) bool {
	if x.index < 0 || x.index >= len(*q) || (*q)[x.index] != x {
		return false
	}
	heap.Remove(q, x.index)
	return true
}

func (q *queue) first() *entry {
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
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	last.index = -1
	return last
}
