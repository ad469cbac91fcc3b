// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"testing"
	"time"
)

func TestReportTakesTheMedianOfPairs(t *testing.T) {
	run := func(atCreated, atSucceeded time.Duration) timeline {
		return timeline{created: atCreated * time.Second, succeeded: atSucceeded * time.Second,
			reported: (atSucceeded + 1) * time.Second}
	}
	// The ratio of the medians would be 12/10.
	section := report([]pair{
		{ours: run(2, 12), alone: run(1, 8)},
		{ours: run(2, 10), alone: run(1, 10)},
		{ours: run(2, 30), alone: run(2, 20)},
	})
	if got := section.Rows[0]; got.Ratio != 1.5 || !got.Missed() || got.Ours.String() != "12.00 s" ||
		got.Peer.String() != "10.00 s" {
		t.Errorf("to Succeeded: %+v", got)
	}
	if got := section.Rows[1]; got.Ratio != 2 || got.Missed() {
		t.Errorf("to created: %+v", got)
	}
	if got := section.Rows[2]; got.Ours.String() != "13.00 s" || got.Missed() {
		t.Errorf("to reported: %+v", got)
	}
}

func TestClockCountsFromTimeZeroOnly(t *testing.T) {
	c := newClock(to)
	c.reach(created)
	c.begin()
	c.reach(succeeded)
	first := c.times()[succeeded]
	c.reach(succeeded)
	if got := c.times(); got[created] != 0 || got[succeeded] != first || first == 0 {
		t.Errorf("times %v, first %s", got, first)
	}
	select {
	case <-c.reached(succeeded):
	default:
		t.Error("nobody is told of a phase that was reached")
	}
}
