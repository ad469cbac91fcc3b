// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns how long an answer asks its client to wait, in the header of that name: seconds, of which an hour
// is the most that is returned, or a time (RFC 9110, section 10.2.3). False if it does not ask.
func RetryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(time.Hour/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return cmp.Or(max(at.Sub(now), 0), time.Millisecond), true
}

// Sleep waits. It ends early with the context, whose error it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
