// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is a planned rollout of waves one (a, b) and two (c, d), two clusters
// at a time, seen live at noon. Nothing was admitted yet.
type scene struct {
	rollouts.Input
	ro *v1alpha1.OperatorRollout
}

func newScene() *scene {
	two := v1alpha1.Wave{Name: "two", MaxConcurrency: number(2)}
	one := v1alpha1.Wave{Name: "one", MaxConcurrency: number(2), Size: number(2)}
	ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Name: "echo-2", UID: "uid-2"}}
	ro.Spec.Revision = 2
	ro.Spec.Strategy = rollouts.Defaulted(v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{one, two}})
	ro.Status = v1alpha1.OperatorRolloutStatus{
		Phase: v1alpha1.RolloutProgressing, PlanHash: "frozen", ReleaseHash: "new", ObservedInstalls: "100",
		Waves: []v1alpha1.WaveStatus{{Name: "one", Phase: v1alpha1.WaveUpdating},
			{Name: "two", Phase: v1alpha1.WaveWaiting}},
	}
	s := &scene{ro: ro, Input: rollouts.Input{Now: noon, Rollout: ro, Live: true, ObservedInstalls: "200",
		Clusters: members(4)}}
	for i, wave := range []string{"one", "one", "two", "two"} {
		s.Installs = append(s.Installs, rollouts.Install{Cluster: s.Clusters[i].Name, Rollout: "echo-2", Wave: wave})
	}
	return s
}

func (s *scene) wave(i int) *v1alpha1.Wave { return &s.ro.Spec.Strategy.Waves[i] }

func (s *scene) admit(ago time.Duration, clusters ...int) {
	for _, i := range clusters {
		s.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-2", Hash: "new", AdmittedAt: noon.Add(-ago)}
	}
}

func (s *scene) succeed(clusters ...int) {
	s.admit(time.Minute, clusters...)
	for _, i := range clusters {
		s.Installs[i].SucceededHash, s.Installs[i].Ready = "new", true
	}
}

// succeededLate has the first wave's clusters updated since a time, when it was
// verified already, and those of the second one paused.
func (s *scene) succeededLate(since time.Duration) {
	s.verified()
	s.wave(0).Soak = &metav1.Duration{Duration: 30 * time.Second}
	s.ro.Status.Waves[0].Updated, s.ro.Status.Waves[0].UpdatedAt = 2, ago(since)
	s.Clusters[2].Paused, s.Clusters[3].Paused = true, true
}

// verified makes the first wave history.
func (s *scene) verified() {
	s.succeed(0, 1)
	s.ro.Status.Waves[0] = v1alpha1.WaveStatus{
		Name: "one", Phase: v1alpha1.WaveVerified, VerifiedAt: ago(time.Minute), UpdatedAt: ago(time.Minute),
		WaveCounts: v1alpha1.WaveCounts{Total: 2, Succeeded: 2},
	}
}

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func (s *scene) batch(ago time.Duration, clusters ...string) {
	s.ro.Status.Batch = &v1alpha1.AdmissionBatch{}
	for _, c := range clusters {
		s.ro.Status.Batch.Clusters = append(s.ro.Status.Batch.Clusters,
			v1alpha1.BatchEntry{Cluster: c, Wave: "one", AdmittedAt: metav1.Time{Time: noon.Add(-ago)}})
	}
}

// told is a decision in short.
func told(d rollouts.Decision) string {
	if d.WantsLive {
		return "wants a live view"
	}
	var parts []string
	for _, a := range d.Actions {
		parts = append(parts, fmt.Sprintf("%s %s to %s", a.Kind, a.Cluster, a.Wave))
	}
	parts = append(parts, string(d.Status.Phase))
	for _, w := range d.Status.Waves {
		parts = append(parts, fmt.Sprintf("%s %s", w.Name, w.Phase))
	}
	if d.Status.Batch != nil {
		var names []string
		for _, e := range d.Status.Batch.Clusters {
			names = append(names, e.Cluster)
		}
		parts = append(parts, "batch "+strings.Join(names, " "))
	}
	return strings.Join(parts, ", ") + ": " + d.Status.Message
}

// situation is a scene, and what is decided there.
type situation struct {
	given func(*scene)
	want  string
}

func judge(t *testing.T, situations map[string]situation) {
	t.Helper()
	for name, test := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.given(s)
			if diff := cmp.Diff(test.want, told(rollouts.Next(s.Input))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	judge(t, map[string]situation{
		"the first batch is written down, nothing is admitted": {
			given: func(*scene) {},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"what was written down is admitted": {
			given: func(s *scene) { s.batch(0, "a", "b") },
			want: "Admit a to one, Admit b to one, Progressing, one Updating, two Waiting, batch a b: wave one: 0 " +
				"of 2 clusters updated, 2 in progress",
		},
		"an entry whose stamp is seen leaves the batch": {
			given: func(s *scene) { s.batch(0, "a", "b"); s.admit(0, 0) },
			want: "Admit b to one, Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters " +
				"updated, 2 in progress",
		},
		"slots": {
			given: func(s *scene) { s.wave(0).MaxConcurrency = number(1); s.admit(0, 0) },
			want:  "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"a success soaks": {
			given: func(s *scene) { s.wave(0).Soak.Duration = time.Minute; s.succeed(0, 1) },
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:01:00Z: 2 of 2 " +
				"clusters updated",
		},
		"the soak is over: the next wave opens with the next pass": {
			given: func(s *scene) {
				s.wave(0).Soak.Duration = time.Minute
				s.succeed(0, 1)
				s.ro.Status.Waves[0].UpdatedAt, s.ro.Status.Waves[0].Updated = ago(time.Minute), 2
			},
			want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"no wave is verified on a cached view": {
			given: func(s *scene) { s.Live = false; s.succeed(0, 1) },
			want:  "wants a live view",
		},
		"a cache behind the last decision is not used": {
			given: func(s *scene) { s.Live, s.ObservedInstalls = false, "99" },
			want:  "wants a live view",
		},
		"an entry not seen for long is looked up": {
			given: func(s *scene) { s.Live = false; s.batch(time.Minute, "a") },
			want:  "wants a live view",
		},
		"the next wave": {
			given: func(s *scene) { s.verified() },
			want: "Progressing, one Verified, two Updating, batch c d: wave two: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"all verified": {
			given: func(s *scene) { s.verified(); s.succeed(2, 3) },
			want:  "Succeeded, one Verified, two Verified: 4 of 4 clusters updated",
		},
		"a stalled cluster halts": {
			given: func(s *scene) { s.admit(0, 0); s.Installs[0].Stalled = true },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (Stalled); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"a stall that is tolerated": {
			given: func(s *scene) {
				s.wave(0).MaxFailures = number(1)
				s.admit(0, 0)
				s.Installs[0].Stalled = true
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"stalled, then Ready": {
			given: func(s *scene) { s.admit(time.Hour, 0); s.succeed(0) },
			want:  "Progressing, one Updating, two Waiting, batch b: wave one: 1 of 2 clusters updated, 1 in progress",
		},
		"succeeded, then stalled: in progress for the grace": {
			given: func(s *scene) { s.succeed(0); s.Installs[0].Ready, s.Installs[0].Stalled = false, true },
			want:  "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"time is up": {
			given: func(s *scene) { s.admit(30*time.Minute, 0) },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"time is up and it is offline: deferred, its slot is free": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.admit(30*time.Minute, 0)
				s.Clusters[0].Online = false
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"offline and in time: it holds its slot": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.admit(time.Minute, 0)
				s.Clusters[0].Online = false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"the agent itself is silent after its upgrade: failed, nobody else gets that agent": {
			given: func(s *scene) {
				s.ro.Spec.Release.Package = own.AgentPackage
				s.wave(0).MaxConcurrency = number(1)
				s.admit(30*time.Minute, 0)
				s.Clusters[0].Online = false
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"the agent itself came up and is silent since: failed": {
			given: func(s *scene) {
				s.ro.Spec.Release.Package = own.AgentPackage
				s.succeed(0, 1)
				s.Clusters[0].Online, s.Clusters[0].OfflineReason = false, v1alpha1.ReasonAgentOffline
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (AgentOffline); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"the agent itself comes up again and again: its time is not anew": {
			given: func(s *scene) {
				s.ro.Spec.Release.Package = own.AgentPackage
				s.admit(time.Hour, 0)
				s.Clusters[0].OnlineSince = noon.Add(-time.Minute)
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"the agent of a cluster that was offline before is deferred as any other": {
			given: func(s *scene) {
				s.ro.Spec.Release.Package = own.AgentPackage
				s.Clusters[0].Online = false
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"back online: the whole time anew": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.admit(time.Hour, 0)
				s.Clusters[0].OnlineSince = noon.Add(-time.Minute)
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"offline counts as failed where the policy says so": {
			given: func(s *scene) {
				s.ro.Spec.Strategy.Offline = v1alpha1.OfflineFail
				s.Clusters[1].Online, s.Clusters[3].Online = false, false
				s.Clusters[1].OfflineReason = v1alpha1.ReasonAgentOffline
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: b (AgentOffline); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"a person pauses a cluster that failed: the others go on": {
			given: func(s *scene) {
				s.admit(time.Hour, 0)
				s.Installs[0].Stalled = true
				s.Clusters[0].Paused = true
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"retried: the cluster that failed is admitted again": {
			given: func(s *scene) {
				s.ro.Spec.Retries = 1
				s.admit(time.Hour, 0)
				s.Installs[0].Stalled = true
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"retried: it is written down": {
			given: func(s *scene) {
				s.ro.Spec.Retries = 1
				s.admit(time.Hour, 0, 1)
				s.batch(0, "a")
				s.ro.Status.Batch.Clusters[0].Attempt = 1
				s.Installs[1].SucceededHash, s.Installs[1].Ready = "new", true
			},
			want: "Admit a to one, Progressing, one Updating, two Waiting, batch a: wave one: 1 of 2 clusters " +
				"updated, 1 in progress",
		},
		"retried: once": {
			given: func(s *scene) {
				s.ro.Spec.Retries = 1
				s.admit(time.Hour, 0)
				s.Installs[0].Stamp.Attempt = 1
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"retried: not while it is offline": {
			given: func(s *scene) {
				s.ro.Spec.Retries = 1
				s.admit(time.Hour, 0)
				s.Installs[0].Stalled, s.Clusters[0].Online = true, false
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (Stalled); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"retried: one that was updated and is not Ready": {
			given: func(s *scene) {
				s.ro.Spec.Retries = 1
				s.soaking()
				s.unready(time.Hour, 0)
			},
			want: "Progressing, one Updating, two Waiting, batch a: wave one: 1 of 2 clusters updated, 1 in progress",
		},
		"retried: it has its grace again": {
			given: func(s *scene) {
				s.ro.Spec.Retries = 1
				s.soaking()
				s.unready(time.Hour, 0)
				s.Installs[0].Stamp.Attempt, s.Installs[0].Stamp.AdmittedAt = 1, noon.Add(-10*time.Second)
			},
			want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
				"at 2026-03-01T12:00:50Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
		},
		"the policy is abort": {
			given: func(s *scene) {
				s.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
				s.admit(0, 0)
				s.Installs[0].Stalled = true
			},
			want: "Aborted, one Updating, two Waiting: aborted, as its failure policy says: wave one: 1 cluster " +
				"failed, 0 allowed: a (Stalled)",
		},
		"deferred ones are passed over": {
			given: func(s *scene) { s.succeed(0); s.Clusters[1].Paused = true },
			want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"one that hibernates after its update is passed over, whatever the policy for offline ones": {
			given: func(s *scene) {
				s.ro.Spec.Strategy.Offline = v1alpha1.OfflineFail
				s.succeed(0, 1)
				s.Clusters[1].Online, s.Clusters[1].OfflineReason = false, v1alpha1.ReasonAgentOffline
				s.Clusters[1].Paused, s.Clusters[1].PausedReason = true, v1alpha1.ReasonHibernating
			},
			want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"too many deferred": {
			given: func(s *scene) {
				s.ro.Spec.Strategy.MaxDeferred = number(0)
				s.succeed(0)
				s.Clusters[1].Paused = true
			},
			want: "Progressing, one Updating, two Waiting: wave one: 1 cluster deferred because offline, " +
				"paused or held back (b); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"clusters that are not Ready any more prove nothing": {
			given: func(s *scene) {
				s.verified()
				s.Installs[0].Ready, s.Installs[1].Ready = false, false
				s.Clusters[2].Paused, s.Clusters[3].Paused = true, true
			},
			want: "Progressing, one Verified, two Updating: wave two: 2 clusters deferred because offline, " +
				"paused or held back (c, d); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"a late success proves nothing before its soak is over": {
			given: func(s *scene) { s.succeededLate(20 * time.Second) },
			want: "Progressing, one Verified, two Updating: wave two: 2 clusters deferred because offline, " +
				"paused or held back (c, d); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"a late success whose soak is over": {
			given: func(s *scene) { s.succeededLate(30 * time.Second) },
			want:  "Succeeded, one Verified, two Verified: 2 of 4 clusters updated, 2 deferred until they are back",
		},
		"an offline canary proves nothing": {
			given: func(s *scene) { s.Clusters[0].Online, s.Clusters[1].Online = false, false },
			want: "Progressing, one Updating, two Waiting: wave one: 2 clusters deferred because offline, " +
				"paused or held back (a, b); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"the last wave waits for nobody": {
			given: func(s *scene) {
				s.ro.Spec.Strategy.MaxDeferred = number(0)
				s.verified()
				s.Clusters[2].Online, s.Clusters[3].Online = false, false
			},
			want: "Succeeded, one Verified, two Verified: 2 of 4 clusters updated, 2 deferred until they are back",
		},
		"a gate": {
			given: func(s *scene) {
				s.wave(0).Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
			},
			want: "Progressing, one Gated, two Waiting: wave one waits for gate sre: 2 clusters have to be approved",
		},
		"an approval": {
			given: func(s *scene) {
				s.wave(0).Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
				s.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "sre", By: "ann", Reason: "go"}}
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"paused": {
			given: func(s *scene) { s.ro.Spec.Paused, s.ro.Spec.PausedReason = true, "lunch"; s.batch(0, "a") },
			want:  "Paused, one Updating, two Waiting, batch a: paused: lunch; what was admitted finishes",
		},
		"paused: what was written down and never done is given up": {
			given: func(s *scene) {
				s.ro.Spec.Paused, s.ro.Status.Phase = true, v1alpha1.RolloutPaused
				s.batch(time.Minute, "a")
			},
			want: "Paused, one Updating, two Waiting: paused; what was admitted finishes",
		},
		"paused: it is kept while a slow hub may still act on it": {
			given: func(s *scene) {
				s.ro.Spec.Paused, s.ro.Status.Phase = true, v1alpha1.RolloutPaused
				s.batch(rollouts.AdmissionTimeout, "a")
			},
			want: "Paused, one Updating, two Waiting, batch a: paused; what was admitted finishes",
		},
		"resumed: the status says so before anything is admitted": {
			given: func(s *scene) { s.ro.Status.Phase = v1alpha1.RolloutPaused; s.batch(0, "a", "b") },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"not paused: it is done with a time of its own": {
			given: func(s *scene) { s.batch(time.Minute, "a", "b") },
			want: "Admit a to one, Admit b to one, Progressing, one Updating, two Waiting, batch a b: wave one: 0 " +
				"of 2 clusters updated, 2 in progress",
		},
		"blocked: nobody else is admitted": {
			given: func(s *scene) {
				s.ro.Spec.Blocked, s.ro.Spec.Release.Version = "it loses data",
					"1.1.0"
				s.succeed(0)
			},
			want: "Halted, one Updating, two Waiting: 1.1.0 is blocked: it loses data; nobody else is admitted, 1 " +
				"of 4 clusters were updated before; lift the block in the catalog, or let the ManagedOperator ask " +
				"for another version",
		},
		"blocked: clusters that stop do not abort it": {
			given: func(s *scene) {
				s.ro.Spec.Blocked, s.ro.Spec.Strategy.OnFailure, s.ro.Spec.Release.Version = "it loses data",
					v1alpha1.FailureAbort, "1.1.0"
				s.admit(0, 0)
				s.Installs[0].Stalled, s.Installs[1].Stalled = true, true
			},
			want: "Halted, one Updating, two Waiting: 1.1.0 is blocked: it loses data; nobody else is admitted, 0 of " +
				"4 clusters were updated before; lift the block in the catalog, or let the ManagedOperator ask for " +
				"another version",
		},
		"unblocked: it goes on": {
			given: func(s *scene) { s.ro.Status.Phase = v1alpha1.RolloutHalted },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"aborted": {
			given: func(s *scene) { s.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "no"}; s.admit(0, 0) },
			want:  "Aborted, one Updating, two Waiting: aborted: no",
		},
		"superseded by a person's new target": {
			given: func(s *scene) {
				s.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "1.2.0 is out", Superseded: true}
			},
			want: "Superseded, one Updating, two Waiting: 1.2.0 is out",
		},
		"a newer rollout exists: others wait until nobody can act on the entry": {
			given: func(s *scene) { s.Newer = true; s.batch(0, "a") },
			want:  "Superseded, one Updating, two Waiting, batch a: a newer rollout took over",
		},
		"busy with an older release, moved within its slot": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.Installs[1].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "old",
					AdmittedAt: noon.Add(-time.Minute)}
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"done with an older release": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.Installs[1].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "old",
					AdmittedAt: noon.Add(-time.Minute)}
				s.Installs[1].SucceededHash = "old"
			},
			want: "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"the release is there already": {
			given: func(s *scene) {
				for i := range 2 {
					s.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "new"}
					s.Installs[i].SucceededHash, s.Installs[i].Ready = "new", true
				}
			},
			want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"a late joiner joins the first open wave that takes it": {
			given: func(s *scene) { s.admit(0, 0, 1); s.Clusters = append(s.Clusters, members(5)[4]) },
			want: "Assign e to two, Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"late joiners are ignored": {
			given: func(s *scene) {
				s.ro.Spec.Strategy.LateJoiners = v1alpha1.LateIgnore
				s.admit(0, 0, 1)
				s.Clusters = append(s.Clusters, members(5)[4])
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"after the end, within the wave's concurrency": {
			given: func(s *scene) {
				s.verified()
				s.ro.Status.Waves[1].VerifiedAt = ago(0)
				s.ro.Status.Phase = v1alpha1.RolloutSucceeded
				s.wave(1).MaxConcurrency = number(1)
			},
			want: "Succeeded, one Verified, two Verified, batch c: 2 of 4 clusters updated, 1 in progress, 1 joined " +
				"late and wait for their turn",
		},
		"a cluster that left is removed and holds its slot until its install is gone": {
			given: func(s *scene) {
				s.wave(0).MaxConcurrency = number(1)
				s.admit(0, 0)
				s.Clusters = s.Clusters[1:]
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 1 clusters updated, 0 in progress",
		},
		"gone": {
			given: func(s *scene) {
				s.ro.Status.Waves[0].Total = 2
				s.wave(0).MaxConcurrency = number(1)
				s.Clusters, s.Installs = s.Clusters[1:], s.Installs[1:]
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 1 clusters updated, 1 in progress",
		},
		"planning puts every cluster into its wave": {
			given: func(s *scene) { s.ro.Status = v1alpha1.OperatorRolloutStatus{}; s.Installs = s.Installs[:1] },
			want: "Assign b to one, Assign c to two, Assign d to two, Pending: freezing the membership: 1 of 4 " +
				"clusters have their wave",
		},
		"planned": {
			given: func(s *scene) { s.ro.Status = v1alpha1.OperatorRolloutStatus{ReleaseHash: "new"} },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"nothing is selected": {
			given: func(s *scene) {
				s.ro.Status = v1alpha1.OperatorRolloutStatus{}
				s.ro.Spec.ClusterSelector = *by("no", "where")
			},
			want: "Pending: no enrolled cluster matches the cluster selector: label a FleetCluster or change the " +
				"ManagedOperator's clusterSelector",
		},
		"a selector that no API server admits": {
			given: func(s *scene) {
				s.ro.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a",
					Operator: "Near"}}
			},
			want: `Progressing, one Updating, two Waiting: parse cluster selector: "Near" is not a valid label ` +
				"selector operator",
		},
	})
}

// A hub that is slow may have read the entry before the rollout was stopped, so
// its lapse is counted from the stop.
func TestStopRenewsTheBatch(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.ro.Spec.Paused = true
	s.batch(time.Hour, "a")
	stopped := rollouts.Next(s.Input).Status
	if stopped.Phase != v1alpha1.RolloutPaused || stopped.Batch == nil ||
		!stopped.Batch.Clusters[0].AdmittedAt.Time.Equal(noon) {
		t.Errorf("%s, batch %+v", stopped.Phase, stopped.Batch)
	}
}

func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.ro.Status = v1alpha1.OperatorRolloutStatus{}
	s.ro.Spec.Strategy = v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "all",
		MaxConcurrency: percent("100%")}}}
	s.Clusters, s.Installs = nil, nil
	for i := range 3 * rollouts.MaxBatch {
		name := fmt.Sprintf("c%04d", i)
		s.Clusters = append(s.Clusters, rollouts.Cluster{Name: name, Enrolled: true, Online: true})
	}
	d := rollouts.Next(s.Input)
	if len(d.Actions) != rollouts.MaxAssignments || d.RecheckAfter == 0 {
		t.Errorf("%d assignments in one pass, and a recheck after %s", len(d.Actions), d.RecheckAfter)
	}
	for _, c := range s.Clusters {
		s.Installs = append(s.Installs, rollouts.Install{Cluster: c.Name, Rollout: "echo-2", Wave: "all"})
	}
	d = rollouts.Next(s.Input)
	if n := len(d.Status.Batch.Clusters); n != rollouts.MaxBatch {
		t.Errorf("%d clusters in the batch", n)
	}
}

func TestRecheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		given func(*scene)
		want  time.Duration
	}{
		"nothing but a watch changes it": {given: func(s *scene) { s.verified(); s.succeed(2, 3) }},
		"the soak's end": {
			given: func(s *scene) { s.wave(0).Soak.Duration = 7 * time.Minute; s.succeed(0, 1) },
			want:  7 * time.Minute,
		},
		"the end of a grace": {
			given: func(s *scene) { s.soaking(); s.unready(15*time.Second, 1) },
			want:  45 * time.Second,
		},
		"the first deadline": {
			given: func(s *scene) { s.admit(10*time.Minute, 0); s.admit(5*time.Minute, 1) },
			want:  20 * time.Minute,
		},
		"windows open": {given: func(s *scene) { s.close(0, 1) }, want: 8 * time.Hour},
		"windows close": {
			given: func(s *scene) { s.Clusters[1].OpenUntil = noon.Add(30 * time.Second); s.batch(0, "a", "b") },
			want:  30 * time.Second,
		},
		"a batch entry that should have been seen": {
			given: func(s *scene) { s.batch(0, "a", "b") },
			want:  2*rollouts.AdmissionTimeout + time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.given(s)
			if got := rollouts.Next(s.Input).RecheckAfter; got != test.want {
				t.Errorf("recheck after %s, want %s", got, test.want)
			}
		})
	}
}

// FuzzNext feeds the planner inputs that no world leads to.
func FuzzNext(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 11))
		s := newScene()
		s.Live, s.Newer = rng.IntN(4) > 0, rng.IntN(8) == 0
		s.scramble(rng)
		d := rollouts.Next(s.Input)
		counted := !d.WantsLive && !s.Newer && d.Status.PlanHash != ""
		for _, w := range d.Status.Waves {
			c := w.WaveCounts
			if counted && c.Pending+c.InProgress+c.Succeeded+c.Failed+c.Deferred+c.Removed != c.Total {
				t.Errorf("the counts of wave %s do not add up: %+v", w.Name, c)
			}
		}
		if b := d.Status.Batch; b != nil && len(b.Clusters) > rollouts.MaxBatch {
			t.Errorf("%d clusters in the batch", len(b.Clusters))
		}
	})
}

// scramble makes nonsense of everything that a hub reads.
func (s *scene) scramble(rng *rand.Rand) {
	some := func() string { return pick(rng, "", "a", "b", "c", "d", "z") }
	waveName := func() string { return pick(rng, "one", "two", "three", "") }
	for i := range s.Installs {
		install := &s.Installs[i]
		install.Cluster, install.Wave, install.Rollout = some(), waveName(), pick(rng, "echo-2", "echo-1", "")
		install.Stamp = rollouts.Stamp{RolloutUID: pick(rng, "", "uid-1", "uid-2"), Hash: pick(rng, "", "new", "old"),
			AdmittedAt: noon.Add(time.Duration(rng.IntN(7200)-3600) * time.Second), Attempt: rng.Int64N(3)}
		install.SucceededHash = pick(rng, "", "new", "old")
		install.Stalled, install.Deleting, install.Ready = rng.IntN(3) == 0, rng.IntN(5) == 0, rng.IntN(2) == 0
	}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		c.Name, c.Enrolled, c.Online, c.Paused, c.Deleting = some(), rng.IntN(4) > 0, rng.IntN(3) > 0, rng.IntN(4) == 0,
			rng.IntN(5) == 0
	}
	status := &s.ro.Status
	status.PlanHash, status.ObservedInstalls = pick(rng, "", "frozen"), pick(rng, "", "7", "300", "nonsense")
	status.Phase = pick(rng, "", v1alpha1.RolloutPending, v1alpha1.RolloutSucceeded, v1alpha1.RolloutAborted,
		v1alpha1.RolloutHalted, "Odd")
	s.batch(time.Duration(rng.IntN(120)-30)*time.Second, some(), some())
	for i := range status.Waves {
		w := &status.Waves[i]
		w.Name, w.Phase = waveName(), pick(rng, v1alpha1.WaveWaiting, v1alpha1.WaveVerified, "Odd")
		w.VerifiedAt, w.UpdatedAt = pick(rng, nil, ago(time.Minute)), pick(rng, nil, ago(-time.Minute))
		w.Total, w.Succeeded, w.Updated, w.Failed = rng.Int32N(5), rng.Int32N(5), rng.Int32N(5), rng.Int32N(5)
		w.InterruptedAt = pick(rng, nil, ago(time.Minute))
	}
	status.Unready = []v1alpha1.UnreadyCluster{{Cluster: some(),
		Since: *ago(time.Duration(rng.IntN(200)) * time.Second)}}
	s.ro.Spec.Retries = rng.Int64N(3)
	strategy := &s.ro.Spec.Strategy
	strategy.Offline = pick(rng, "", v1alpha1.OfflineFail, "Odd")
	strategy.OnFailure = pick(rng, "", v1alpha1.FailureAbort)
	strategy.MaxDeferred = pick(rng, nil, number(-1), percent("x"))
	for i := range strategy.Waves {
		w := &strategy.Waves[i]
		w.MaxConcurrency, w.MaxFailures, w.Size = pick(rng, nil, number(-3), percent("150%")),
			pick(rng, nil, number(-3), percent("?")), pick(rng, nil, number(-1), number(9), percent("%"))
		w.UnreadyGrace = pick(rng, nil, &metav1.Duration{}, &metav1.Duration{Duration: -time.Hour})
		w.Gates = pick(rng, nil, []v1alpha1.Gate{{Name: "odd"}})
	}
	s.ro.Spec.Paused, s.ro.Spec.Blocked = rng.IntN(4) == 0, pick(rng, "", "", "", "bad")
	s.ro.Spec.Abort = pick(rng, nil, nil, &v1alpha1.RolloutAbort{})
}
