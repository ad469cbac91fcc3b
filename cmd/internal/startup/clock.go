// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Clock tells the time by the clock of an API server, which it learns from the answers to requests. Until the first one
// it is the system's clock, and it stays that while the two agree.
//
// What an agent decides by time is about times that others wrote on its cluster, and it reports times that the hub
// compares with its own. Where the clock of the agent's node is off, both would be wrong.
type Clock struct {
	offset atomic.Int64
	// now is the system's clock; nil for time.Now.
	now func() time.Time
}

// Follow learns the time from each answer to a request that is made with a configuration.
func (c *Clock) Follow(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &follower{next: next, clock: c} })
}

// Now returns the time.
func (c *Clock) Now() time.Time { return c.system().Add(time.Duration(c.offset.Load())) }

func (c *Clock) system() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// learn takes in what a server said the time was at some point between two times of the system's clock. It said it in
// whole seconds, so the offset is known within bounds; as long as it is within them it stays as it is.
func (c *Clock) learn(said, asked, answered time.Time) {
	least, most := said.Sub(answered), said.Add(time.Second).Sub(asked)
	if is := time.Duration(c.offset.Load()); is < least || is > most {
		c.offset.Store(int64(least + (most-least)/2))
	}
}

// follower is a transport that a clock learns from.
type follower struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (f *follower) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := f.clock.system()
	response, err := f.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if said, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		f.clock.learn(said, asked, f.clock.system())
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport, to close its idle connections.
func (f *follower) WrappedRoundTripper() http.RoundTripper { return f.next }
