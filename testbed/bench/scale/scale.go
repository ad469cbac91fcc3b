// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/hollow"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

// Options say what fleets are measured.
type Options struct {
	// Clusters and Operators are combined. Those of more than MaxInstalls OperatorInstalls, and those that would
	// begin later than Limit after the start, are not measured: what they use at rest is extrapolated.
	Clusters, Operators []int
	MaxInstalls         int
	Limit               time.Duration
	// Idle is how long a fleet at rest is observed.
	Idle time.Duration
	// LeaseEvery is how often agents renew their Leases; the hub waits three times as long.
	LeaseEvery time.Duration
	// OwnWatches gives each hollow agent a watch of its own.
	OwnWatches bool
	Seed       uint64
}

// size is a fleet.
type size struct{ clusters, operators int }

func (s size) String() string { return fmt.Sprintf("%d clusters × %d", s.clusters, s.operators) }

func (s size) installs() int { return s.clusters * s.operators }

// converged is one rollout of all operators to all clusters.
type converged struct {
	size
	waves  int
	writes map[operation]int
	// took is how long the rollout took, and floor how long its writes take by themselves.
	took, floor time.Duration
	left        map[operation]int
	// cpu are the processor seconds of each process during the rollout.
	cpu map[string]float64
}

// rest is what a fleet at rest uses.
type rest struct {
	size
	// installed tells whether the operators are installed; without them there are none.
	installed bool
	// resident is the hub's memory, and heap the part of it that its garbage collector found in use.
	resident, heap, apiServer int64
	// requests, writes and processor seconds are per cluster and hour.
	agentRequests, hubRequests, etcdWrites, hubCPU, apiCPU float64
}

// restarted is how long a hub takes from its start until nothing is left to do.
type restarted struct {
	size
	took time.Duration
}

// fleets is what was measured of all sizes.
type fleets struct {
	rollouts []converged
	rests    []rest
	restarts []restarted
	// unmeasured are the sizes that were asked for and left out.
	unmeasured []size
}

// Measure measures fleets of all sizes, from the smallest on.
func Measure(ctx context.Context, out io.Writer, o Options) (figure.Section, error) {
	var all fleets
	start := time.Now()
	for _, clusters := range o.Clusters {
		for _, operators := range o.Operators {
			s := size{clusters, operators}
			if s.installs() > o.MaxInstalls || time.Since(start) > o.Limit {
				all.unmeasured = append(all.unmeasured, s)
				continue
			}
			if err := measure(ctx, out, o, s, &all); err != nil {
				return figure.Section{}, fmt.Errorf("measure %s: %w", s, err)
			}
		}
	}
	return report(o, all), nil
}

func measure(ctx context.Context, out io.Writer, o Options, s size, all *fleets) error {
	l, err := startLab(ctx, out, setup{clusters: s.clusters, operators: s.operators, hollow: o.hollow()})
	if err != nil {
		return err
	}
	err = l.measure(ctx, o, s, all)
	if stopErr := l.stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil); err == nil {
		err = stopErr
	}
	return err
}

func (o Options) hollow() hollow.Options {
	return hollow.Options{LeaseEvery: o.LeaseEvery, LeaseFor: 3 * o.LeaseEvery, OwnWatches: o.OwnWatches,
		Behaviour: hollow.Behaviour{Seed: o.Seed}}
}

func (l *lab) measure(ctx context.Context, o Options, s size, all *fleets) error {
	first := len(all.rollouts)
	empty, err := l.rest(ctx, o, s, false)
	if err != nil {
		return err
	}
	for version, waves := range []int{1, 5} {
		c := converged{size: s, waves: waves}
		before, err := l.use(ctx)
		if err != nil {
			return err
		}
		if c.took, err = l.rollOut(ctx, s.operators, version, waves); err != nil {
			return err
		}
		after, err := l.use(ctx)
		if err != nil {
			return err
		}
		c.writes, c.cpu = after.writesSince(before), after.cpuSince(before)
		l.say("%s operators, %d waves: %s, %d writes, processor seconds: hub %.1f, API server %.1f, etcd %.1f, agents "+
			"%.1f", s, waves, c.took.Round(time.Millisecond), total(c.writes), c.cpu[build.Hub],
			c.cpu[build.KubeAPIServer], c.cpu[build.Etcd], c.cpu[agents])
		all.rollouts = append(all.rollouts, c)
	}
	full, err := l.rest(ctx, o, s, true)
	if err != nil {
		return err
	}
	all.rests = append(all.rests, empty, full)
	took, err := l.restartHub(ctx, s)
	if err != nil {
		return err
	}
	all.restarts = append(all.restarts, restarted{s, took})
	return l.floors(ctx, all.rollouts[first:])
}

// floors measures how long the writes of rollouts take by themselves, without the hub and the agents.
func (l *lab) floors(ctx context.Context, rollouts []converged) error {
	if err := l.fleet.Stop(); err != nil {
		return err
	}
	l.fleet = nil
	l.hub.Stop(ctx)
	for i := range rollouts {
		c := &rollouts[i]
		var err error
		if c.floor, c.left, err = l.floor(ctx, c.writes); err != nil {
			return fmt.Errorf("measure floor: %w", err)
		}
		l.say("%s operators, %d waves: %s against the floor's %s: %.2f; %d writes were left out", c.size, c.waves,
			c.took.Round(time.Millisecond), c.floor.Round(time.Millisecond), c.took.Seconds()/c.floor.Seconds(),
			total(c.left))
	}
	return nil
}

// rest waits until the hub has nothing left to do, and then observes the fleet.
func (l *lab) rest(ctx context.Context, o Options, s size, installed bool) (rest, error) {
	r := rest{size: s, installed: installed}
	ctx, release := whileRuns(ctx, l.hub)
	defer release()
	if _, err := l.untilIdle(ctx, l.hub); err != nil {
		return r, err
	}
	before, err := l.use(ctx)
	if err != nil {
		return r, err
	}
	select {
	case <-ctx.Done():
		return r, context.Cause(ctx)
	case <-time.After(o.Idle):
	}
	after, err := l.use(ctx)
	if err != nil {
		return r, err
	}
	r.resident, r.heap, r.apiServer = after.resident[build.Hub], after.heap, after.resident[build.KubeAPIServer]
	perHour := func(used float64) float64 {
		return used / after.at.Sub(before.at).Hours() / float64(s.clusters)
	}
	r.agentRequests = perHour(float64(after.agents - before.agents))
	r.hubRequests = perHour(float64(after.hub - before.hub))
	r.etcdWrites = perHour(after.etcdWrites - before.etcdWrites)
	r.hubCPU = perHour(after.cpu[build.Hub] - before.cpu[build.Hub])
	r.apiCPU = perHour(after.cpu[build.KubeAPIServer] - before.cpu[build.KubeAPIServer])
	l.say("%s operators at rest, installed %t: hub %.1f MiB resident, %.1f MiB live heap, API server %.1f MiB; per "+
		"cluster and hour: %.0f requests of the agent, %.1f of the hub, %.0f writes to etcd, processor seconds: hub "+
		"%.2f, API server %.2f", s, installed, mebi(r.resident), mebi(r.heap), mebi(r.apiServer), r.agentRequests,
		r.hubRequests, r.etcdWrites, r.hubCPU, r.apiCPU)
	return r, nil
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// quiet is how long a hub must have nothing queued to count as idle: some controllers gather changes for up to two
// seconds, which are in no queue meanwhile.
const quiet = 3 * time.Second

// untilIdle waits until a hub leads, has read everything and has had nothing queued and nothing under way for quiet. It
// returns when that began. Retries that wait for their time do not count.
func (l *lab) untilIdle(ctx context.Context, h *stage.Hub) (time.Time, error) {
	var since time.Time
	err := poll.Until(ctx, lookIdle, func() error {
		now := time.Now()
		m, err := h.Metrics(ctx)
		if err != nil {
			since = time.Time{}
			return err
		}
		queued, working := m.Sum("workqueue_depth"), m.Sum("controller_runtime_active_workers")
		leads, done := m.Sum("leader_election_master_status"), m.Sum("controller_runtime_reconcile_total",
			"controller", "fleet")
		if leads < 1 || done < float64(len(l.names)) || queued+working > 0 {
			since = time.Time{}
			return fmt.Errorf("the hub is busy: leader %.0f, %.0f clusters reconciled, %.0f objects queued, %.0f "+
				"under way", leads, done, queued, working)
		}
		if since.IsZero() {
			since = now
		}
		if idle := now.Sub(since); idle < quiet {
			return fmt.Errorf("the hub has been idle for %s of %s", idle.Round(time.Millisecond), quiet)
		}
		return nil
	})
	return since, err
}

// lookIdle is how often the hub's metrics are read meanwhile, which costs the hub something.
const lookIdle = 250 * time.Millisecond

const look = 50 * time.Millisecond

// restartHub stops the hub as an upgrade of it does and starts it again; it returns how long it takes from the start of
// the process until nothing is left to do.
func (l *lab) restartHub(ctx context.Context, s size) (time.Duration, error) {
	l.hub.Stop(ctx)
	began := time.Now()
	if err := l.startHub(ctx); err != nil {
		return 0, err
	}
	since, err := l.untilIdle(ctx, l.hub)
	if err != nil {
		return 0, err
	}
	took := since.Sub(began)
	l.say("%s operators: caught up %s after the start of a hub", s, took.Round(time.Millisecond))
	return took, nil
}
