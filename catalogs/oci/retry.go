// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

const (
	// maxAttempts bounds how often a request is sent.
	maxAttempts = 5
	// maxWait bounds the waiting time that a registry can request. A command that waits longer looks as if it hung,
	// and controllers repeat their work by themselves.
	maxWait = 30 * time.Second
	// maxDrained bounds the bytes that are read of an unused response, to keep its connection.
	maxDrained = 64 << 10
)

// busyStatuses are the statuses after which a retry can succeed.
var busyStatuses = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// retryTransport repeats requests that a registry cannot answer now: after the time in Retry-After, or else after a
// back-off that doubles. The retries of the library ignore Retry-After.
type retryTransport struct {
	inner   http.RoundTripper
	backoff time.Duration
	// sleep ends early with the context, and then returns its error.
	sleep func(context.Context, time.Duration) error
	now   func() time.Time
}

// RoundTrip sends a request, and repeats it while the registry is busy.
func (t retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := t.inner.RoundTrip(req)
		if err != nil || attempt == maxAttempts || !slices.Contains(busyStatuses, resp.StatusCode) {
			return resp, err
		}
		delay := wait.Jitter(t.backoff<<(attempt-1), 0.1)
		if retryAfter, ok := outbound.RetryAfter(resp, t.now()); ok {
			delay = retryAfter
		}
		repeated, ok := cloneRequest(req)
		if !ok || delay > maxWait {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		_ = resp.Body.Close()
		if err := t.sleep(req.Context(), delay); err != nil {
			return nil, err
		}
		req = repeated
	}
}

// cloneRequest returns a request that can be sent again; false if its body cannot be read again.
func cloneRequest(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	repeated := req.Clone(req.Context())
	repeated.Body = body
	return repeated, true
}
