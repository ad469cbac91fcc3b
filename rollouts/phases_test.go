// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/rollouts"
)

// look decides, and stores the status, so many minutes after noon.
func (f *fixture) look(minute int) {
	f.Now = noon.Add(time.Duration(minute) * time.Minute)
	f.ro.Status = rollouts.Next(f.Input).Status
}

func (f *fixture) phases() string {
	var all []string
	for _, p := range f.ro.Status.Phases {
		all = append(all, p.At.Format("15:04")+" "+string(p.Phase))
	}
	return strings.Join(all, ", ")
}

func TestPhasesAreRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.look(0)
	f.ro.Spec.Paused, f.ro.Spec.PausedReason = true, "incident"
	f.look(1)
	f.look(2)
	f.ro.Spec.Paused = false
	f.look(3)
	f.Newer = true
	f.look(4)
	f.look(5)
	if diff := cmp.Diff("12:01 Paused, 12:03 Progressing, 12:04 Superseded", f.phases()); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if got := f.ro.Status.Phases[0].Message; !strings.Contains(got, "incident") {
		t.Errorf("the pause says %q", got)
	}

	f = newFixture()
	for i := range 30 {
		f.ro.Spec.Paused = i%2 == 0
		f.look(i)
	}
	if got := f.ro.Status.Phases; len(got) != 20 || got[19].At.Minute() != 29 {
		t.Errorf("%d phases are kept: %s", len(got), f.phases())
	}
}

// TestFailedAt has a wave fail, recover, and fail again.
func TestFailedAt(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.admit(time.Minute, 0, 1)
	fails := func(minute int, stalled bool, want string) {
		t.Helper()
		f.Installs[0].Stalled = stalled
		f.look(minute)
		got := ""
		if at := f.ro.Status.Waves[0].FailedAt; at != nil {
			got = at.Format("15:04")
		}
		if got != want {
			t.Errorf("minute %d: failed at %q, want %q (%s)", minute, got, want, f.ro.Status.Message)
		}
	}
	fails(0, false, "")
	fails(1, true, "12:01")
	fails(2, true, "12:01")
	fails(3, false, "")
	fails(4, true, "12:04")
	f = newFixture()
	f.verified()
	f.ro.Status.Waves[0].FailedAt = ago(time.Hour)
	f.look(0)
	if at := f.ro.Status.Waves[0].FailedAt; at != nil {
		t.Errorf("a verified wave failed at %s", at)
	}
}
