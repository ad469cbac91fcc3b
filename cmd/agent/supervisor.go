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

// supervisor runs an agent for each hosted cluster. Each has its own connections,
// caches, queues and goroutines: one that is slow or dead delays no other. One that
// ends is started again, with growing delays.
type supervisor struct {
	serve func(ctx context.Context, t target, started func()) error
	// slots bound how many clusters fill their caches at a time.
	slots chan struct{}
	// hold bounds how long a cluster may have its slot: one that does not answer must
	// not keep the others from starting.
	hold time.Duration
	// delay is before the first new start.
	delay time.Duration
	// connections has the clusters that are served.
	connections connections

	mu sync.Mutex
	// running has the clusters by the name of the Secret; ended are those that were
	// told to stop and may not have yet.
	running map[string]*member
	ended   []*member
	group   sync.WaitGroup
}

// member is a cluster that is served.
type member struct {
	target
	fingerprint [sha256.Size]byte
	cancel      context.CancelFunc
	done        chan struct{}
}

const (
	maxStarting  = 4
	holdStarting = 10 * time.Second
	minDelay     = time.Second
	maxDelay     = 30 * time.Second
)

func newSupervisor(serve func(context.Context, target, func()) error) *supervisor {
	return &supervisor{serve: serve, slots: make(chan struct{}, maxStarting), hold: holdStarting, delay: minDelay,
		running: map[string]*member{}}
}

// errTaken says that two Secrets want the same.
var errTaken = errors.New("the cluster, or some of its ports, are another Secret's")

// start serves the cluster of a Secret, or serves it anew if the Secret has changed.
func (s *supervisor) start(secret string, fingerprint [sha256.Size]byte, t target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.running[secret]
	if before != nil && before.fingerprint == fingerprint {
		return nil
	}
	for name, other := range s.running {
		if name != secret && other.overlaps(t) {
			return fmt.Errorf("%w: Secret %s has cluster %s and ports %d-%d", errTaken, name, other.cluster,
				other.ports.First, other.ports.Last)
		}
	}
	s.end(secret)
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{target: t, fingerprint: fingerprint, cancel: cancel, done: make(chan struct{})}
	s.running[secret] = m
	// One that had the cluster or its ports before has to let go of them first.
	waitFor := slices.DeleteFunc(slices.Clone(s.ended), func(e *member) bool { return !e.overlaps(t) })
	s.group.Go(func() {
		defer close(m.done)
		for _, e := range waitFor {
			<-e.done
		}
		s.keep(ctx, t)
	})
	return nil
}

// overlaps tells whether two cannot be served at the same time.
func (t target) overlaps(other target) bool {
	return t.cluster == other.cluster || t.ports.Overlaps(other.ports)
}

// stop ends the service of a Secret's cluster. It does not wait.
func (s *supervisor) stop(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(secret)
}

// end tells a Secret's cluster to stop. The caller holds the lock.
func (s *supervisor) end(secret string) {
	s.ended = slices.DeleteFunc(s.ended, func(m *member) bool {
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
		s.ended = append(s.ended, m)
	}
}

// wait stops all, and returns when they have ended.
func (s *supervisor) wait() {
	s.mu.Lock()
	for _, m := range s.running {
		m.cancel()
	}
	s.mu.Unlock()
	s.group.Wait()
}

// keep serves one cluster until the context ends.
func (s *supervisor) keep(ctx context.Context, t target) {
	logger := log.Log.WithValues("cluster", t.cluster)
	ctx = log.IntoContext(ctx, logger)
	logger.Info("Serving the cluster")
	backoff := s.newBackoff()
	s.connections.set(t.cluster, func() error { return errNotStarted })
	defer s.connections.set(t.cluster, nil)
	t.connected = func(check func() error) { s.connections.set(t.cluster, check) }
	for {
		begun := time.Now()
		err := s.attempt(ctx, t)
		if ctx.Err() != nil {
			logger.Info("No longer serving the cluster")
			return
		}
		if time.Since(begun) > maxDelay {
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

func (s *supervisor) newBackoff() wait.Backoff {
	return wait.Backoff{Duration: s.delay, Factor: 2, Jitter: 0.2, Cap: maxDelay, Steps: 64}
}

// errNotStarted stands for an agent that was not started yet.
var errNotStarted = errors.New("the agent of the cluster has not started yet")

// errEnded stands for an agent that ended without an error.
var errEnded = errors.New("it ended without an error")

// attempt serves a cluster once. It waits for a slot, and gives it back when the
// cluster has started, or has had its time.
func (s *supervisor) attempt(ctx context.Context, t target) (err error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	release := sync.OnceFunc(func() { <-s.slots })
	defer release()
	timer := time.AfterFunc(s.hold, release)
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

// registries holds the metrics of the clusters that are served.
type registries struct {
	mu        sync.Mutex
	byCluster map[string]prometheus.Gatherer
}

// set replaces a cluster's metrics; nil removes them.
func (r *registries) set(cluster string, g prometheus.Gatherer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g == nil {
		delete(r.byCluster, cluster)
		return
	}
	r.byCluster[cluster] = g
}

func (r *registries) all() []prometheus.Gatherer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []prometheus.Gatherer
	for _, g := range r.byCluster {
		all = append(all, g)
	}
	return all
}
