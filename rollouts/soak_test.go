// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// soaking makes the first wave soak for ten minutes, of which one has passed.
func (s *scene) soaking() {
	s.wave(0).Soak.Duration = 10 * time.Minute
	s.succeed(0, 1)
	s.ro.Status.Waves[0] = v1alpha1.WaveStatus{
		Name: "one", Phase: v1alpha1.WaveSoaking, Updated: 2, UpdatedAt: ago(time.Minute),
		WaveCounts: v1alpha1.WaveCounts{Total: 2, Succeeded: 2},
	}
}

// unready makes a cluster not Ready, which the hub saw first so long ago.
func (s *scene) unready(since time.Duration, cluster int) {
	s.Installs[cluster].Ready = false
	s.ro.Status.Unready = append(s.ro.Status.Unready,
		v1alpha1.UnreadyCluster{Cluster: s.Installs[cluster].Cluster, Since: *ago(since)})
	s.ro.Status.Waves[0].InterruptedAt = ago(since)
}

func TestSoakJudges(t *testing.T) {
	t.Parallel()
	judge(t, map[string]situation{
		"a cluster that is not Ready any more holds the wave": {
			given: func(s *scene) { s.soaking(); s.Installs[0].Ready = false },
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"also where there is no soak": {
			given: func(s *scene) { s.succeed(0, 1); s.Installs[0].Ready = false },
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"and also when the soak would be over": {
			given: func(s *scene) { s.soaking(); s.ro.Status.Waves[0].UpdatedAt = ago(time.Hour); s.unready(0, 0) },
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"after its grace it counts as failed": {
			given: func(s *scene) { s.soaking(); s.unready(time.Minute, 0) },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotReady); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"the grace is the wave's": {
			given: func(s *scene) {
				s.soaking()
				s.wave(0).UnreadyGrace.Duration = 5 * time.Minute
				s.unready(time.Minute, 0)
			},
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:04:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"the policy is abort": {
			given: func(s *scene) {
				s.soaking()
				s.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
				s.unready(time.Minute, 0)
			},
			want: "Aborted, one Updating, two Waiting: aborted, as its failure policy says: wave one: 1 cluster " +
				"failed, 0 allowed: a (NotReady)",
		},
		"a failure that is tolerated does not hold the soak up": {
			given: func(s *scene) {
				s.soaking()
				s.wave(0).MaxFailures = number(1)
				s.unready(time.Minute, 0)
			},
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:10:00Z: 1 of 2 " +
				"clusters updated",
		},
		"stalled after it succeeded": {
			given: func(s *scene) { s.soaking(); s.unready(time.Minute, 0); s.Installs[0].Stalled = true },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotReady); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"a person pauses the one that failed": {
			given: func(s *scene) { s.soaking(); s.unready(time.Minute, 0); s.Clusters[0].Paused = true },
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:10:00Z: 1 of 2 " +
				"clusters updated",
		},
		"offline: what it reported last may not be so any more": {
			given: func(s *scene) { s.soaking(); s.Clusters[0].Online = false },
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:09:00Z: 1 of 2 " +
				"clusters updated",
		},
		"the only canary is offline: it proves nothing": {
			given: func(s *scene) {
				s.soaking()
				s.ro.Status.Waves[0].UpdatedAt = ago(time.Hour)
				s.Clusters[0].Online, s.Clusters[1].Online = false, false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 2 clusters deferred because offline, " +
				"paused or held back (a, b); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"it was not Ready and is offline: silence heals nothing": {
			given: func(s *scene) { s.soaking(); s.unready(time.Minute, 0); s.Clusters[0].Online = false },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotReady); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"offline counts as failed where the policy says so": {
			given: func(s *scene) {
				s.soaking()
				s.ro.Spec.Strategy.Offline = v1alpha1.OfflineFail
				s.Clusters[0].Online, s.Clusters[0].OfflineReason = false, v1alpha1.ReasonAPIServerUnreachable
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a " +
				"(APIServerUnreachable); nothing more is admitted until it recovers: repair, pause or retry it, or " +
				"set another version",
		},
		"the release is there from an earlier rollout, and not Ready": {
			given: func(s *scene) {
				for i := range 2 {
					s.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "new"}
					s.Installs[i].SucceededHash = "new"
				}
				s.Installs[1].Ready = true
			},
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"a verified wave is not judged": {
			given: func(s *scene) { s.verified(); s.Installs[0].Ready = false; s.Clusters[1].Online = false },
			want: "Progressing, one Verified, two Updating, batch c d: wave two: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"a wave that is not reached is not judged": {
			given: func(s *scene) {
				s.admit(0, 0, 1)
				s.succeed(2)
				s.Installs[2].Ready = false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"an unready cluster takes a slot": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.succeed(0)
				s.Installs[0].Ready = false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
		},
	})
}

// TestSoakClock: the soak counts time in which every updated cluster was Ready.
func TestSoakClock(t *testing.T) {
	t.Parallel()
	type clock struct{ UpdatedAt, InterruptedAt *metav1.Time }
	tests := map[string]struct {
		given func(*scene)
		want  clock
	}{
		"it begins with the last success": {
			given: func(s *scene) { s.soaking(); s.ro.Status.Waves[0].Updated = 1 },
			want:  clock{UpdatedAt: ago(0)},
		},
		"it goes on": {given: (*scene).soaking, want: clock{UpdatedAt: ago(time.Minute)}},
		"it stands still while a cluster is not Ready": {
			given: func(s *scene) { s.soaking(); s.Installs[0].Ready = false },
			want:  clock{UpdatedAt: ago(time.Minute), InterruptedAt: ago(0)},
		},
		"it goes on from where it stood": {
			given: func(s *scene) { s.soaking(); s.unready(20*time.Second, 0); s.Installs[0].Ready = true },
			want:  clock{UpdatedAt: ago(40 * time.Second)},
		},
		"a success that is not Ready yet": {
			given: func(s *scene) { s.soaking(); s.ro.Status.Waves[0].Updated = 1; s.Installs[0].Ready = false },
			want:  clock{UpdatedAt: ago(0), InterruptedAt: ago(0)},
		},
		"it starts again once failures are put right": {
			given: func(s *scene) {
				s.soaking()
				s.ro.Status.Phase, s.ro.Status.Waves[0].Failed = v1alpha1.RolloutHalted, 1
			},
			want: clock{UpdatedAt: ago(0)},
		},
		"it starts again once a cluster that had failed is Ready": {
			given: func(s *scene) { s.soaking(); s.unready(2*time.Minute, 0); s.Installs[0].Ready = true },
			want:  clock{UpdatedAt: ago(0)},
		},
		"it does not for a cluster that was offline": {
			given: func(s *scene) { s.soaking(); s.ro.Status.Waves[0].Succeeded, s.ro.Status.Waves[0].Deferred = 1, 1 },
			want:  clock{UpdatedAt: ago(time.Minute)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.given(s)
			w := rollouts.Next(s.Input).Status.Waves[0]
			if diff := cmp.Diff(test.want, clock{w.UpdatedAt, w.InterruptedAt}); diff != "" {
				t.Errorf("the soak's clock (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadyIsRemembered: the hub's own first sight counts, whatever the clock
// of the cluster says.
func TestUnreadyIsRemembered(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.soaking()
	s.unready(30*time.Second, 0)
	s.Installs[1].Ready = false
	d := rollouts.Next(s.Input)
	want := []v1alpha1.UnreadyCluster{{Cluster: "a", Since: *ago(30 * time.Second)}, {Cluster: "b", Since: *ago(0)}}
	if diff := cmp.Diff(want, d.Status.Unready); diff != "" {
		t.Errorf("not Ready (-want +got):\n%s", diff)
	}
	if d.RecheckAfter != 30*time.Second {
		t.Errorf("recheck after %s, want the end of the first grace", d.RecheckAfter)
	}
	for i := range 2 {
		s.Installs[i].Ready = true
	}
	if d := rollouts.Next(s.Input); d.Status.Unready != nil {
		t.Errorf("Ready again, and %v is remembered as not Ready", d.Status.Unready)
	}
}

// TestVerifiedWaveKeepsItsCounts: what becomes of clusters later says nothing
// about the rollout, so its counts do not change.
func TestVerifiedWaveKeepsItsCounts(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.verified()
	s.Installs[0].Ready, s.Clusters[1].Online = false, false
	d := rollouts.Next(s.Input)
	want := v1alpha1.WaveCounts{Total: 2, Succeeded: 2}
	if diff := cmp.Diff(want, d.Status.Waves[0].WaveCounts); diff != "" || d.Status.Unready != nil {
		t.Errorf("counts of a verified wave (-want +got):\n%s\nnot Ready: %v", diff, d.Status.Unready)
	}
}
