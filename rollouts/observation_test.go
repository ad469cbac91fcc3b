// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// remove takes clusters out of the fleet.
func (f *fixture) remove(clusters ...int) {
	for _, i := range clusters {
		f.Clusters[i].Deleting = true
	}
}

// fails lets clusters fail, and permits that.
func (f *fixture) fails(clusters ...int) {
	f.wave(0).MaxFailures = number(2)
	f.admit(time.Minute, clusters...)
	for _, i := range clusters {
		f.Installs[i].Stalled = true
	}
}

// had makes the first wave planned with two clusters, of which the first clusters are updated since a time.
func (f *fixture) had(updated int32, since time.Duration) {
	f.ro.Spec.Release.Version = "1.2.0"
	f.ro.Status.Waves[0].Total, f.ro.Status.Waves[0].Updated = 2, updated
	if updated > 0 {
		f.ro.Status.Waves[0].UpdatedAt = ago(since)
	}
}

const advice = "; the rollout continues once a cluster of the wave runs it, or if you override gate " +
	"bellwether/observation with `bellwether rollout override echo-2 --wave one --gate bellwether/observation " +
	"--reason TEXT`"

// TestNothingObservedIsNotVerified: a wave that had clusters is verified by what one of them showed, or by a person.
func TestNothingObservedIsNotVerified(t *testing.T) {
	t.Parallel()
	soak := &metav1.Duration{Duration: time.Hour}
	checkDecisions(t, map[string]decisionCase{
		"every cluster leaves before it is admitted": {
			given: func(f *fixture) { f.had(0, 0); f.remove(0, 1) },
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave is " +
				"left to show that 1.2.0 works: 2 clusters left the fleet or the selection before the wave was " +
				"verified" + advice,
		},
		"the only cluster leaves in the soak": {
			given: func(f *fixture) {
				f.had(1, time.Minute)
				f.ro.Status.Waves[0].Total, f.wave(0).Soak = 1, soak
				f.succeed(0)
				f.remove(0)
				f.Installs[1].Wave = "two"
			},
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave is " +
				"left to show that 1.2.0 works: 1 cluster left the fleet or the selection before the wave was " +
				"verified" + advice,
		},
		"the soak is over when they leave, and there is an approval": {
			given: func(f *fixture) {
				f.had(2, 2*time.Hour)
				f.wave(0).Soak, f.wave(0).Gates = soak, goGate()
				f.succeed(0, 1)
				f.remove(0, 1)
			},
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave is " +
				"left to show that 1.2.0 works: 2 clusters left the fleet or the selection before the wave was " +
				"verified" + advice,
		},
		"every cluster fails, as is permitted": {
			given: func(f *fixture) { f.had(0, 0); f.fails(0, 1) },
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave was " +
				"observed to run 1.2.0: 2 clusters failed, as maxFailures permits" + advice,
		},
		"one fails, as is permitted, and the other one leaves": {
			given: func(f *fixture) { f.had(0, 0); f.fails(0); f.remove(1) },
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave was " +
				"observed to run 1.2.0: 1 cluster left the fleet or the selection before that, 1 cluster failed, " +
				"as maxFailures permits" + advice,
		},
		"one fails, as is permitted, and the other one shows that it works": {
			given: func(f *fixture) { f.had(1, time.Minute); f.fails(0); f.succeed(1) },
			want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"one leaves, and the other one shows that it works": {
			given: func(f *fixture) { f.had(1, time.Minute); f.succeed(0); f.remove(1) },
			want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"more fail than may: halted": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.fails(0)
				f.wave(0).MaxFailures = number(0)
				f.remove(1)
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (Stalled); nothing " +
				"more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"they come back": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.ro.Status.Waves[0].Phase = v1alpha1.WaveVerifying
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"all are offline: deferred, as before": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.Clusters[0].Online, f.Clusters[1].Online = false, false
			},
			want: "Progressing, one Updating, two Waiting: wave one: 2 clusters deferred because offline, paused or " +
				"held back (a, b); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"the last wave too": {
			given: func(f *fixture) {
				f.verified()
				f.ro.Spec.Release.Version = "1.2.0"
				f.ro.Status.Waves[1].Total = 2
				f.remove(2, 3)
			},
			want: "Progressing, one Verified, two Verifying: wave two is not verified: no cluster of the wave is " +
				"left to show that 1.2.0 works: 2 clusters left the fleet or the selection before the wave was " +
				"verified" + strings.ReplaceAll(advice, "--wave one", "--wave two"),
		},
		"a person overrides it": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.remove(0, 1)
				f.wave(0).Gates = append(goGate(), queryGate())
				f.ro.Spec.Strategy = rollouts.Defaulted(f.ro.Spec.Strategy)
				f.override("one", v1alpha1.GateObservation)
			},
			want: "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"an override of another gate is none of this one": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.remove(0, 1)
				f.override("one", "go")
				f.override("two", v1alpha1.GateObservation)
			},
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave is " +
				"left to show that 1.2.0 works: 2 clusters left the fleet or the selection before the wave was " +
				"verified" + advice,
		},
		"not on a cached view": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.Live = false
				f.remove(0, 1)
				f.override("one", v1alpha1.GateObservation)
			},
			want: "wants a live view",
		},
		"a rollback does not wait for it": {
			given: func(f *fixture) {
				f.had(0, 0)
				f.back()
				f.ro.Status.Waves[1].Total = 2
				f.remove(0, 1, 2, 3)
			},
			want: "Progressing, one Verified, two Waiting: wave two: 0 of 0 clusters updated, 0 in progress",
		},
	})
}

// TestObservationGate checks that the gate is in the status with its evidence while it blocks the wave, and then with
// the person who overrode it. It replaces gates that have no cluster to judge.
func TestObservationGate(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.had(0, 0)
	f.remove(0, 1)
	f.wave(0).Gates = []v1alpha1.Gate{queryGate()}
	f.ro.Spec.Strategy = rollouts.Defaulted(f.ro.Spec.Strategy)
	d := f.next()
	if d.Standing != rollouts.Stuck || d.Reason != v1alpha1.ReasonNotObserved {
		t.Errorf("it is %v, %s", d.Standing, d.Reason)
	}
	got := d.Status.Waves[0].Gates[len(d.Status.Waves[0].Gates)-1]
	want := v1alpha1.GateStatus{Name: "bellwether/observation", Verdict: v1alpha1.GateWaiting, WaitingSince: ago(0),
		Evidence: "no cluster of the wave is left to show that 1.2.0 works: 2 clusters left the fleet or the " +
			"selection before the wave was verified"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gate (-want +got):\n%s", diff)
	}
	if other := d.Status.Waves[0].Gates[0]; other.Name != "query" || other.WaitingSince != nil {
		t.Errorf("another gate waits: %+v", other)
	}
	f.Now = f.Now.Add(time.Minute)
	if again := f.next().Status.Waves[0].Gates[1]; !again.WaitingSince.Equal(ago(0)) {
		t.Errorf("it waits since %s", again.WaitingSince)
	}
	f.override("one", v1alpha1.GateObservation)
	for range 2 { // also once the wave is verified
		w := f.next().Status.Waves[0]
		if g := w.Gates[len(w.Gates)-1]; w.Phase != v1alpha1.WaveVerified || g.Verdict != v1alpha1.GateOverridden ||
			!strings.Contains(g.Evidence, "the gate had no verdict: no cluster of the wave is left") {
			t.Errorf("%s: %+v", w.Phase, g)
		}
	}
}

// TestSkippedWaves: a wave that never had a cluster is passed over, with its approval, soak and gates.
func TestSkippedWaves(t *testing.T) {
	t.Parallel()
	// empty leaves the first wave without a cluster.
	empty := func(f *fixture) {
		f.wave(0).Gates, f.wave(0).Soak = append(goGate(), queryGate()), &metav1.Duration{Duration: time.Hour}
		f.wave(0).Selector = selector("tier", "none", metav1.LabelSelectorOpIn)
		f.ro.Spec.Strategy = rollouts.Defaulted(f.ro.Spec.Strategy)
		f.Installs, f.Clusters = f.Installs[2:], f.Clusters[2:]
	}
	skipped := func(f *fixture) {
		empty(f)
		f.ro.Status.Waves[0] = v1alpha1.WaveStatus{Name: "one", Phase: v1alpha1.WaveSkipped}
	}
	// late lets a cluster join the first wave.
	late := func(f *fixture) {
		skipped(f)
		f.Clusters = append(f.Clusters, rollouts.Cluster{Name: "e", Enrolled: true, Online: true,
			Labels: map[string]string{"tier": "none"}})
	}
	checkDecisions(t, map[string]decisionCase{
		"it is skipped": {
			given: empty,
			want:  "Progressing, one Skipped, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"not on a cached view": {
			given: func(f *fixture) { empty(f); f.Live = false },
			want:  "wants a live view",
		},
		"the next wave follows": {
			given: skipped,
			want: "Progressing, one Skipped, two Updating, batch c d: wave two: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"all others are verified": {
			given: func(f *fixture) { skipped(f); f.succeed(0, 1) },
			want:  "Succeeded, one Skipped, two Verified: 2 of 2 clusters updated",
		},
		"not while its first cluster joins": {
			given: func(f *fixture) {
				late(f)
				f.ro.Status.Waves[0].Phase = v1alpha1.WaveWaiting
				f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "go", By: "ann", Reason: "fine"}}
			},
			want: "Assign e to one, Progressing, one Updating, two Waiting: wave one: 0 of 0 clusters updated, 0 in " +
				"progress",
		},
		"nor while its first cluster waits for an approval": {
			given: func(f *fixture) { late(f); f.ro.Status.Waves[0].Phase = v1alpha1.WaveWaiting },
			want: "Assign e to one, Progressing, one Gated, two Waiting: wave one waits for gate go: 1 cluster has " +
				"to be approved",
		},
		"a cluster that joins it later changes nothing for the others": {
			given: late,
			want: "Assign e to one, Progressing, one Skipped, two Updating, batch c d: wave two: 0 of 2 clusters " +
				"updated, 2 in progress",
		},
		"a cluster that joined it later needs the approval": {
			given: func(f *fixture) {
				late(f)
				f.Installs = append(f.Installs, rollouts.Install{Cluster: "e", Rollout: "echo-2", Wave: "one"})
			},
			want: "Progressing, one Skipped, two Updating, batch c d: wave two: 0 of 2 clusters updated, 2 in progress",
		},
		"a cluster that joined it later is admitted": {
			given: func(f *fixture) {
				late(f)
				f.Installs = append(f.Installs, rollouts.Install{Cluster: "e", Rollout: "echo-2", Wave: "one"})
				f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "go", By: "ann", Reason: "fine"}}
			},
			want: "Progressing, one Skipped, two Updating, batch c d e: wave two: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
	})
	f := newFixture()
	empty(f)
	if w := f.next().Status.Waves[0]; len(w.Gates) != 0 || w.VerifiedAt != nil {
		t.Errorf("the wave is skipped, and has gates or a time: %+v", w)
	}
	f = newFixture()
	late(f)
	f.Installs = append(f.Installs, rollouts.Install{Cluster: "e", Rollout: "echo-2", Wave: "one"})
	if w := f.next().Status.Waves[0]; len(w.Gates) != 1 || w.Gates[0].WaitingSince == nil {
		t.Errorf("nobody is told that an approval is missing: %+v", w.Gates)
	}
}

// TestReservedGate: a policy from before the gate cannot take its place.
func TestReservedGate(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.had(0, 0)
	f.remove(0, 1)
	gate := v1alpha1.Gate{Name: "observation", Approval: &v1alpha1.ApprovalGate{}}
	f.bindTo(v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{gate}})
	f.Policies[0].Name = "bellwether"
	f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: v1alpha1.GateObservation, By: "ann", Reason: "fine"}}
	d := f.next()
	if !strings.Contains(d.Status.Message, "a RolloutPolicy adds gate bellwether/observation, which is the name of "+
		"a gate") {
		t.Errorf("the message is %q", d.Status.Message)
	}
	w := d.Status.Waves[0]
	if len(w.Gates) != 1 || w.Phase == v1alpha1.WaveVerified {
		t.Errorf("the wave is %s with %+v", w.Phase, w.Gates)
	}
}
