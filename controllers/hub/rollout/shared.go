// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "sync"

// sharedReader lets callers share reads of the API server. Each caller gets the result of a
// read that started after its call. All calls that wait for the same start share one read. The
// zero value is ready for use.
type sharedReader[T any] struct {
	mu sync.Mutex
	// next is the read that has not started yet; nil if no caller waits for it.
	next *pendingRead[T]
	// reading has one place, which the running read holds.
	reading chan struct{}
}

// pendingRead is one read and its result. done is closed when the result is set.
type pendingRead[T any] struct {
	done   chan struct{}
	result T     // valid after done is closed
	err    error // valid after done is closed
}

// read returns the result of a read that starts after the call. It executes the read function of
// this caller or of another caller.
func (s *sharedReader[T]) read(read func() (T, error)) (T, error) {
	s.mu.Lock()
	if s.reading == nil {
		s.reading = make(chan struct{}, 1)
	}
	pending, isFirst := s.next, s.next == nil
	if isFirst {
		pending = &pendingRead[T]{done: make(chan struct{})}
		s.next = pending
	}
	s.mu.Unlock()
	if isFirst {
		s.runRead(pending, read)
	}
	<-pending.done
	return pending.result, pending.err
}

// runRead waits for the running read, executes the read function and publishes the result. Calls
// that come after the start of this read wait for the next read.
func (s *sharedReader[T]) runRead(r *pendingRead[T], read func() (T, error)) {
	s.reading <- struct{}{}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	r.result, r.err = read()
	<-s.reading
	close(r.done)
}
