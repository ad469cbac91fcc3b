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

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is a planned rollout of waves one (a, b) and two (c, d), two clusters
// at a time, seen live at noon. Nothing was admitted yet.
type fixture struct {
	rollouts.Input
	ro *v1alpha1.OperatorRollout
}

func newFixture() *fixture {
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
	f := &fixture{ro: ro, Input: rollouts.Input{Now: noon, Rollout: ro, Live: true, ObservedInstalls: "200",
		Clusters: members(4)}}
	for i, wave := range []string{"one", "one", "two", "two"} {
		f.Installs = append(f.Installs, rollouts.Install{Cluster: f.Clusters[i].Name, Rollout: "echo-2", Wave: wave})
	}
	return f
}

func (f *fixture) wave(i int) *v1alpha1.Wave { return &f.ro.Spec.Strategy.Waves[i] }

func (f *fixture) admit(ago time.Duration, clusters ...int) {
	for _, i := range clusters {
		f.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-2", Hash: "new", AdmittedAt: noon.Add(-ago)}
	}
}

func (f *fixture) succeed(clusters ...int) {
	f.admit(time.Minute, clusters...)
	for _, i := range clusters {
		f.Installs[i].SucceededHash, f.Installs[i].Ready = "new", true
	}
}

// succeededLate makes the clusters of the first wave, which is already verified, updated since a time, and pauses the
// clusters of the second wave.
func (f *fixture) succeededLate(since time.Duration) {
	f.verified()
	f.wave(0).Soak = &metav1.Duration{Duration: 30 * time.Second}
	f.ro.Status.Waves[0].Updated, f.ro.Status.Waves[0].UpdatedAt = 2, ago(since)
	f.Clusters[2].Paused, f.Clusters[3].Paused = true, true
}

// verified makes the first wave history.
func (f *fixture) verified() {
	f.succeed(0, 1)
	f.ro.Status.Waves[0] = v1alpha1.WaveStatus{
		Name: "one", Phase: v1alpha1.WaveVerified, VerifiedAt: ago(time.Minute), UpdatedAt: ago(time.Minute),
		WaveCounts: v1alpha1.WaveCounts{Total: 2, Succeeded: 2},
	}
}

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func (f *fixture) batch(ago time.Duration, clusters ...string) {
	f.ro.Status.Batch = &v1alpha1.AdmissionBatch{}
	for _, c := range clusters {
		f.ro.Status.Batch.Clusters = append(f.ro.Status.Batch.Clusters,
			v1alpha1.BatchEntry{Cluster: c, Wave: "one", AdmittedAt: metav1.Time{Time: noon.Add(-ago)}})
	}
}

// summarize returns a decision in short.
func summarize(d rollouts.Decision) string {
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

// decisionCase is a change of the fixture, and what is decided then.
type decisionCase struct {
	given func(*fixture)
	want  string
}

func checkDecisions(t *testing.T, cases map[string]decisionCase) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			test.given(f)
			if diff := cmp.Diff(test.want, summarize(rollouts.Next(f.Input))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNext goes through the stages of Next. What each decision shows is named after what it was given.
func TestNext(t *testing.T) {
	t.Parallel()
	t.Run("observe", func(t *testing.T) { checkDecisions(t, observeCases) })
	t.Run("classify", func(t *testing.T) { checkDecisions(t, classifyCases) })
	t.Run("judge", func(t *testing.T) { checkDecisions(t, judgeCases) })
	t.Run("choose", func(t *testing.T) { checkDecisions(t, chooseCases) })
	t.Run("record", func(t *testing.T) { checkDecisions(t, recordCases) })
}

// observeCases are about what is observed before anything is judged: which view is used, and who belongs to which wave.
var observeCases = map[string]decisionCase{
	"an entry whose stamp is seen leaves the batch": {
		given: func(f *fixture) { f.batch(0, "a", "b"); f.admit(0, 0) },
		want: "Admit b to one, Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters " +
			"updated, 2 in progress",
	},
	"a cache behind the last decision is not used": {
		given: func(f *fixture) { f.Live, f.ObservedInstalls = false, "99" },
		want:  "wants a live view",
	},
	"an entry not seen for long is looked up": {
		given: func(f *fixture) { f.Live = false; f.batch(time.Minute, "a") },
		want:  "wants a live view",
	},
	"a newer rollout exists: others wait until nobody can act on the entry": {
		given: func(f *fixture) { f.Newer = true; f.batch(0, "a") },
		want:  "Superseded, one Updating, two Waiting, batch a: a newer rollout took over",
	},
	"planning puts every cluster into its wave": {
		given: func(f *fixture) { f.ro.Status = v1alpha1.OperatorRolloutStatus{}; f.Installs = f.Installs[:1] },
		want: "Assign b to one, Assign c to two, Assign d to two, Pending: freezing the membership: 1 of 4 " +
			"clusters assigned to a wave",
	},
	"planned": {
		given: func(f *fixture) { f.ro.Status = v1alpha1.OperatorRolloutStatus{ReleaseHash: "new"} },
		want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
			"progress",
	},
	"nothing is selected": {
		given: func(f *fixture) {
			f.ro.Status = v1alpha1.OperatorRolloutStatus{}
			f.ro.Spec.ClusterSelector = *by("no", "where")
		},
		want: "Pending: no enrolled cluster matches the cluster selector: label a FleetCluster or change the " +
			"ManagedOperator's clusterSelector",
	},
	"a selector that no API server admits": {
		given: func(f *fixture) {
			f.ro.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a",
				Operator: "Near"}}
		},
		want: `Progressing, one Updating, two Waiting: parse cluster selector: "Near" is not a valid label ` +
			"selector operator",
	},
}

// classifyCases are about how clusters count.
var classifyCases = map[string]decisionCase{
	"a stalled cluster halts": {
		given: func(f *fixture) { f.admit(0, 0); f.Installs[0].Stalled = true },
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (Stalled); nothing " +
			"more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"a stall that is tolerated": {
		given: func(f *fixture) {
			f.wave(0).MaxFailures = number(1)
			f.admit(0, 0)
			f.Installs[0].Stalled = true
		},
		want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"stalled, then Ready": {
		given: func(f *fixture) { f.admit(time.Hour, 0); f.succeed(0) },
		want:  "Progressing, one Updating, two Waiting, batch b: wave one: 1 of 2 clusters updated, 1 in progress",
	},
	"succeeded, then stalled: in progress for the grace": {
		given: func(f *fixture) { f.succeed(0); f.Installs[0].Ready, f.Installs[0].Stalled = false, true },
		want:  "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 2 in progress",
	},
	"time is up": {
		given: func(f *fixture) { f.admit(30*time.Minute, 0) },
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
			"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"time is up and it is offline: deferred, its slot is free": {
		given: func(f *fixture) {
			f.wave(0).MaxConcurrency = number(1)
			f.admit(30*time.Minute, 0)
			f.Clusters[0].Online = false
		},
		want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"offline and in time: it holds its slot": {
		given: func(f *fixture) {
			f.wave(0).MaxConcurrency = number(1)
			f.admit(time.Minute, 0)
			f.Clusters[0].Online = false
		},
		want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"the agent itself is silent after its upgrade: failed, nobody else gets that agent": {
		given: func(f *fixture) {
			f.ro.Spec.Release.Package = v1alpha1.AgentPackage
			f.wave(0).MaxConcurrency = number(1)
			f.admit(30*time.Minute, 0)
			f.Clusters[0].Online = false
		},
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
			"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"the agent itself came up and is silent since: failed": {
		given: func(f *fixture) {
			f.ro.Spec.Release.Package = v1alpha1.AgentPackage
			f.succeed(0, 1)
			f.Clusters[0].Online, f.Clusters[0].OfflineReason = false, v1alpha1.ReasonAgentOffline
		},
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (AgentOffline); " +
			"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"the agent itself comes up again and again: its time is not anew": {
		given: func(f *fixture) {
			f.ro.Spec.Release.Package = v1alpha1.AgentPackage
			f.admit(time.Hour, 0)
			f.Clusters[0].OnlineSince = noon.Add(-time.Minute)
		},
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
			"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"the agent of a cluster that was offline before is deferred as any other": {
		given: func(f *fixture) {
			f.ro.Spec.Release.Package = v1alpha1.AgentPackage
			f.Clusters[0].Online = false
		},
		want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"back online: the whole time anew": {
		given: func(f *fixture) {
			f.wave(0).MaxConcurrency = number(1)
			f.admit(time.Hour, 0)
			f.Clusters[0].OnlineSince = noon.Add(-time.Minute)
		},
		want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"offline counts as failed where the policy says so": {
		given: func(f *fixture) {
			f.ro.Spec.Strategy.Offline = v1alpha1.OfflineFail
			f.Clusters[1].Online, f.Clusters[3].Online = false, false
			f.Clusters[1].OfflineReason = v1alpha1.ReasonAgentOffline
		},
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: b (AgentOffline); " +
			"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"a person pauses a cluster that failed: the others go on": {
		given: func(f *fixture) {
			f.admit(time.Hour, 0)
			f.Installs[0].Stalled = true
			f.Clusters[0].Paused = true
		},
		want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"retried: one that was updated and is not Ready": {
		given: func(f *fixture) {
			f.ro.Spec.Retries = 1
			f.soaking()
			f.unready(time.Hour, 0)
		},
		want: "Progressing, one Updating, two Waiting, batch a: wave one: 1 of 2 clusters updated, 1 in progress",
	},
	"retried: it has its grace again": {
		given: func(f *fixture) {
			f.ro.Spec.Retries = 1
			f.soaking()
			f.unready(time.Hour, 0)
			f.Installs[0].Stamp.Attempt, f.Installs[0].Stamp.AdmittedAt = 1, noon.Add(-10*time.Second)
		},
		want: "Progressing, one Soaking, two Waiting: wave one: 1 cluster is not Ready (a) and counts as failed " +
			"at 2026-03-01T12:00:50Z unless it recovers; the soak waits meanwhile, 1 of 2 clusters updated",
	},
	"one that hibernates after its update is passed over, whatever the policy for offline ones": {
		given: func(f *fixture) {
			f.ro.Spec.Strategy.Offline = v1alpha1.OfflineFail
			f.succeed(0, 1)
			f.Clusters[1].Online, f.Clusters[1].OfflineReason = false, v1alpha1.ReasonAgentOffline
			f.Clusters[1].Paused, f.Clusters[1].PausedReason = true, v1alpha1.ReasonHibernating
		},
		want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
	},
	"the release is there already": {
		given: func(f *fixture) {
			for i := range 2 {
				f.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "new"}
				f.Installs[i].SucceededHash, f.Installs[i].Ready = "new", true
			}
		},
		want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
	},
	"a cluster that left is removed and holds its slot until its install is gone": {
		given: func(f *fixture) {
			f.wave(0).MaxConcurrency = number(1)
			f.admit(0, 0)
			f.Clusters = f.Clusters[1:]
		},
		want: "Progressing, one Updating, two Waiting: wave one: 0 of 1 cluster updated, 0 in progress",
	},
	"gone": {
		given: func(f *fixture) {
			f.ro.Status.Waves[0].Total = 2
			f.wave(0).MaxConcurrency = number(1)
			f.Clusters, f.Installs = f.Clusters[1:], f.Installs[1:]
		},
		want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 1 cluster updated, 1 in progress",
	},
}

// judgeCases are about when a wave is verified, and what holds it up.
var judgeCases = map[string]decisionCase{
	"a success soaks": {
		given: func(f *fixture) { f.wave(0).Soak.Duration = time.Minute; f.succeed(0, 1) },
		want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:01:00Z: 2 of 2 " +
			"clusters updated",
	},
	"the soak is over: the next wave opens with the next pass": {
		given: func(f *fixture) {
			f.wave(0).Soak.Duration = time.Minute
			f.succeed(0, 1)
			f.ro.Status.Waves[0].UpdatedAt, f.ro.Status.Waves[0].Updated = ago(time.Minute), 2
		},
		want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
	},
	"no wave is verified on a cached view": {
		given: func(f *fixture) { f.Live = false; f.succeed(0, 1) },
		want:  "wants a live view",
	},
	"the next wave": {
		given: func(f *fixture) { f.verified() },
		want: "Progressing, one Verified, two Updating, batch c d: wave two: 0 of 2 clusters updated, 2 in " +
			"progress",
	},
	"all verified": {
		given: func(f *fixture) { f.verified(); f.succeed(2, 3) },
		want:  "Succeeded, one Verified, two Verified: 4 of 4 clusters updated",
	},
	"the policy is abort": {
		given: func(f *fixture) {
			f.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
			f.admit(0, 0)
			f.Installs[0].Stalled = true
		},
		want: "Aborted, one Updating, two Waiting: aborted, as its failure policy says: wave one: 1 cluster " +
			"failed, 0 allowed: a (Stalled)",
	},
	"deferred ones are passed over": {
		given: func(f *fixture) { f.succeed(0); f.Clusters[1].Paused = true },
		want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
	},
	"too many deferred": {
		given: func(f *fixture) {
			f.ro.Spec.Strategy.MaxDeferred = number(0)
			f.succeed(0)
			f.Clusters[1].Paused = true
		},
		want: "Progressing, one Updating, two Waiting: wave one: 1 cluster deferred because offline, " +
			"paused or held back (b); bring them back, take them out of the selection, or raise maxDeferred",
	},
	"clusters that are not Ready any more prove nothing": {
		given: func(f *fixture) {
			f.verified()
			f.Installs[0].Ready, f.Installs[1].Ready = false, false
			f.Clusters[2].Paused, f.Clusters[3].Paused = true, true
		},
		want: "Progressing, one Verified, two Updating: wave two: 2 clusters deferred because offline, " +
			"paused or held back (c, d); bring them back, take them out of the selection, or raise maxDeferred",
	},
	"a late success proves nothing before its soak is over": {
		given: func(f *fixture) { f.succeededLate(20 * time.Second) },
		want: "Progressing, one Verified, two Updating: wave two: 2 clusters deferred because offline, " +
			"paused or held back (c, d); bring them back, take them out of the selection, or raise maxDeferred",
	},
	"a late success whose soak is over": {
		given: func(f *fixture) { f.succeededLate(30 * time.Second) },
		want:  "Succeeded, one Verified, two Verified: 2 of 4 clusters updated, 2 deferred",
	},
	"an offline canary proves nothing": {
		given: func(f *fixture) { f.Clusters[0].Online, f.Clusters[1].Online = false, false },
		want: "Progressing, one Updating, two Waiting: wave one: 2 clusters deferred because offline, " +
			"paused or held back (a, b); bring them back, take them out of the selection, or raise maxDeferred",
	},
	"the last wave waits for nobody": {
		given: func(f *fixture) {
			f.ro.Spec.Strategy.MaxDeferred = number(0)
			f.verified()
			f.Clusters[2].Online, f.Clusters[3].Online = false, false
		},
		want: "Succeeded, one Verified, two Verified: 2 of 4 clusters updated, 2 deferred",
	},
	"a gate": {
		given: func(f *fixture) {
			f.wave(0).Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
		},
		want: "Progressing, one Gated, two Waiting: wave one waits for gate sre: 2 clusters have to be approved",
	},
	"an approval": {
		given: func(f *fixture) {
			f.wave(0).Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
			f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "sre", By: "ann", Reason: "go"}}
		},
		want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in progress",
	},
}

// chooseCases are about which clusters are admitted, and in which order.
var chooseCases = map[string]decisionCase{
	"the first batch is written down, nothing is admitted": {
		given: func(*fixture) {},
		want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
			"progress",
	},
	"what was written down is admitted": {
		given: func(f *fixture) { f.batch(0, "a", "b") },
		want: "Admit a to one, Admit b to one, Progressing, one Updating, two Waiting, batch a b: wave one: 0 " +
			"of 2 clusters updated, 2 in progress",
	},
	"slots": {
		given: func(f *fixture) { f.wave(0).MaxConcurrency = number(1); f.admit(0, 0) },
		want:  "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"retried: the cluster that failed is admitted again": {
		given: func(f *fixture) {
			f.ro.Spec.Retries = 1
			f.admit(time.Hour, 0)
			f.Installs[0].Stalled = true
		},
		want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in progress",
	},
	"retried: it is written down": {
		given: func(f *fixture) {
			f.ro.Spec.Retries = 1
			f.admit(time.Hour, 0, 1)
			f.batch(0, "a")
			f.ro.Status.Batch.Clusters[0].Attempt = 1
			f.Installs[1].SucceededHash, f.Installs[1].Ready = "new", true
		},
		want: "Admit a to one, Progressing, one Updating, two Waiting, batch a: wave one: 1 of 2 clusters " +
			"updated, 1 in progress",
	},
	"retried: once": {
		given: func(f *fixture) {
			f.ro.Spec.Retries = 1
			f.admit(time.Hour, 0)
			f.Installs[0].Stamp.Attempt = 1
		},
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
			"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"retried: not while it is offline": {
		given: func(f *fixture) {
			f.ro.Spec.Retries = 1
			f.admit(time.Hour, 0)
			f.Installs[0].Stalled, f.Clusters[0].Online = true, false
		},
		want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (Stalled); nothing " +
			"more is admitted until it recovers: repair, pause or retry it, or set another version",
	},
	"busy with an older release, moved within its slot": {
		given: func(f *fixture) {
			f.wave(0).MaxConcurrency = number(1)
			f.Installs[1].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "old",
				AdmittedAt: noon.Add(-time.Minute)}
		},
		want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"done with an older release": {
		given: func(f *fixture) {
			f.wave(0).MaxConcurrency = number(1)
			f.Installs[1].Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "old",
				AdmittedAt: noon.Add(-time.Minute)}
			f.Installs[1].SucceededHash = "old"
		},
		want: "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
	},
	"a late joiner joins the first open wave that takes it": {
		given: func(f *fixture) { f.admit(0, 0, 1); f.Clusters = append(f.Clusters, members(5)[4]) },
		want: "Assign e to two, Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in " +
			"progress",
	},
	"late joiners are ignored": {
		given: func(f *fixture) {
			f.ro.Spec.Strategy.LateJoiners = v1alpha1.LateIgnore
			f.admit(0, 0, 1)
			f.Clusters = append(f.Clusters, members(5)[4])
		},
		want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in progress",
	},
	"after the end, within the wave's concurrency": {
		given: func(f *fixture) {
			f.verified()
			f.ro.Status.Waves[1].VerifiedAt = ago(0)
			f.ro.Status.Phase = v1alpha1.RolloutSucceeded
			f.wave(1).MaxConcurrency = number(1)
		},
		want: "Succeeded, one Verified, two Verified, batch c: 2 of 4 clusters updated, 1 in progress, 1 joined " +
			"late and wait for their turn",
	},
}

// recordCases are cases about requests of people, and about the messages that they get.
var recordCases = map[string]decisionCase{
	"paused": {
		given: func(f *fixture) { f.ro.Spec.Paused, f.ro.Spec.PausedReason = true, "lunch"; f.batch(0, "a") },
		want: "Paused, one Updating, two Waiting, batch a: paused: lunch; clusters that were already " +
			"admitted finish their update",
	},
	"paused: what was written down and never done is given up": {
		given: func(f *fixture) {
			f.ro.Spec.Paused, f.ro.Status.Phase = true, v1alpha1.RolloutPaused
			f.batch(time.Minute, "a")
		},
		want: "Paused, one Updating, two Waiting: paused; clusters that were already admitted finish their update",
	},
	"paused: it is kept while a slow hub may still act on it": {
		given: func(f *fixture) {
			f.ro.Spec.Paused, f.ro.Status.Phase = true, v1alpha1.RolloutPaused
			f.batch(rollouts.AdmissionTimeout, "a")
		},
		want: "Paused, one Updating, two Waiting, batch a: paused; clusters that were already " +
			"admitted finish their update",
	},
	"resumed: the status says so before anything is admitted": {
		given: func(f *fixture) { f.ro.Status.Phase = v1alpha1.RolloutPaused; f.batch(0, "a", "b") },
		want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
			"progress",
	},
	"not paused: it is done with a time of its own": {
		given: func(f *fixture) { f.batch(time.Minute, "a", "b") },
		want: "Admit a to one, Admit b to one, Progressing, one Updating, two Waiting, batch a b: wave one: 0 " +
			"of 2 clusters updated, 2 in progress",
	},
	"blocked: nobody else is admitted": {
		given: func(f *fixture) {
			f.ro.Spec.Blocked, f.ro.Spec.Release.Version = "it loses data",
				"1.1.0"
			f.succeed(0)
		},
		want: "Halted, one Updating, two Waiting: 1.1.0 is blocked: it loses data; no other cluster is admitted, 1 " +
			"of 4 clusters updated before; lift the block, or let the ManagedOperator ask " +
			"for another version",
	},
	"blocked: clusters that stop do not abort it": {
		given: func(f *fixture) {
			f.ro.Spec.Blocked, f.ro.Spec.Strategy.OnFailure, f.ro.Spec.Release.Version = "it loses data",
				v1alpha1.FailureAbort, "1.1.0"
			f.admit(0, 0)
			f.Installs[0].Stalled, f.Installs[1].Stalled = true, true
		},
		want: "Halted, one Updating, two Waiting: 1.1.0 is blocked: it loses data; no other cluster is admitted, 0 " +
			"of 4 clusters updated before; lift the block, or let the ManagedOperator ask for " +
			"another version",
	},
	"unblocked: it goes on": {
		given: func(f *fixture) { f.ro.Status.Phase = v1alpha1.RolloutHalted },
		want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
			"progress",
	},
	"aborted": {
		given: func(f *fixture) { f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "no"}; f.admit(0, 0) },
		want:  "Aborted, one Updating, two Waiting: aborted: no",
	},
	"superseded by a person's new target": {
		given: func(f *fixture) {
			f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "1.2.0 is out", Superseded: true}
		},
		want: "Superseded, one Updating, two Waiting: 1.2.0 is out",
	},
	"paused after the end": {
		given: func(f *fixture) {
			f.verified()
			f.ro.Status.Waves[1].VerifiedAt = ago(0)
			f.ro.Status.Phase = v1alpha1.RolloutSucceeded
			f.ro.Spec.Paused, f.ro.Spec.PausedReason = true, "incident"
		},
		want: "Succeeded, one Verified, two Verified: 2 of 4 clusters updated, 2 joined late and wait for their " +
			"turn; paused, and no other cluster is admitted: incident",
	},
	"aborted after the end": {
		given: func(f *fixture) {
			f.verified()
			f.ro.Status.Waves[1].VerifiedAt = ago(0)
			f.ro.Status.Phase = v1alpha1.RolloutSucceeded
			f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "it loses data"}
		},
		want: "Succeeded, one Verified, two Verified: 2 of 4 clusters updated, 2 joined late and wait for their " +
			"turn; aborted since, and no other cluster is admitted: it loses data",
	},
}

// A hub that is slow may have read the entry before the rollout was stopped, so
// its lapse is counted from the stop.
func TestStopRenewsTheBatch(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.ro.Spec.Paused = true
	f.batch(time.Hour, "a")
	stopped := rollouts.Next(f.Input).Status
	if stopped.Phase != v1alpha1.RolloutPaused || stopped.Batch == nil ||
		!stopped.Batch.Clusters[0].AdmittedAt.Time.Equal(noon) {
		t.Errorf("%s, batch %+v", stopped.Phase, stopped.Batch)
	}
}

func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.ro.Status = v1alpha1.OperatorRolloutStatus{}
	f.ro.Spec.Strategy = v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "all",
		MaxConcurrency: percent("100%")}}}
	f.Clusters, f.Installs = nil, nil
	for i := range 3 * rollouts.MaxBatch {
		name := fmt.Sprintf("c%04d", i)
		f.Clusters = append(f.Clusters, rollouts.Cluster{Name: name, Enrolled: true, Online: true})
	}
	d := rollouts.Next(f.Input)
	if len(d.Actions) != rollouts.MaxAssignments || d.RecheckAfter == 0 {
		t.Errorf("%d assignments in one pass, and a recheck after %s", len(d.Actions), d.RecheckAfter)
	}
	for _, c := range f.Clusters {
		f.Installs = append(f.Installs, rollouts.Install{Cluster: c.Name, Rollout: "echo-2", Wave: "all"})
	}
	d = rollouts.Next(f.Input)
	if n := len(d.Status.Batch.Clusters); n != rollouts.MaxBatch {
		t.Errorf("%d clusters in the batch", n)
	}
}

func TestRecheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		given func(*fixture)
		want  time.Duration
	}{
		"nothing but a watch changes it": {given: func(f *fixture) { f.verified(); f.succeed(2, 3) }},
		"the soak's end": {
			given: func(f *fixture) { f.wave(0).Soak.Duration = 7 * time.Minute; f.succeed(0, 1) },
			want:  7 * time.Minute,
		},
		"the end of a grace": {
			given: func(f *fixture) { f.soaking(); f.unready(15*time.Second, 1) },
			want:  45 * time.Second,
		},
		"the first deadline": {
			given: func(f *fixture) { f.admit(10*time.Minute, 0); f.admit(5*time.Minute, 1) },
			want:  20 * time.Minute,
		},
		"windows open": {given: func(f *fixture) { f.close(0, 1) }, want: 8 * time.Hour},
		"windows close": {
			given: func(f *fixture) { f.Clusters[1].OpenUntil = noon.Add(30 * time.Second); f.batch(0, "a", "b") },
			want:  30 * time.Second,
		},
		"a batch entry that should have been seen": {
			given: func(f *fixture) { f.batch(0, "a", "b") },
			want:  2*rollouts.AdmissionTimeout + time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			test.given(f)
			if got := rollouts.Next(f.Input).RecheckAfter; got != test.want {
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
		s := newFixture()
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
func (f *fixture) scramble(rng *rand.Rand) {
	some := func() string { return pick(rng, "", "a", "b", "c", "d", "z") }
	waveName := func() string { return pick(rng, "one", "two", "three", "") }
	for i := range f.Installs {
		install := &f.Installs[i]
		install.Cluster, install.Wave, install.Rollout = some(), waveName(), pick(rng, "echo-2", "echo-1", "")
		install.Stamp = rollouts.Stamp{RolloutUID: pick(rng, "", "uid-1", "uid-2"), Hash: pick(rng, "", "new", "old"),
			AdmittedAt: noon.Add(time.Duration(rng.IntN(7200)-3600) * time.Second), Attempt: rng.Int64N(3)}
		install.SucceededHash = pick(rng, "", "new", "old")
		install.Stalled, install.Deleting, install.Ready = rng.IntN(3) == 0, rng.IntN(5) == 0, rng.IntN(2) == 0
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		c.Name, c.Enrolled, c.Online, c.Paused, c.Deleting = some(), rng.IntN(4) > 0, rng.IntN(3) > 0, rng.IntN(4) == 0,
			rng.IntN(5) == 0
	}
	status := &f.ro.Status
	status.PlanHash, status.ObservedInstalls = pick(rng, "", "frozen"), pick(rng, "", "7", "300", "nonsense")
	status.Phase = pick(rng, "", v1alpha1.RolloutPending, v1alpha1.RolloutSucceeded, v1alpha1.RolloutAborted,
		v1alpha1.RolloutHalted, "Odd")
	f.batch(time.Duration(rng.IntN(120)-30)*time.Second, some(), some())
	for i := range status.Waves {
		w := &status.Waves[i]
		w.Name, w.Phase = waveName(), pick(rng, v1alpha1.WaveWaiting, v1alpha1.WaveVerified, "Odd")
		w.VerifiedAt, w.UpdatedAt = pick(rng, nil, ago(time.Minute)), pick(rng, nil, ago(-time.Minute))
		w.Total, w.Succeeded, w.Updated, w.Failed = rng.Int32N(5), rng.Int32N(5), rng.Int32N(5), rng.Int32N(5)
		w.InterruptedAt = pick(rng, nil, ago(time.Minute))
	}
	status.Unready = []v1alpha1.UnreadyCluster{{Cluster: some(),
		Since: *ago(time.Duration(rng.IntN(200)) * time.Second)}}
	f.ro.Spec.Retries = rng.Int64N(3)
	strategy := &f.ro.Spec.Strategy
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
	f.ro.Spec.Paused, f.ro.Spec.Blocked = rng.IntN(4) == 0, pick(rng, "", "", "", "bad")
	f.ro.Spec.Abort = pick(rng, nil, nil, &v1alpha1.RolloutAbort{})
}
