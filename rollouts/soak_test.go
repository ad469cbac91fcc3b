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
func (f *fixture) soaking() {
	f.wave(0).Soak.Duration = 10 * time.Minute
	f.succeed(0, 1)
	f.ro.Status.Waves[0] = v1alpha1.WaveStatus{
		Name: "one", Phase: v1alpha1.WaveSoaking, Updated: 2, UpdatedAt: ago(time.Minute),
		WaveCounts: v1alpha1.WaveCounts{Total: 2, Succeeded: 2},
	}
}

// unready makes a cluster not Ready, which the hub saw first so long ago.
func (f *fixture) unready(since time.Duration, cluster int) {
	f.Installs[cluster].Ready = false
	f.ro.Status.Unready = append(f.ro.Status.Unready,
		v1alpha1.UnreadyCluster{Cluster: f.Installs[cluster].Cluster, Since: *ago(since)})
	f.ro.Status.Waves[0].InterruptedAt = ago(since)
}

func TestSoakJudges(t *testing.T) {
	t.Parallel()
	checkDecisions(t, map[string]decisionCase{
		"a cluster that is not Ready any more holds the wave": {
			given: func(f *fixture) { f.soaking(); f.Installs[0].Ready = false },
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"also where there is no soak": {
			given: func(f *fixture) { f.succeed(0, 1); f.Installs[0].Ready = false },
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"and also when the soak would be over": {
			given: func(f *fixture) { f.soaking(); f.ro.Status.Waves[0].UpdatedAt = ago(time.Hour); f.unready(0, 0) },
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"after its grace it counts as failed": {
			given: func(f *fixture) { f.soaking(); f.unready(time.Minute, 0) },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotReady); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"the grace is the wave's": {
			given: func(f *fixture) {
				f.soaking()
				f.wave(0).UnreadyGrace.Duration = 5 * time.Minute
				f.unready(time.Minute, 0)
			},
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:04:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"the policy is abort": {
			given: func(f *fixture) {
				f.soaking()
				f.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
				f.unready(time.Minute, 0)
			},
			want: "Aborted, one Updating, two Waiting: aborted, as its failure policy says: wave one: 1 cluster " +
				"failed, 0 allowed: a (NotReady)",
		},
		"a failure that is tolerated does not hold the soak up": {
			given: func(f *fixture) {
				f.soaking()
				f.wave(0).MaxFailures = number(1)
				f.unready(time.Minute, 0)
			},
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:10:00Z: 1 of 2 " +
				"clusters updated",
		},
		"stalled after it succeeded": {
			given: func(f *fixture) { f.soaking(); f.unready(time.Minute, 0); f.Installs[0].Stalled = true },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotReady); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"a person pauses the one that failed": {
			given: func(f *fixture) { f.soaking(); f.unready(time.Minute, 0); f.Clusters[0].Paused = true },
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:10:00Z: 1 of 2 " +
				"clusters updated",
		},
		"offline: what it reported last may not be so any more": {
			given: func(f *fixture) { f.soaking(); f.Clusters[0].Online = false },
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:09:00Z: 1 of 2 " +
				"clusters updated",
		},
		"the only canary is offline: it proves nothing": {
			given: func(f *fixture) {
				f.soaking()
				f.ro.Status.Waves[0].UpdatedAt = ago(time.Hour)
				f.Clusters[0].Online, f.Clusters[1].Online = false, false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 2 clusters deferred because offline, " +
				"paused or held back (a, b); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"it was not Ready and is offline: silence heals nothing": {
			given: func(f *fixture) { f.soaking(); f.unready(time.Minute, 0); f.Clusters[0].Online = false },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotReady); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"offline counts as failed where the policy says so": {
			given: func(f *fixture) {
				f.soaking()
				f.ro.Spec.Strategy.Offline = v1alpha1.OfflineFail
				f.Clusters[0].Online, f.Clusters[0].OfflineReason = false, v1alpha1.ReasonAPIServerUnreachable
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a " +
				"(APIServerUnreachable); nothing more is admitted until it recovers: repair, pause or retry it, or " +
				"set another version",
		},
		"the release is there from an earlier rollout, and not Ready": {
			given: func(f *fixture) {
				for i := range 2 {
					f.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "new"}
					f.Installs[i].SucceededHash = "new"
				}
				f.Installs[1].Ready = true
			},
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:01:00Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"a verified wave is not judged": {
			given: func(f *fixture) { f.verified(); f.Installs[0].Ready = false; f.Clusters[1].Online = false },
			want: "Progressing, one Verified, two Updating, batch c d: wave two: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"a wave that is not reached is not judged": {
			given: func(f *fixture) {
				f.admit(0, 0, 1)
				f.succeed(2)
				f.Installs[2].Ready = false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"an unready cluster takes a slot": {
			given: func(f *fixture) {
				f.wave(0).MaxConcurrency = number(1)
				f.succeed(0)
				f.Installs[0].Ready = false
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
		given func(*fixture)
		want  clock
	}{
		"it begins with the last success": {
			given: func(f *fixture) { f.soaking(); f.ro.Status.Waves[0].Updated = 1 },
			want:  clock{UpdatedAt: ago(0)},
		},
		"it goes on": {given: (*fixture).soaking, want: clock{UpdatedAt: ago(time.Minute)}},
		"it stands still while a cluster is not Ready": {
			given: func(f *fixture) { f.soaking(); f.Installs[0].Ready = false },
			want:  clock{UpdatedAt: ago(time.Minute), InterruptedAt: ago(0)},
		},
		"it goes on from where it stood": {
			given: func(f *fixture) { f.soaking(); f.unready(20*time.Second, 0); f.Installs[0].Ready = true },
			want:  clock{UpdatedAt: ago(40 * time.Second)},
		},
		"a success that is not Ready yet": {
			given: func(f *fixture) { f.soaking(); f.ro.Status.Waves[0].Updated = 1; f.Installs[0].Ready = false },
			want:  clock{UpdatedAt: ago(0), InterruptedAt: ago(0)},
		},
		"it starts again once failures are put right": {
			given: func(f *fixture) {
				f.soaking()
				f.ro.Status.Phase, f.ro.Status.Waves[0].Failed = v1alpha1.RolloutHalted, 1
			},
			want: clock{UpdatedAt: ago(0)},
		},
		"it starts again once a cluster that had failed is Ready": {
			given: func(f *fixture) { f.soaking(); f.unready(2*time.Minute, 0); f.Installs[0].Ready = true },
			want:  clock{UpdatedAt: ago(0)},
		},
		"it does not for a cluster that was offline": {
			given: func(f *fixture) {
				f.soaking()
				f.ro.Status.Waves[0].Succeeded, f.ro.Status.Waves[0].Deferred = 1, 1
			},
			want: clock{UpdatedAt: ago(time.Minute)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			test.given(f)
			w := rollouts.Next(f.Input).Status.Waves[0]
			if diff := cmp.Diff(test.want, clock{w.UpdatedAt, w.InterruptedAt}); diff != "" {
				t.Errorf("the soak's clock (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadyIsRemembered checks that the hub's first observation counts, independent of the clock of the cluster.
func TestUnreadyIsRemembered(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.soaking()
	f.unready(30*time.Second, 0)
	f.Installs[1].Ready = false
	d := rollouts.Next(f.Input)
	want := []v1alpha1.UnreadyCluster{{Cluster: "a", Since: *ago(30 * time.Second)}, {Cluster: "b", Since: *ago(0)}}
	if diff := cmp.Diff(want, d.Status.Unready); diff != "" {
		t.Errorf("not Ready (-want +got):\n%s", diff)
	}
	if d.RecheckAfter != 30*time.Second {
		t.Errorf("recheck after %s, want the end of the first grace", d.RecheckAfter)
	}
	for i := range 2 {
		f.Installs[i].Ready = true
	}
	if d := rollouts.Next(f.Input); d.Status.Unready != nil {
		t.Errorf("Ready again, and %v is remembered as not Ready", d.Status.Unready)
	}
}

// TestVerifiedWaveKeepsItsCounts checks that later changes of clusters do not change the counts of a verified wave.
func TestVerifiedWaveKeepsItsCounts(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.verified()
	f.Installs[0].Ready, f.Clusters[1].Online = false, false
	d := rollouts.Next(f.Input)
	want := v1alpha1.WaveCounts{Total: 2, Succeeded: 2}
	if diff := cmp.Diff(want, d.Status.Waves[0].WaveCounts); diff != "" || d.Status.Unready != nil {
		t.Errorf("counts of a verified wave (-want +got):\n%s\nnot Ready: %v", diff, d.Status.Unready)
	}
}
