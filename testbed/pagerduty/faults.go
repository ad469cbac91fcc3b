// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty

import (
	"slices"
	"time"
)

// Faults are what is wrong with the server. The zero value is a healthy one.
type Faults struct {
	// Refused closes the port and all connections. Nothing can be counted meanwhile.
	Refused bool
	// Unavailable answers every request with status 503.
	Unavailable bool
	// Delay holds up each answer. The event is taken in before that: a client that gives up waiting was heard all the
	// same.
	Delay time.Duration
	// Limit is of each service; nil: none.
	Limit *Limit
	// Rejected are names of services whose routing key is refused, as after their integration was deleted.
	Rejected []string
}

// Limit is how many events of a service are accepted in a window that ends now. What is above is answered with status
// 429 and a Retry-After. PagerDuty's own is about 120 in a minute.
type Limit struct {
	Events int
	Window time.Duration
}

// Attempts are requests since the start of the server, and how many of them met a fault.
type Attempts struct {
	Total       int
	Unavailable int // answered with 503
	Delayed     int // answered late
	Limited     int // answered with 429
	Rejected    int // answered with 400 by Faults.Rejected
}

// limiter remembers when events of each service were accepted.
type limiter map[string][]time.Time

// wait returns 0 and counts the event in if the limit allows one more at that time; else, how long it takes until it
// does.
func (l limiter) wait(service string, limit Limit, now time.Time) time.Duration {
	recent := slices.DeleteFunc(l[service], func(at time.Time) bool { return now.Sub(at) >= limit.Window })
	l[service] = recent
	if len(recent) < limit.Events {
		l[service] = append(recent, now)
		return 0
	}
	if limit.Events <= 0 {
		return limit.Window
	}
	return limit.Window - now.Sub(recent[len(recent)-limit.Events])
}
