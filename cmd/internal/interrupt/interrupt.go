// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package interrupt ends programs on signals: the first signal ends a context, and the
// second signal, or a timeout, ends the program. Every interrupted program has the same
// exit status and prints the same word. Errors that libraries return because of the
// interrupt are not shown to the user.
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
	// terminatedStatus is the exit status of a program that a second SIGTERM ended.
	terminatedStatus = 143
)

// Options configure how a program ends.
type Options struct {
	// Grace is how long the program may take to end after an interrupt; 0 means any time. The
	// limit is needed because parsing and reading from a terminal do not check the context.
	Grace time.Duration
	// CleansUp, if set, reports whether the program must not be ended after the grace, because
	// it is removing what it created.
	CleansUp func() bool
	// PrintWord prints Word if the program is ended. It might be called while the program runs.
	PrintWord func()
	// Exit is os.Exit.
	Exit func(code int)
}

// Signals catches an interrupt and SIGTERM. After SIGTERM there is no grace: the sender, such as
// a kubelet, decides how long to wait, so that a server can finish its requests.
type Signals struct {
	Options

	ctx      context.Context
	cancel   context.CancelFunc
	received chan os.Signal
	done     chan struct{}

	interrupted atomic.Bool
}

// Watch starts to catch signals, until Stop is called.
func Watch(o Options) *Signals {
	s := &Signals{Options: o, received: make(chan os.Signal, 2), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	signal.Notify(s.received, os.Interrupt, syscall.SIGTERM)
	go s.waitForSignals()
	return s
}

// Context returns a context that ends with the first signal.
func (s *Signals) Context() context.Context { return s.ctx }

// Interrupted reports whether the first signal was an interrupt.
func (s *Signals) Interrupted() bool { return s.interrupted.Load() }

// Stop stops catching signals, and ends the context. It must be called once.
func (s *Signals) Stop() {
	signal.Stop(s.received)
	close(s.done)
	s.cancel()
}

// waitForSignals cancels the context at the first signal, and exits at the second
// signal or after the grace.
func (s *Signals) waitForSignals() {
	var graceEnd <-chan time.Time
	select {
	case <-s.done:
		return
	case received := <-s.received:
		s.interrupted.Store(received == os.Interrupt)
		s.cancel()
		isCleaningUp := func() bool { return s.CleansUp != nil && s.CleansUp() } // then there is no time limit
		if s.Interrupted() && s.Grace > 0 && !isCleaningUp() {
			graceEnd = time.After(s.Grace)
		}
	}
	select {
	case <-s.done:
	case <-s.received:
		s.exit()
	case <-graceEnd:
		s.exit()
	}
}

// printTimeout limits the time to print Word, because nothing might read the program's output.
const printTimeout = 200 * time.Millisecond

// exit ends the process with the status of the first signal. After an
// interrupt, it prints Word first.
func (s *Signals) exit() {
	if !s.Interrupted() {
		s.Exit(terminatedStatus)
		return
	}
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		s.PrintWord()
	}()
	select {
	case <-printed:
	case <-time.After(printTimeout):
	}
	s.Exit(Status)
}
