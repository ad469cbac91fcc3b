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

var opens = noon.Add(8 * time.Hour)

// close closes the windows of clusters until the evening.
func (f *fixture) close(clusters ...int) {
	for _, i := range clusters {
		f.Clusters[i].Holds = append(f.Clusters[i].Holds,
			rollouts.Hold{Reason: v1alpha1.ReasonWindowClosed, Message: "outside of ChangeWindow nights", Until: opens})
	}
}

// refuse makes the owners of clusters refuse changes.
func (f *fixture) refuse(clusters ...int) {
	for _, i := range clusters {
		f.Clusters[i].Holds = append(f.Clusters[i].Holds,
			rollouts.Hold{Reason: v1alpha1.ReasonVetoed, Message: "not now", Defers: true})
	}
}

// freeze has a FleetFreeze stop all changes on clusters.
func (f *fixture) freeze(clusters ...int) {
	for _, i := range clusters {
		f.Clusters[i].Holds = append(f.Clusters[i].Holds,
			rollouts.Hold{Reason: v1alpha1.ReasonFrozen, Message: "frozen"})
	}
}

// back changes the rollout to a rollback of a release that succeeded on its clusters.
func (f *fixture) back() {
	f.ro.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-1", UID: "uid-1"}
	for i := range f.Installs {
		f.Installs[i].Stamp, f.Installs[i].SucceededHash = rollouts.Stamp{RolloutUID: "uid-1", Hash: "bad"}, "bad"
		f.Installs[i].Previous = before("1.1.0")
	}
}

func (f *fixture) held(ago time.Duration, clusters ...string) {
	f.batch(ago, clusters...)
	for i := range f.ro.Status.Batch.Clusters {
		f.ro.Status.Batch.Clusters[i].Held = true
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	const waits = "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 0 in progress; 2 " +
		"clusters not admitted now (a, b): outside of ChangeWindow nights"
	checkDecisions(t, map[string]decisionCase{
		"closed windows": {given: func(f *fixture) { f.close(0, 1) }, want: waits},
		"one is frozen, and of the other the windows are closed": {
			given: func(f *fixture) { f.freeze(0); f.close(1) },
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 0 in progress; 1 " +
				"cluster not admitted now (a): frozen; 1 cluster not admitted now (b): outside of ChangeWindow nights",
		},
		"the others go on": {
			given: func(f *fixture) { f.close(0) },
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in " +
				"progress; 1 cluster not admitted now (a): outside of ChangeWindow nights",
		},
		"a person has overridden them": {
			given: func(f *fixture) {
				f.close(0, 1)
				f.ro.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "emergency"}
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"a rollback does not wait for them": {
			given: func(f *fixture) { f.close(0, 1); f.back() },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"what was written down and not admitted is not admitted": {
			given: func(f *fixture) { f.batch(0, "a", "b"); f.close(0) },
			want: "Admit b to one, Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters " +
				"updated, 2 in progress",
		},
		"clusters that were already admitted finish their update": {
			given: func(f *fixture) { f.admit(time.Minute, 0); f.close(0, 1) },
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress; 1 " +
				"cluster not admitted now (b): outside of ChangeWindow nights",
		},
		"an entry that is held is looked up once it is in doubt": {
			given: func(f *fixture) { f.held(41*time.Second, "a"); f.close(0); f.Live = false },
			want:  "wants a live view",
		},
		"and is dropped then: its slot is free": {
			given: func(f *fixture) {
				f.wave(0).MaxConcurrency = number(1)
				f.held(41*time.Second, "a")
				f.close(0)
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in " +
				"progress; 1 cluster not admitted now (a): outside of ChangeWindow nights",
		},
		"but not before": {
			given: func(f *fixture) {
				f.wave(0).MaxConcurrency = number(1)
				f.held(39*time.Second, "a")
				f.close(0)
			},
			want: "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"an entry that keeps its place": {
			given: func(f *fixture) {
				f.held(time.Hour, "a")
				f.close(0, 1)
				f.Clusters[0].Holds[0].KeepsEntry = true
			},
			want: "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in " +
				"progress; 1 cluster not admitted now (b): outside of ChangeWindow nights",
		},
		"an entry is not acted on in the pass in which its hold ends": {
			given: func(f *fixture) { f.held(39*time.Second, "a") },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"a freeze holds a rollback back too, and an override does not help": {
			given: func(f *fixture) {
				f.freeze(0, 1)
				f.back()
				f.ro.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "emergency"}
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 0 in progress; 2 " +
				"clusters not admitted now (a, b): frozen",
		},
		"a freeze of what was written down": {
			given: func(f *fixture) { f.batch(0, "a", "b"); f.freeze(0, 1) },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"what was being installed when it was frozen does not fail, and keeps its slot": {
			given: func(f *fixture) {
				f.wave(0).MaxConcurrency = number(1)
				f.admit(24*time.Hour, 0)
				f.freeze(0)
				f.Clusters[0].FrozenSince = noon.Add(-24*time.Hour + time.Minute)
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"what had failed before has failed": {
			given: func(f *fixture) {
				f.admit(24*time.Hour, 0)
				f.freeze(0)
				f.Clusters[0].FrozenSince = noon.Add(-time.Hour)
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"the time of a freeze does not count": {
			given: func(f *fixture) {
				f.admit(24*time.Hour, 0)
				f.Clusters[0].FrozenBefore = []rollouts.Period{{Since: noon.Add(-24*time.Hour + time.Minute),
					EndedAt: noon.Add(-time.Minute)}}
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"nor does that of two freezes with a pause": {
			given: func(f *fixture) {
				f.admit(24*time.Hour, 0)
				f.Clusters[0].FrozenBefore = []rollouts.Period{
					{Since: noon.Add(-24*time.Hour + time.Minute), EndedAt: noon.Add(-2 * time.Hour)},
					{Since: noon.Add(-2*time.Hour + time.Minute), EndedAt: noon.Add(-time.Minute)}}
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"nor does it help what had failed before": {
			given: func(f *fixture) {
				f.admit(24*time.Hour, 0)
				f.Clusters[0].FrozenBefore = []rollouts.Period{
					{Since: noon.Add(-time.Hour), EndedAt: noon.Add(-time.Minute)}}
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (DeadlineExceeded); " +
				"nothing more is admitted until it recovers: repair, pause or retry it, or set another version",
		},
		"vetoes defer": {
			given: func(f *fixture) { f.refuse(0); f.succeed(1) },
			want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"a canary that was vetoed proves nothing": {
			given: func(f *fixture) { f.refuse(0, 1) },
			want: "Progressing, one Updating, two Waiting: wave one: 2 clusters deferred because offline, paused or " +
				"held back (a, b); bring them back, take them out of the selection, or raise maxDeferred",
		},
		"a rollback waits for another change of the cluster": {
			given: func(f *fixture) {
				f.back()
				f.Clusters[0].Holds = []rollouts.Hold{{Reason: v1alpha1.ReasonClusterBusy, Message: "busy"}}
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in " +
				"progress; 1 cluster not admitted now (a): busy",
		},
		"and never ignores a veto": {
			given: func(f *fixture) { f.back(); f.refuse(0) },
			want:  "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"a closed cluster that is to be tried again waits, and others for it": {
			given: func(f *fixture) {
				f.admit(30*time.Minute, 0)
				f.ro.Spec.Retries = 1
				f.close(0)
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 0 in progress",
		},
	})
}

func TestHeldBackIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.close(0, 1, 2) // c is in a wave that has not come
	d := rollouts.Next(f.Input)
	want := []v1alpha1.HeldBackClusters{{Reason: v1alpha1.ReasonWindowClosed, Message: "outside of ChangeWindow nights",
		Count: 2, Clusters: []string{"a", "b"}, Until: &metav1.Time{Time: opens}}}
	if diff := cmp.Diff(want, d.Status.HeldBack); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}
	if d.Reason != v1alpha1.ReasonWindowClosed || d.Standing != rollouts.Underway {
		t.Errorf("reason %s, standing %d", d.Reason, d.Standing)
	}
	if d.RecheckAfter != opens.Sub(noon) {
		t.Errorf("recheck after %s, want when the windows open", d.RecheckAfter)
	}
	// A reader of the status gets the same classes of the clusters as the hub.
	f.ro.Status, f.Clusters[0].Holds, f.Clusters[1].Holds, f.Clusters[2].Holds = d.Status, nil, nil, nil
	members, err := rollouts.Classify(f.Input)
	if err != nil {
		t.Fatal(err)
	}
	if m := members[0]; m.Class != rollouts.ClassPending || m.Reason != v1alpha1.ReasonWindowClosed ||
		m.Message != want[0].Message || !m.Until.Equal(opens) {
		t.Errorf("member %+v", m)
	}
}

// An admission must not be carried out once the window has closed, and the planner
// looks again then.
func TestWindowThatCloses(t *testing.T) {
	t.Parallel()
	closes := noon.Add(5 * time.Second)
	f := newFixture()
	f.batch(0, "a", "b")
	f.Clusters[0].OpenUntil = closes
	d := rollouts.Next(f.Input)
	var got []metav1.Time
	for _, a := range d.Actions {
		got = append(got, a.NotAfter)
	}
	if diff := cmp.Diff([]metav1.Time{{Time: closes}, {}}, got); diff != "" {
		t.Errorf("not after (-want +got):\n%s", diff)
	}
	if d.RecheckAfter != closes.Sub(noon) {
		t.Errorf("recheck after %s", d.RecheckAfter)
	}
}

// refuseWrites makes the API server refuse writes to clusters.
func (f *fixture) refuseWrites(clusters ...int) {
	for _, i := range clusters {
		f.Clusters[i].Holds = []rollouts.Hold{{Reason: v1alpha1.ReasonClusterNotWritable, Message: "quota exceeded",
			Until: noon.Add(time.Minute), Defers: true}}
	}
}

// unplanned makes the rollout new: only some clusters have their wave.
func (f *fixture) unplanned(placed ...int) {
	f.ro.Status = v1alpha1.OperatorRolloutStatus{}
	all := f.Installs
	f.Installs = nil
	for _, i := range placed {
		f.Installs = append(f.Installs, all[i])
	}
}

func TestClustersThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	checkDecisions(t, map[string]decisionCase{
		"planning leaves them out": {
			given: func(f *fixture) { f.unplanned(); f.refuseWrites(3) },
			want: "Assign a to one, Assign b to one, Assign c to two, Pending: freezing the membership: 0 of 4 " +
				"clusters assigned to a wave; 1 cluster cannot be written to (d): quota exceeded",
		},
		"and does not wait for them": {
			given: func(f *fixture) { f.unplanned(0, 1, 2); f.refuseWrites(3) },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"there are no others": {
			given: func(f *fixture) { f.unplanned(); f.refuseWrites(0, 1, 2, 3) },
			want: "Pending: the rollout cannot start on any cluster: 4 clusters cannot be written to (a, b, c, d): " +
				"quota exceeded",
		},
		"for different reasons": {
			given: func(f *fixture) {
				f.unplanned()
				f.refuseWrites(0, 1, 2, 3)
				f.Clusters[1].Holds[0].Message = "the namespace is being deleted"
			},
			want: "Pending: the rollout cannot start on any cluster: 3 clusters cannot be written to (a, c, d): " +
				"quota exceeded; 1 cluster cannot be written to (b): the namespace is being deleted",
		},
		"late joiners": {
			given: func(f *fixture) { f.Installs = f.Installs[:3]; f.batch(0, "a"); f.refuseWrites(3) },
			want: "Admit a to one, Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters " +
				"updated, 2 in progress",
		},
		"a member of the only slot keeps it while a hub may still act on its entry": {
			given: func(f *fixture) { f.wave(0).MaxConcurrency = number(1); f.batch(0, "a"); f.refuseWrites(0) },
			want:  "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"and loses it then": {
			given: func(f *fixture) {
				f.wave(0).MaxConcurrency = number(1)
				f.batch(2*rollouts.AdmissionTimeout+time.Second, "a")
				f.ro.Status.Batch.Clusters[0].Held = true
				f.refuseWrites(0)
			},
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters updated, 1 in progress",
		},
	})
}

// A cluster without an OperatorInstall is no member, and is reported all the same.
func TestClusterThatCannotBeWrittenIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.Installs = f.Installs[:3]
	f.refuseWrites(0, 3)
	d := rollouts.Next(f.Input)
	want := []v1alpha1.HeldBackClusters{{Reason: v1alpha1.ReasonClusterNotWritable, Message: "quota exceeded",
		Deferred: true, Count: 2, Clusters: []string{"a", "d"}, Until: &metav1.Time{Time: noon.Add(time.Minute)}}}
	if diff := cmp.Diff(want, d.Status.HeldBack); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}
	if d.RecheckAfter != time.Minute {
		t.Errorf("recheck after %s, want when the writes are tried again", d.RecheckAfter)
	}
}
