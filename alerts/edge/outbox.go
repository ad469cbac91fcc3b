// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"sync"
	"time"
)

// outbox keeps what is to be sent, in order. What is older than a limit is dropped, and the
// oldest when there is too much of it.
type outbox struct {
	limit time.Duration
	most  int

	mu      sync.Mutex
	batches []batch
	samples int
	// news tells that something is there.
	news chan struct{}
}

// batch are the samples of one time.
type batch struct {
	at      time.Time
	samples []Sample
}

func newOutbox(limit time.Duration, most int) *outbox {
	return &outbox{limit: limit, most: most, news: make(chan struct{}, 1)}
}

// put takes a batch, and returns how many samples were dropped for it.
func (o *outbox) put(b batch) (dropped int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batches, o.samples = append(o.batches, b), o.samples+len(b.samples)
	for len(o.batches) > 1 && (o.samples > o.most || b.at.Sub(o.batches[0].at) > o.limit) {
		dropped += len(o.batches[0].samples)
		o.remove()
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
	return dropped
}

// next is the oldest batch, which stays until done.
func (o *outbox) next() (batch, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batches) == 0 {
		return batch{}, false
	}
	return o.batches[0], true
}

// done removes a batch, unless it was dropped meanwhile.
func (o *outbox) done(b batch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batches) == 0 || !o.batches[0].at.Equal(b.at) {
		return false
	}
	o.remove()
	return true
}

func (o *outbox) remove() {
	o.samples -= len(o.batches[0].samples)
	o.batches[0] = batch{}
	o.batches = o.batches[1:]
}

// waiting counts the samples that are to be sent.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.samples
}
