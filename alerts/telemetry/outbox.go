// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"
	"time"
)

// outbox is a queue of samples to send. It drops batches that are older
// than a limit, and the oldest batches if there are too many samples.
type outbox struct {
	limit      time.Duration
	maxSamples int

	mu      sync.Mutex
	batches []batch
	samples int
	// ready has a value if there may be a batch.
	ready chan struct{}
}

// batch contains the samples of one time.
type batch struct {
	at      time.Time
	samples []Sample
}

func newOutbox(limit time.Duration, maxSamples int) *outbox {
	return &outbox{limit: limit, maxSamples: maxSamples, ready: make(chan struct{}, 1)}
}

// add adds a batch, and returns how many samples of older batches were dropped because of it.
func (o *outbox) add(b batch) (dropped int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batches, o.samples = append(o.batches, b), o.samples+len(b.samples)
	for len(o.batches) > 1 && (o.samples > o.maxSamples || b.at.Sub(o.batches[0].at) > o.limit) {
		dropped += len(o.batches[0].samples)
		o.removeFirst()
	}
	select {
	case o.ready <- struct{}{}:
	default:
	}
	return dropped
}

// peek returns the oldest batch without removing it.
func (o *outbox) peek() (batch, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batches) == 0 {
		return batch{}, false
	}
	return o.batches[0], true
}

// finish removes a batch. It returns false if the batch was already dropped.
func (o *outbox) finish(b batch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batches) == 0 || !o.batches[0].at.Equal(b.at) {
		return false
	}
	o.removeFirst()
	return true
}

func (o *outbox) removeFirst() {
	o.samples -= len(o.batches[0].samples)
	o.batches[0] = batch{}
	o.batches = o.batches[1:]
}

// countSamples returns the number of samples in the queue.
func (o *outbox) countSamples() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.samples
}
