// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"sync"
	"time"
)

const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
	// resetAfter is the life time after which a process counts as healthy again.
	resetAfter = time.Minute
)

// Kept is a process that is started again when it ends by itself, as a kubelet does with the components that run in
// pods.
type Kept struct {
	mu       sync.Mutex
	current  *Process
	restarts int
	stop     context.CancelFunc
	stopped  chan struct{}
}

// Keep takes over the supervision of a running process.
func Keep(p *Process) *Kept {
	ctx, stop := context.WithCancel(context.Background())
	k := &Kept{current: p, stop: stop, stopped: make(chan struct{})}
	go k.run(ctx)
	return k
}

func (k *Kept) run(ctx context.Context) {
	defer close(k.stopped)
	backoff := firstBackoff
	for {
		started := time.Now()
		if p := k.Process(); !waitDone(ctx, p) {
			return
		}
		if time.Since(started) > resetAfter {
			backoff = firstBackoff
		}
		if !k.restart(ctx, backoff) {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// restart starts the process again after the back-off, trying for ever. It reports false when ctx ended.
func (k *Kept) restart(ctx context.Context, backoff time.Duration) bool {
	for {
		if !wait(ctx, backoff) {
			return false
		}
		old := k.Process()
		old.Kill() // what the ended process may have left in its group
		next, err := Start(old.spec)
		if err != nil {
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		k.mu.Lock()
		k.current = next
		k.restarts++
		k.mu.Unlock()
		return true
	}
}

// Process returns the current incarnation.
func (k *Kept) Process() *Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// Restarts returns how often the process had to be started again.
func (k *Kept) Restarts() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.restarts
}

// Stop ends the supervision and then the process.
func (k *Kept) Stop(ctx context.Context) {
	k.stop()
	<-k.stopped
	k.Process().Stop(ctx)
}

// waitDone waits for the end of p, or returns false at the end of ctx.
func waitDone(ctx context.Context, p *Process) bool {
	select {
	case <-p.Done():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
