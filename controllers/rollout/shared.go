// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "sync"

// shared lets callers share reads of the API server. Each gets what was read after it had asked, and one read answers
// all who have asked by then. The zero value is ready for use.
type shared[T any] struct {
	mu sync.Mutex
	// next is the read that has not begun yet; nil if nobody waits for one.
	next *sharedRead[T]
	// reading is taken by who reads.
	reading chan struct{}
}

type sharedRead[T any] struct {
	done   chan struct{}
	result T     // read after done
	err    error // read after done
}

// get returns the result of a read that begins after the call: of this function, or of another caller's.
func (s *shared[T]) get(read func() (T, error)) (T, error) {
	s.mu.Lock()
	if s.reading == nil {
		s.reading = make(chan struct{}, 1)
	}
	mine, isFirst := s.next, s.next == nil
	if isFirst {
		mine = &sharedRead[T]{done: make(chan struct{})}
		s.next = mine
	}
	s.mu.Unlock()
	if isFirst {
		s.carryOut(mine, read)
	}
	<-mine.done
	return mine.result, mine.err
}

// carryOut waits for the read before. Who asks once this one has begun gets another one.
func (s *shared[T]) carryOut(r *sharedRead[T], read func() (T, error)) {
	s.reading <- struct{}{}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	r.result, r.err = read()
	<-s.reading
	close(r.done)
}
