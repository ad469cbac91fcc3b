// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty

import "time"

// Faults are what is wrong with the server. The zero value is a healthy one.
type Faults struct {
	// Refused closes the port and all connections. Nothing can be counted meanwhile.
	Refused bool
	// Unavailable answers every request with status 503.
	Unavailable bool
	// Delay holds up each answer. The event is taken in before that: a client that gives up waiting was heard all the
	// same.
	Delay time.Duration
	// Rejected are names of services whose routing key is refused, as after their integration was deleted.
	Rejected []string
}

// Attempts are requests since the start of the server, and how many of them met a fault.
type Attempts struct {
	Total       int
	Unavailable int // answered with 503
	Delayed     int // answered late
	Rejected    int // answered with 400 by Faults.Rejected
}
