// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package paging

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// outage is how long the Events API refuses connections.
const outage = 10 * time.Minute

// TestEventsAPIIsAwayForTenMinutes has the times of the hub: an incident begins while the Events API is away for ten
// minutes, and ends while it is away again.
func TestEventsAPIIsAwayForTenMinutes(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := startWith(t, 1, nil)
	page := release(echo, "page", "reconcile")
	away := func(notify func(...alert)) {
		t.Helper()
		if err := f.events.SetFaults(pagerduty.Faults{Refused: true}); err != nil {
			t.Fatal(err)
		}
		notify(page)
		select {
		case <-time.After(outage):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		if failed := f.givenUp(); failed == 0 {
			t.Error("Alertmanager has not given up on a notification")
		}
		if err := f.events.SetFaults(pagerduty.Faults{}); err != nil {
			t.Fatal(err)
		}
	}
	away(f.fire)
	f.untilOpen(1)
	away(f.end)
	f.wantOnce(f.untilResolved(1), 1)
}
