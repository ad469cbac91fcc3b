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

// lanes keep probes of endpoints that hang from making others late. One that
// took longer than slowAfter when it last ran, or that never ran, starts in the
// slow lane. One that turns out slow in the quick lane goes over to the slow one
// while it runs, if there is room. Where an endpoint of every second probe hangs,
// those are late, and the others are not.
type lanes struct{ quick, slow lane }

const slowAfter = time.Second

type lane struct {
	most, taken int
	waiting     []*entry
}

func (l *lanes) of(slow bool) *lane {
	if slow {
		return &l.slow
	}
	return &l.quick
}

func (l *lane) enter() bool {
	if l.taken >= l.most {
		return false
	}
	l.taken++
	return true
}

// next gives the place in a lane to who waits longest, or up.
func (l *lane) next() *entry {
	for len(l.waiting) > 0 {
		first := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		if !first.gone {
			return first
		}
	}
	l.taken--
	return nil
}

// work runs a probe, and then those that wait for the place that it took.
func (e *Engine) work(ctx context.Context, x *entry) {
	for x != nil && ctx.Err() == nil {
		x = e.once(ctx, x)
	}
}

// once runs a probe that has a place in a lane, and returns the one that the
// place goes to.
func (e *Engine) once(ctx context.Context, x *entry) (next *entry) {
	e.mu.Lock()
	p, began := x.probe, time.Now()
	late := began.Sub(x.due)
	e.mu.Unlock()
	e.lateness.Observe(late.Seconds())
	e.options.Began(x.key, late)
	over := time.AfterFunc(slowAfter, func() { e.moveOver(ctx, x, began) })
	got, url := e.try(ctx, p)
	over.Stop()
	e.mu.Lock()
	changed := e.finish(ctx, x, got, url, began)
	next = e.hand(x)
	e.mu.Unlock()
	if changed {
		e.options.Changed(x.key)
	}
	return next
}

// hand gives up the place of a probe; the Engine's lock is held.
func (e *Engine) hand(x *entry) *entry {
	at := x.at
	x.at = nil
	next := at.next()
	if next != nil {
		next.at = at
	}
	return next
}

// moveOver takes a probe that has been running since began to the slow lane, and
// gives its place in the quick one away.
func (e *Engine) moveOver(ctx context.Context, x *entry, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.at != &e.lanes.quick || x.due.After(began) || !e.lanes.slow.enter() {
		return
	}
	next := e.hand(x)
	x.at = &e.lanes.slow
	if next != nil {
		e.running.Go(func() { e.work(ctx, next) })
	}
}

// try runs a probe once, within its timeout.
func (e *Engine) try(ctx context.Context, p *Probe) (answer, string) {
	ctx, cancel := context.WithTimeout(ctx, plan.Length(p.Spec.Timeout, plan.DefaultTimeout))
	defer cancel()
	target, failure := p.Aim(ctx)
	if failure != nil {
		return answer{failure: failure, samples: []sample{{series: series.ProbeSuccess}}}, ""
	}
	return e.asker.ask(ctx, p, target), target.URL
}

// finish takes a run's result down and puts the probe back into the queue; the
// Engine's lock is held. It tells whether the verdict changed.
func (e *Engine) finish(ctx context.Context, x *entry, got answer, url string, began time.Time) bool {
	if x.gone || ctx.Err() != nil {
		return false
	}
	now := time.Now()
	verdict := plan.Verdict{At: now, URL: url, Failure: got.failure}
	changed := !verdict.Alike(x.verdict)
	x.verdict, x.samples, x.slow = verdict, got.samples, now.Sub(began) > slowAfter
	result := "success"
	if got.failure != nil {
		result = "failure"
	}
	e.runs.WithLabelValues(result).Inc()
	x.due = slot(x.key, x.probe.interval(), now)
	e.due.add(x)
	e.prod()
	return changed
}

// queue holds probes by the time at which they are due: a heap.
type queue []*entry

func (q *queue) add(x *entry) { heap.Push(q, x) }

// drop takes a probe out, if it is in.
func (q *queue) drop(x *entry) bool {
	if x.index < 0 || x.index >= len(*q) || (*q)[x.index] != x {
		return false
	}
	heap.Remove(q, x.index)
	return true
}

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
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	last.index = -1
	return last
}
