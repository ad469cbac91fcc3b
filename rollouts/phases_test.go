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
func (s *scene) look(minute int) {
	s.Now = noon.Add(time.Duration(minute) * time.Minute)
	s.ro.Status = rollouts.Next(s.Input).Status
}

func (s *scene) phases() string {
	var all []string
	for _, p := range s.ro.Status.Phases {
		all = append(all, p.At.Format("15:04")+" "+string(p.Phase))
	}
	return strings.Join(all, ", ")
}

func TestPhasesAreRecorded(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.look(0)
	s.ro.Spec.Paused, s.ro.Spec.PausedReason = true, "incident"
	s.look(1)
	s.look(2)
	s.ro.Spec.Paused = false
	s.look(3)
	s.Newer = true
	s.look(4)
	s.look(5)
	if diff := cmp.Diff("12:01 Paused, 12:03 Progressing, 12:04 Superseded", s.phases()); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if got := s.ro.Status.Phases[0].Message; !strings.Contains(got, "incident") {
		t.Errorf("the pause says %q", got)
	}

	s = newScene()
	for i := range 30 {
		s.ro.Spec.Paused = i%2 == 0
		s.look(i)
	}
	if got := s.ro.Status.Phases; len(got) != 20 || got[19].At.Minute() != 29 {
		t.Errorf("%d phases are kept: %s", len(got), s.phases())
	}
}

// TestFailedAt has a wave fail, recover, and fail again.
func TestFailedAt(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.admit(time.Minute, 0, 1)
	fails := func(minute int, stalled bool, want string) {
		t.Helper()
		s.Installs[0].Stalled = stalled
		s.look(minute)
		got := ""
		if at := s.ro.Status.Waves[0].FailedAt; at != nil {
			got = at.Format("15:04")
		}
		if got != want {
			t.Errorf("minute %d: failed at %q, want %q (%s)", minute, got, want, s.ro.Status.Message)
		}
	}
	fails(0, false, "")
	fails(1, true, "12:01")
	fails(2, true, "12:01")
	fails(3, false, "")
	fails(4, true, "12:04")
	s = newScene()
	s.verified()
	s.ro.Status.Waves[0].FailedAt = ago(time.Hour)
	s.look(0)
	if at := s.ro.Status.Waves[0].FailedAt; at != nil {
		t.Errorf("a verified wave failed at %s", at)
	}
}
