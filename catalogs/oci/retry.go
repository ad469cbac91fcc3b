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

	"github.com/bellwether-dev/bellwether/outbound"
)

const (
	// maxAttempts bounds how often a request is sent.
	maxAttempts = 5
	// maxWait bounds how long a registry may ask to wait. A command that waits for longer looks as if it hung, and
	// controllers come back by themselves.
	maxWait = 30 * time.Second
	// maxDrained bounds what is read of an answer that is not used, to keep its connection.
	maxDrained = 64 << 10
)

// busyStatuses are the answers of a registry that may answer otherwise a little later.
var busyStatuses = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// patientTransport repeats requests that a registry cannot answer now: after as long as it says in Retry-After, or else
// after a back-off that doubles. Retries of the library know nothing of Retry-After.
type patientTransport struct {
	inner   http.RoundTripper
	backoff time.Duration
	// sleep ends early with the context, whose error it returns.
	sleep func(context.Context, time.Duration) error
	now   func() time.Time
}

func (t patientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := t.inner.RoundTrip(req)
		if err != nil || attempt == maxAttempts || !slices.Contains(busyStatuses, resp.StatusCode) {
			return resp, err
		}
		delay := wait.Jitter(t.backoff<<(attempt-1), 0.1)
		if asked, ok := outbound.RetryAfter(resp, t.now()); ok {
			delay = asked
		}
		again, ok := repeat(req)
		if !ok || delay > maxWait {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		_ = resp.Body.Close()
		if err := t.sleep(req.Context(), delay); err != nil {
			return nil, err
		}
		req = again
	}
}

// repeat returns a request that can be sent once more; false if its content is gone.
func repeat(req *http.Request) (*http.Request, bool) {
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
	again := req.Clone(req.Context())
	again.Body = body
	return again, true
}
