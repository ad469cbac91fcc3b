// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/chaos"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
)

const (
	// slowLatency and slowJitter are those of a slow connection.
	slowLatency = time.Second
	slowJitter  = 500 * time.Millisecond
)

// disturber carries out what a deck deals, on the fleet that all tests share.
type disturber struct {
	t     *testing.T
	deck  *chaos.Deck
	began time.Time
	// agents are programs that are the agent with another clock.
	agents map[chaos.Kind]string

	mu   sync.Mutex
	busy map[string]bool
	// played counts by phase and disturbance.
	played map[string]map[string]int
}

func newDisturber(t *testing.T, deck *chaos.Deck) *disturber {
	t.Helper()
	d := &disturber{t: t, deck: deck, busy: map[string]bool{}, played: map[string]map[string]int{},
		agents: agentsWithClocks(t)}
	d.began = time.Now()
	return d
}

// disturb plays one disturbance after the other, several at a time, until the limit is over or the returned function is
// called, which puts everything right and waits for that.
func (d *disturber) disturb(phase string, limit time.Duration) (stop func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), limit)
	var playing sync.WaitGroup
	playing.Go(func() {
		for ctx.Err() == nil {
			x, ok := d.deal()
			if !ok {
				x.After = look
			}
			select {
			case <-ctx.Done():
			case <-time.After(x.After):
			}
			if ok {
				playing.Go(func() { d.play(ctx, phase, x) })
			}
		}
	})
	return func() {
		cancel()
		playing.Wait()
	}
}

// deal returns a disturbance whose target is this caller's until it calls free.
func (d *disturber) deal() (chaos.Disturbance, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := d.deck.Deal(d.busy)
	if ok {
		d.busy[x.Target()] = true
	}
	return x, ok
}

func (d *disturber) free(x chaos.Disturbance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, x.Target())
}

func (d *disturber) play(ctx context.Context, phase string, x chaos.Disturbance) {
	defer d.free(x)
	if ctx.Err() != nil {
		return
	}
	heal, err := d.begin(x)
	if errors.Is(err, errNotRunning) {
		return // it is being started again
	}
	d.t.Logf("%6.1fs %s: %s", time.Since(d.began).Seconds(), phase, x)
	if err != nil {
		d.t.Errorf("%s: %v", x, err)
		return
	}
	d.count(phase, x)
	select {
	case <-ctx.Done():
	case <-time.After(x.Lasts):
	}
	if err := heal(); err != nil {
		d.t.Errorf("put right that %s: %v", x, err)
	}
}

func (d *disturber) count(phase string, x chaos.Disturbance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.played[phase] == nil {
		d.played[phase] = map[string]int{}
	}
	d.played[phase][x.What()]++
}

// take begins one disturbance, which lasts until the returned function is called.
func (d *disturber) take(x chaos.Disturbance) (bringBack func() error, err error) {
	d.mu.Lock()
	busy := d.busy[x.Target()]
	d.busy[x.Target()] = true
	d.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("%s: its target is disturbed already", x.What())
	}
	heal, err := d.begin(x)
	if err != nil {
		d.free(x)
		return nil, err
	}
	d.t.Logf("%6.1fs %s", time.Since(d.began).Seconds(), x.What())
	return func() error {
		defer d.free(x)
		return heal()
	}, nil
}

// verdict fails the test if upgrades or rollbacks were not disturbed; with all, if any disturbance was left out.
func (d *disturber) verdict(all bool) {
	d.t.Helper()
	for _, phase := range []string{"upgrade", "rollback"} {
		counts := d.played[phase]
		if len(counts) == 0 {
			d.t.Errorf("nothing was disturbed during the %s", phase)
		}
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			d.t.Logf("%s: %3d times: %s", phase, counts[what], what)
		}
		for _, what := range chaos.All() {
			if all && phase == "upgrade" && counts[what] == 0 {
				d.t.Errorf("during the %s it never happened that %s", phase, what)
			}
		}
	}
}

// errNotRunning says that there is nothing to disturb just now.
var errNotRunning = errors.New("it does not run")

func nothing() error { return nil }

// begin disturbs something, and returns what puts it right.
func (d *disturber) begin(x chaos.Disturbance) (heal func() error, err error) {
	switch {
	case x.Part == chaos.Connection:
		return d.disturbConnection(x)
	case x.Part == chaos.Clock:
		return d.shiftClock(x)
	case x.Part == chaos.Registry:
		return func() error { return shared.StartRegistry(context.WithoutCancel(d.t.Context())) }, shared.StopRegistry()
	case x.Part == chaos.Prometheus && x.Kind == chaos.Gone:
		shared.Prometheus().Kill()
		return func() error { return shared.Prometheus().Restart(context.WithoutCancel(d.t.Context())) }, nil
	case x.Kind == chaos.Killed && (x.Part == chaos.APIServer || x.Part == chaos.HubAPIServer):
		c := clusterOf(x)
		c.KillAPIServer()
		return func() error { return c.RestartAPIServer(context.WithoutCancel(d.t.Context())) }, nil
	}
	found, err := processesOf(x)
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errNotRunning, err)
	}
	if x.Kind == chaos.Killed {
		return nothing, signalAll(syscall.SIGKILL, found)
	}
	return func() error { return signalAll(syscall.SIGCONT, found) }, signalAll(syscall.SIGSTOP, found)
}

func clusterOf(x chaos.Disturbance) *cluster.Cluster {
	if x.Cluster == "" {
		return shared.Fleet.Hub
	}
	return shared.Fleet.Cluster(x.Cluster)
}

// processesOf are the processes that a disturbance concerns. Of several hubs it is one, and at times all.
func processesOf(x chaos.Disturbance) ([]int, error) {
	switch x.Part {
	case chaos.Hub:
		found, err := hubs()
		if err != nil || len(found) == 0 || x.Among%3 == 0 {
			return found, err
		}
		return found[x.Among%len(found):][:1], nil
	case chaos.Agent:
		return agentsOf(x.Cluster)
	case chaos.Prometheus:
		return []int{shared.Prometheus().Process().PID()}, nil
	case chaos.OLM:
		return []int{clusterOf(x).PID(build.OLM)}, nil
	case chaos.Catalog:
		return []int{clusterOf(x).PID(build.OLMCatalog)}, nil
	default:
		return []int{clusterOf(x).PID(build.KubeAPIServer)}, nil
	}
}

func (d *disturber) disturbConnection(x chaos.Disturbance) (heal func() error, err error) {
	way := shared.HubProxy(x.Cluster)
	heal = func() error { return way.Heal(context.WithoutCancel(d.t.Context())) }
	switch x.Kind {
	case chaos.Slow:
		return heal, way.Delay(slowLatency, slowJitter)
	case chaos.Cut:
		return heal, way.Cut()
	default:
		way.Refuse()
		return heal, nil
	}
}

// shiftClock has the agent run with a clock that is off: it is killed, and its pod starts the other program.
func (d *disturber) shiftClock(x chaos.Disturbance) (heal func() error, err error) {
	return func() error { return restartAgent(x.Cluster, shared.Fleet.Binary(build.Agent)) },
		restartAgent(x.Cluster, d.agents[x.Kind])
}
