// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// supervisor runs an agent for each hosted cluster. Each agent has separate connections, caches,
// queues and goroutines, so that a slow or unreachable cluster delays no other cluster. An agent
// that ends is started again with growing delays.
type supervisor struct {
	serve func(ctx context.Context, t target, started func()) error
	// slots limit how many clusters fill their caches at the same time.
	slots chan struct{}
	// slotTimeout limits how long a cluster may use its slot, so that a cluster that does not
	// answer does not prevent other clusters from starting.
	slotTimeout time.Duration
	// firstDelay is the delay before the first restart.
	firstDelay time.Duration
	// connections has the served clusters.
	connections connections

	mu sync.Mutex
	// running has the served clusters by the name of their Secret. stopping has the clusters
	// that were stopped and might not have ended yet.
	running  map[string]*member
	stopping []*member
	group    sync.WaitGroup
}

// member is a served cluster.
type member struct {
	target
	fingerprint [sha256.Size]byte
	cancel      context.CancelFunc
	done        chan struct{}
}

const (
	maxStarting  = 4
	startTimeout = 10 * time.Second
	minDelay     = time.Second
	maxDelay     = 30 * time.Second
)

// newSupervisor returns a supervisor without clusters. serve runs the agent of one cluster.
func newSupervisor(serve func(context.Context, target, func()) error) *supervisor {
	return &supervisor{serve: serve, slots: make(chan struct{}, maxStarting), slotTimeout: startTimeout,
		firstDelay: minDelay, running: map[string]*member{}}
}

// errTaken means that two Secrets use the same cluster or port.
var errTaken = errors.New("another Secret uses the cluster or some of its ports")

// start serves the cluster of a Secret, or restarts the service if the Secret has changed. The
// error wraps errTaken if another Secret uses the cluster or one of its ports.
func (s *supervisor) start(secret string, fingerprint [sha256.Size]byte, t target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	previous := s.running[secret]
	if previous != nil && previous.fingerprint == fingerprint {
		return nil
	}
	for name, other := range s.running {
		if name != secret && other.overlaps(t) {
			return fmt.Errorf("%w: Secret %s has cluster %s and ports %d-%d", errTaken, name, other.cluster,
				other.ports.First, other.ports.Last)
		}
	}
	s.stopMember(secret)
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{target: t, fingerprint: fingerprint, cancel: cancel, done: make(chan struct{})}
	s.running[secret] = m
	// A stopped member that used the cluster or its ports must end first.
	predecessors := slices.DeleteFunc(slices.Clone(s.stopping), func(e *member) bool { return !e.overlaps(t) })
	s.group.Go(func() {
		defer close(m.done)
		for _, e := range predecessors {
			<-e.done
		}
		s.serveUntilStopped(ctx, t)
	})
	return nil
}

// overlaps reports whether two targets cannot be served at the same time.
func (t target) overlaps(other target) bool {
	return t.cluster == other.cluster || t.ports.Overlaps(other.ports)
}

// stop ends the service of a Secret's cluster. It does not wait.
func (s *supervisor) stop(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopMember(secret)
}

// stopMember cancels the service of a Secret's cluster, and removes ended members from stopping.
// The caller holds the lock.
func (s *supervisor) stopMember(secret string) {
	s.stopping = slices.DeleteFunc(s.stopping, func(m *member) bool {
		select {
		case <-m.done:
			return true
		default:
			return false
		}
	})
	if m := s.running[secret]; m != nil {
		m.cancel()
		delete(s.running, secret)
		s.stopping = append(s.stopping, m)
	}
}

// stopAll cancels the service of all clusters, and returns when all have ended.
func (s *supervisor) stopAll() {
	s.mu.Lock()
	for _, m := range s.running {
		m.cancel()
	}
	s.mu.Unlock()
	s.group.Wait()
}

// serveUntilStopped serves one cluster until the context ends, and stores the state of the agent
// in connections. It restarts an agent that ends, with growing delays.
func (s *supervisor) serveUntilStopped(ctx context.Context, t target) {
	logger := log.Log.WithValues("cluster", t.cluster)
	ctx = log.IntoContext(ctx, logger)
	logger.Info("Serving the cluster")
	backoff := s.newBackoff()
	s.connections.set(t.cluster, func() error { return errNotStarted })
	defer s.connections.set(t.cluster, nil)
	t.connected = func(check func() error) { s.connections.set(t.cluster, check) }
	for {
		startedAt := time.Now()
		err := s.serveOnce(ctx, t)
		if ctx.Err() != nil {
			logger.Info("No longer serving the cluster")
			return
		}
		if time.Since(startedAt) > maxDelay { // the agent has run long enough for a new series of delays
			backoff = s.newBackoff()
		}
		delay := backoff.Step()
		s.connections.set(t.cluster, func() error { return err })
		logger.Error(err, "The agent of the cluster ended; it is started again", "after", delay)
		t.emit("HostedClusterFailed", "Serve", "The agent of the cluster ended, and is started again: "+err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// newBackoff returns the delays before restarts.
func (s *supervisor) newBackoff() wait.Backoff {
	return wait.Backoff{Duration: s.firstDelay, Factor: 2, Jitter: 0.2, Cap: maxDelay, Steps: 64}
}

// errNotStarted is the status of an agent that has not started yet.
var errNotStarted = errors.New("the agent of the cluster has not started yet")

// errEnded is the error of an agent that ended without an error.
var errEnded = errors.New("it ended without an error")

// serveOnce serves a cluster until its agent ends. It waits for a slot, and releases
// the slot when the cluster has started or slotTimeout has passed. A panic of the
// agent is returned as an error.
func (s *supervisor) serveOnce(ctx context.Context, t target) (err error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	release := sync.OnceFunc(func() { <-s.slots })
	defer release()
	timer := time.AfterFunc(s.slotTimeout, release)
	defer timer.Stop()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	if err := s.serve(ctx, t, release); err != nil {
		return err
	}
	return errEnded
}

// registries has the metrics of the served clusters.
type registries struct {
	mu        sync.Mutex
	byCluster map[string]prometheus.Gatherer
}

// set replaces the metrics of a cluster; nil removes them.
func (r *registries) set(cluster string, g prometheus.Gatherer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g == nil {
		delete(r.byCluster, cluster)
		return
	}
	r.byCluster[cluster] = g
}

// list returns the metrics of all clusters.
func (r *registries) list() []prometheus.Gatherer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []prometheus.Gatherer
	for _, g := range r.byCluster {
		all = append(all, g)
	}
	return all
}
