// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package interrupt ends programs on signals: a context ends with the first one, and the program with the second one or
// after a while. An interrupt ends every program with the same exit status and the same word, whatever it was doing;
// what its libraries return then is not the user's business.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// Status is the exit status of a program that an interrupt ended: 128 and the number of SIGINT.
	Status = 130
	// Word is the last line that such a program writes to stderr.
	Word = "interrupted"
	// terminated is the exit status of a program that a second SIGTERM ended.
	terminated = 143
)

// Options say how a program ends.
type Options struct {
	// Grace is how long the program may take to end after an interrupt; 0 means any time. Parsing, and reading from a
	// terminal, do not look at the context.
	Grace time.Duration
	// CleansUp, if set, tells whether the program must not be ended after the grace, since it removes what it made.
	CleansUp func() bool
	// Say writes the word where the program has not ended by itself. It may be called while the program runs.
	Say func()
	// Exit is os.Exit.
	Exit func(code int)
}

// Signals are an interrupt and SIGTERM. Whoever sends SIGTERM, such as a kubelet, decides on their own how long to
// wait, so that a server answers what it was asked.
type Signals struct {
	Options

	ctx    context.Context
	cancel context.CancelFunc
	caught chan os.Signal
	done   chan struct{}

	interrupted atomic.Bool
}

// Watch begins to catch signals, until Stop is called.
func Watch(o Options) *Signals {
	s := &Signals{Options: o, caught: make(chan os.Signal, 2), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	signal.Notify(s.caught, os.Interrupt, syscall.SIGTERM)
	go s.wait()
	return s
}

// Context ends with the first signal.
func (s *Signals) Context() context.Context { return s.ctx }

// Interrupted tells whether the first signal was an interrupt.
func (s *Signals) Interrupted() bool { return s.interrupted.Load() }

// Stop ends the watch, and the context. It is to be called once.
func (s *Signals) Stop() {
	signal.Stop(s.caught)
	close(s.done)
	s.cancel()
}

func (s *Signals) wait() {
	var over <-chan time.Time
	select {
	case <-s.done:
		return
	case first := <-s.caught:
		s.interrupted.Store(first == os.Interrupt)
		s.cancel()
		if s.Interrupted() && s.Grace > 0 && (s.CleansUp == nil || !s.CleansUp()) {
			over = time.After(s.Grace)
		}
	}
	select {
	case <-s.done:
	case <-s.caught:
		s.end()
	case <-over:
		s.end()
	}
}

// sayLimit is how long the word may take where nobody reads what the program writes.
const sayLimit = 200 * time.Millisecond

// end exits.
func (s *Signals) end() {
	if !s.Interrupted() {
		s.Exit(terminated)
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		s.Say()
	}()
	select {
	case <-said:
	case <-time.After(sayLimit):
	}
	s.Exit(Status)
}
