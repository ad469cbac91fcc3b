// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func named(name string) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: "ops", Name: name}
}

// fixture is cluster a, which the newest rollout of operator echo admitted a minute
// ago. Its deadline is 10 minutes, and its grace 2.
type fixture struct {
	rollout v1alpha1.OperatorRollout
	install v1alpha1.OperatorInstall
	cluster rollouts.Cluster
}

func newFixture() *fixture {
	f := &fixture{cluster: rollouts.Cluster{Name: "a", Online: true}}
	f.rollout.Namespace, f.rollout.Name, f.rollout.UID = "ops", "echo-2", "uid-2"
	f.rollout.Spec.Operator.Name = "echo"
	f.rollout.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "all",
		Deadline:     &metav1.Duration{Duration: 10 * time.Minute},
		UnreadyGrace: &metav1.Duration{Duration: 2 * time.Minute}}}
	f.install.Name, f.install.Spec.Cluster, f.install.Spec.Operator = "ops.echo", "a", named("echo")
	f.admit(time.Minute)
	return f
}

func (f *fixture) admit(ago time.Duration) {
	f.install.Spec.Admission = &v1alpha1.Admission{Rollout: "echo-2", RolloutUID: "uid-2", Wave: "all", Hash: "new",
		AdmittedAt: metav1.Time{Time: noon.Add(-ago)}}
}

// succeed has the agent report a success, by its clock.
func (f *fixture) succeed(at time.Time) {
	f.install.Status.SucceededHash, f.install.Status.SucceededAt = "new", &metav1.Time{Time: at}
}

// decide writes a batch entry and nothing else.
func (f *fixture) decide(ago time.Duration) {
	f.install.Spec.Admission = nil
	f.rollout.Status.Batch = &v1alpha1.AdmissionBatch{Clusters: []v1alpha1.BatchEntry{{Cluster: "a", Wave: "all",
		AdmittedAt: metav1.Time{Time: noon.Add(-ago)}}}}
}

func (f *fixture) changes(self string) holds.Changes {
	return holds.ReadChanges(noon, named(self), []v1alpha1.OperatorRollout{f.rollout},
		[]v1alpha1.OperatorInstall{f.install}, map[string]rollouts.Cluster{"a": f.cluster})
}

func TestOneChangeAtATime(t *testing.T) {
	const changed = "operator ops/echo is being changed there by rollout echo-2"
	busy := func(message string, in time.Duration, keeps bool) *rollouts.Hold {
		return &rollouts.Hold{Reason: v1alpha1.ReasonClusterBusy, Message: message, Until: noon.Add(in),
			KeepsEntry: keeps}
	}
	tests := map[string]struct {
		given func(*fixture)
		self  string
		want  *rollouts.Hold
	}{
		"from its admission to its deadline": {given: func(*fixture) {}, want: busy(changed, 9*time.Minute, false)},
		"its deadline has passed":            {given: func(f *fixture) { f.admit(10 * time.Minute) }},
		"its agent is offline":               {given: func(f *fixture) { f.cluster.Online = false }},
		"it was offline: the deadline begins anew": {
			given: func(f *fixture) { f.admit(time.Hour); f.cluster.OnlineSince = noon.Add(-time.Minute) },
			want:  busy(changed, 9*time.Minute, false),
		},
		"it failed": {given: func(f *fixture) {
			f.install.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled,
				Status: metav1.ConditionTrue}}
		}},
		"it succeeded: the grace": {
			given: func(f *fixture) { f.succeed(noon.Add(-30 * time.Second)) },
			want:  busy(changed, 90*time.Second, false),
		},
		"the grace is over": {
			given: func(f *fixture) { f.admit(5 * time.Minute); f.succeed(noon.Add(-2 * time.Minute)) },
		},
		"the agent's clock is late: the grace begins with the admission": {
			given: func(f *fixture) { f.succeed(noon.Add(-time.Hour)) },
			want:  busy(changed, time.Minute, false),
		},
		"the agent's clock is early: the grace ends at most after the deadline": {
			given: func(f *fixture) { f.succeed(noon.Add(100 * time.Hour)) },
			want:  busy(changed, 11*time.Minute, false),
		},
		"the agent reports no time": {
			given: func(f *fixture) { f.succeed(noon); f.install.Status.SucceededAt = nil },
			want:  busy(changed, time.Minute, false),
		},
		"its rollout is gone: the defaults": {
			given: func(f *fixture) { f.rollout.UID = "other" },
			want:  busy(changed, 29*time.Minute, false),
		},
		"it was never admitted":     {given: func(f *fixture) { f.install.Spec.Admission = nil }},
		"it is the operator itself": {given: func(*fixture) {}, self: "echo"},
		"its admission is decided: it comes first by its name": {
			given: func(f *fixture) { f.decide(10 * time.Second) },
			want:  busy("operator ops/echo is to be changed there by rollout echo-2", 31*time.Second, false),
		},
		"and yields by its name": {
			given: func(f *fixture) { f.decide(10 * time.Second) }, self: "alpha",
			want: busy("operator ops/echo is to be changed there by rollout echo-2", 31*time.Second, true),
		},
		"an entry whose stamp is seen": {
			given: func(f *fixture) { f.decide(0); f.admit(10 * time.Minute) },
		},
		"an entry of the next attempt": {
			given: func(f *fixture) {
				f.decide(0)
				f.rollout.Status.Batch.Clusters[0].Attempt = 1
				f.admit(10 * time.Minute)
			},
			want: busy("operator ops/echo is to be changed there by rollout echo-2", 41*time.Second, false),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			test.given(f)
			self := "zeta"
			if test.self != "" {
				self = test.self
			}
			if diff := cmp.Diff(test.want, f.changes(self).FindBusyHold("a", named(self), 1)); diff != "" {
				t.Errorf("hold (-want +got):\n%s", diff)
			}
			if got := f.changes(self).FindBusyHold("b", named(self), 1); got != nil {
				t.Errorf("another cluster: %+v", got)
			}
		})
	}
}

func TestMoreChangesAtATime(t *testing.T) {
	f := newFixture()
	other := *newFixture()
	other.install.Name, other.install.Spec.Operator = "ops.mid", named("mid")
	changes := holds.ReadChanges(noon, named("zeta"), []v1alpha1.OperatorRollout{f.rollout},
		[]v1alpha1.OperatorInstall{f.install, other.install}, map[string]rollouts.Cluster{"a": f.cluster})
	for limit, want := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		if got := changes.FindBusyHold("a", named("zeta"), limit) != nil; got != want {
			t.Errorf("busy with a limit of %d: %t", limit, got)
		}
	}
}

// TestChangeKeysFindAllChanges compares the changes that the keys find with the changes of all installs, for any times
// that agents report.
func TestChangeKeysFindAllChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
	changing := 0
	for range 20000 {
		f := newFixture()
		f.rollout.Spec.Strategy.Waves[0].UnreadyGrace.Duration = between(0, 3*time.Hour)
		f.rollout.Spec.Strategy.Waves[0].Deadline.Duration = between(time.Minute, 90*time.Hour)
		f.admit(between(0, 100*time.Hour))
		if rng.IntN(3) > 0 {
			f.succeed(noon.Add(between(-110*time.Hour, 60*time.Hour)))
		}
		if rng.IntN(4) == 0 {
			f.cluster.OnlineSince = noon.Add(-between(0, 50*time.Hour))
		}
		all := f.changes("other")
		if len(all) == 0 {
			continue
		}
		changing++
		keys := holds.ChangeKeys(noon, []v1alpha1.OperatorRollout{f.rollout})
		if !slices.Contains(keys, holds.ChangeKey(&f.install)) {
			t.Fatalf("key %s of an install that is changing is not in %v", holds.ChangeKey(&f.install), keys)
		}
	}
	if changing < 1000 {
		t.Errorf("only %d installs were changing", changing)
	}
	settled := newFixture()
	settled.admit(50 * time.Hour)
	settled.succeed(noon.Add(-40 * time.Hour))
	if key := holds.ChangeKey(&settled.install); slices.Contains(holds.ChangeKeys(noon, nil), key) {
		t.Errorf("an install that succeeded long ago is looked at: %s", key)
	}
}
