// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Clock follows the clock of an API server, based on the responses to requests. It is the
// system's clock until the first response, and as long as both clocks agree.
//
// An agent compares times that other programs wrote on its cluster, and the hub compares
// the times that the agent reports. If the clock of the agent's node is wrong, both
// comparisons would be wrong.
type Clock struct {
	offset atomic.Int64
	// now is the system's clock; nil for time.Now.
	now func() time.Time
}

// Follow updates the clock from each response to a request that uses the configuration.
func (c *Clock) Follow(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &clockTransport{next: next, clock: c} })
}

// Now returns the current time.
func (c *Clock) Now() time.Time { return c.readSystemClock().Add(time.Duration(c.offset.Load())) }

// readSystemClock returns the time of the system's clock.
func (c *Clock) readSystemClock() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// updateOffset updates the offset from the time that a server returned. sentAt and receivedAt
// are when the request was sent and the response was received, by the system's clock. The
// server's time is in whole seconds, so the offset is known only within limits. An offset within
// the limits stays unchanged.
func (c *Clock) updateOffset(serverTime, sentAt, receivedAt time.Time) {
	minOffset, maxOffset := serverTime.Sub(receivedAt), serverTime.Add(time.Second).Sub(sentAt)
	if offset := time.Duration(c.offset.Load()); offset < minOffset || offset > maxOffset {
		c.offset.Store(int64(minOffset + (maxOffset-minOffset)/2))
	}
}

// clockTransport is a transport that updates a clock from responses.
type clockTransport struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (t *clockTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	sentAt := t.clock.readSystemClock()
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if serverTime, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.updateOffset(serverTime, sentAt, t.clock.readSystemClock())
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport, to close its idle connections.
func (t *clockTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
