// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// phase is a point on the way of an upgrade.
type phase int

const (
	served phase = iota
	planned
	approved
	created
	succeeded
	reported
	phases
)

var phaseNames = [phases]string{
	served:    "view served",
	planned:   "plan waits for approval",
	approved:  "plan approved",
	created:   "new CSV created",
	succeeded: "new CSV Succeeded",
	reported:  "hub knows",
}

// timeline holds how long after time zero each phase was reached; zero where a phase does not occur.
type timeline [phases]time.Duration

func (t timeline) String() string {
	var parts []string
	for p, at := range t {
		if at > 0 {
			parts = append(parts, fmt.Sprintf("%s %d ms", phaseNames[p], at.Milliseconds()))
		}
	}
	return strings.Join(parts, ", ")
}

// clock notes when phases are reached. Phases that are seen before time zero count from it.
type clock struct {
	// version is the one whose phases they are.
	version string

	mu    sync.Mutex
	zero  time.Time
	at    timeline
	ended map[phase]chan struct{}
}

func newClock(version string) *clock {
	c := &clock{version: version, ended: map[phase]chan struct{}{}}
	for p := range phases {
		c.ended[p] = make(chan struct{})
	}
	return c
}

// begin sets time zero.
func (c *clock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zero = time.Now()
}

// reach notes a phase the first time it is seen after time zero.
func (c *clock) reach(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zero.IsZero() || c.at[p] > 0 {
		return
	}
	c.at[p] = time.Since(c.zero)
	close(c.ended[p])
}

// reached is closed when the phase was.
func (c *clock) reached(p phase) <-chan struct{} { return c.ended[p] }

func (c *clock) times() timeline {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}
