// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestTransitionsAreOfTheGivenClock: engines compare the times with that clock, and the system's clock may differ.
func TestTransitionsAreOfTheGivenClock(t *testing.T) {
	install := admitted("a", 1)
	pass := func(at time.Time, health *Finding) (ready time.Time) {
		t.Helper()
		install.Status = Status(install, Report{Complete: true, Health: health}, at)
		return conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady).LastTransitionTime.Time
	}
	sick := &Finding{Reason: v1alpha1.ReasonPodsUnavailable, Message: "no pods"}
	for step, s := range []struct {
		health   *Finding
		at, want time.Time
	}{
		{at: now, want: now},
		{at: now.Add(time.Minute), want: now},
		{at: now.Add(2 * time.Minute), health: sick, want: now.Add(2 * time.Minute)},
		{at: now.Add(3 * time.Minute), health: sick, want: now.Add(2 * time.Minute)},
		{at: now.Add(4 * time.Minute), want: now.Add(4 * time.Minute)},
	} {
		if got := pass(s.at, s.health); !got.Equal(s.want) {
			t.Errorf("step %d: Ready since %s, want %s", step, got, s.want)
		}
	}
}
