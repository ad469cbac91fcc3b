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

// scene is cluster a, which the newest rollout of operator echo admitted a minute
// ago. Its deadline is 10 minutes, and its grace 2.
type scene struct {
	rollout v1alpha1.OperatorRollout
	install v1alpha1.OperatorInstall
	cluster rollouts.Cluster
}

func newScene() *scene {
	s := &scene{cluster: rollouts.Cluster{Name: "a", Online: true}}
	s.rollout.Namespace, s.rollout.Name, s.rollout.UID = "ops", "echo-2", "uid-2"
	s.rollout.Spec.Operator.Name = "echo"
	s.rollout.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "all",
		Deadline:     &metav1.Duration{Duration: 10 * time.Minute},
		UnreadyGrace: &metav1.Duration{Duration: 2 * time.Minute}}}
	s.install.Name, s.install.Spec.Cluster, s.install.Spec.Operator = "ops.echo", "a", named("echo")
	s.admit(time.Minute)
	return s
}

func (s *scene) admit(ago time.Duration) {
	s.install.Spec.Admission = &v1alpha1.Admission{Rollout: "echo-2", RolloutUID: "uid-2", Wave: "all", Hash: "new",
		AdmittedAt: metav1.Time{Time: noon.Add(-ago)}}
}

// succeed has the agent report a success, by its clock.
func (s *scene) succeed(at time.Time) {
	s.install.Status.SucceededHash, s.install.Status.SucceededAt = "new", &metav1.Time{Time: at}
}

// decide writes a batch entry and nothing else.
func (s *scene) decide(ago time.Duration) {
	s.install.Spec.Admission = nil
	s.rollout.Status.Batch = &v1alpha1.AdmissionBatch{Clusters: []v1alpha1.BatchEntry{{Cluster: "a", Wave: "all",
		AdmittedAt: metav1.Time{Time: noon.Add(-ago)}}}}
}

func (s *scene) changes(self string) holds.Changes {
	return holds.ReadChanges(noon, named(self), []v1alpha1.OperatorRollout{s.rollout},
		[]v1alpha1.OperatorInstall{s.install}, map[string]rollouts.Cluster{"a": s.cluster})
}

func TestOneChangeAtATime(t *testing.T) {
	const changed = "operator ops/echo is being changed there by rollout echo-2"
	busy := func(message string, in time.Duration, keeps bool) *rollouts.Hold {
		return &rollouts.Hold{Reason: v1alpha1.ReasonClusterBusy, Message: message, Until: noon.Add(in),
			KeepsEntry: keeps}
	}
	tests := map[string]struct {
		given func(*scene)
		self  string
		want  *rollouts.Hold
	}{
		"from its admission to its deadline": {given: func(*scene) {}, want: busy(changed, 9*time.Minute, false)},
		"its deadline has passed":            {given: func(s *scene) { s.admit(10 * time.Minute) }},
		"its agent is offline":               {given: func(s *scene) { s.cluster.Online = false }},
		"it was offline: the deadline begins anew": {
			given: func(s *scene) { s.admit(time.Hour); s.cluster.OnlineSince = noon.Add(-time.Minute) },
			want:  busy(changed, 9*time.Minute, false),
		},
		"it failed": {given: func(s *scene) {
			s.install.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled,
				Status: metav1.ConditionTrue}}
		}},
		"it succeeded: the grace": {
			given: func(s *scene) { s.succeed(noon.Add(-30 * time.Second)) },
			want:  busy(changed, 90*time.Second, false),
		},
		"the grace is over": {
			given: func(s *scene) { s.admit(5 * time.Minute); s.succeed(noon.Add(-2 * time.Minute)) },
		},
		"the agent's clock is late: the grace begins with the admission": {
			given: func(s *scene) { s.succeed(noon.Add(-time.Hour)) },
			want:  busy(changed, time.Minute, false),
		},
		"the agent's clock is early: the grace ends at most after the deadline": {
			given: func(s *scene) { s.succeed(noon.Add(100 * time.Hour)) },
			want:  busy(changed, 11*time.Minute, false),
		},
		"the agent reports no time": {
			given: func(s *scene) { s.succeed(noon); s.install.Status.SucceededAt = nil },
			want:  busy(changed, time.Minute, false),
		},
		"its rollout is gone: the defaults": {
			given: func(s *scene) { s.rollout.UID = "other" },
			want:  busy(changed, 29*time.Minute, false),
		},
		"it was never admitted":     {given: func(s *scene) { s.install.Spec.Admission = nil }},
		"it is the operator itself": {given: func(*scene) {}, self: "echo"},
		"its admission is decided: it comes first by its name": {
			given: func(s *scene) { s.decide(10 * time.Second) },
			want:  busy("operator ops/echo is to be changed there by rollout echo-2", 31*time.Second, false),
		},
		"and yields by its name": {
			given: func(s *scene) { s.decide(10 * time.Second) }, self: "alpha",
			want: busy("operator ops/echo is to be changed there by rollout echo-2", 31*time.Second, true),
		},
		"an entry whose stamp is seen": {
			given: func(s *scene) { s.decide(0); s.admit(10 * time.Minute) },
		},
		"an entry of the next attempt": {
			given: func(s *scene) {
				s.decide(0)
				s.rollout.Status.Batch.Clusters[0].Attempt = 1
				s.admit(10 * time.Minute)
			},
			want: busy("operator ops/echo is to be changed there by rollout echo-2", 41*time.Second, false),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			test.given(s)
			self := "zeta"
			if test.self != "" {
				self = test.self
			}
			if diff := cmp.Diff(test.want, s.changes(self).Busy("a", named(self), 1)); diff != "" {
				t.Errorf("hold (-want +got):\n%s", diff)
			}
			if got := s.changes(self).Busy("b", named(self), 1); got != nil {
				t.Errorf("another cluster: %+v", got)
			}
		})
	}
}

func TestMoreChangesAtATime(t *testing.T) {
	s := newScene()
	other := *newScene()
	other.install.Name, other.install.Spec.Operator = "ops.mid", named("mid")
	changes := holds.ReadChanges(noon, named("zeta"), []v1alpha1.OperatorRollout{s.rollout},
		[]v1alpha1.OperatorInstall{s.install, other.install}, map[string]rollouts.Cluster{"a": s.cluster})
	for limit, want := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		if got := changes.Busy("a", named("zeta"), limit) != nil; got != want {
			t.Errorf("busy with a limit of %d: %t", limit, got)
		}
	}
}

// TestChangeKeysFindAllChanges compares what is found by the keys with what is found
// among all installs, whatever times the agents report.
func TestChangeKeysFindAllChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
	changing := 0
	for range 20000 {
		s := newScene()
		s.rollout.Spec.Strategy.Waves[0].UnreadyGrace.Duration = between(0, 3*time.Hour)
		s.rollout.Spec.Strategy.Waves[0].Deadline.Duration = between(time.Minute, 90*time.Hour)
		s.admit(between(0, 100*time.Hour))
		if rng.IntN(3) > 0 {
			s.succeed(noon.Add(between(-110*time.Hour, 60*time.Hour)))
		}
		if rng.IntN(4) == 0 {
			s.cluster.OnlineSince = noon.Add(-between(0, 50*time.Hour))
		}
		all := s.changes("other")
		if len(all) == 0 {
			continue
		}
		changing++
		keys := holds.ChangeKeys(noon, []v1alpha1.OperatorRollout{s.rollout})
		if !slices.Contains(keys, holds.ChangeKey(&s.install)) {
			t.Fatalf("key %s of an install that is changing is not in %v", holds.ChangeKey(&s.install), keys)
		}
	}
	if changing < 1000 {
		t.Errorf("only %d installs were changing", changing)
	}
	settled := newScene()
	settled.admit(50 * time.Hour)
	settled.succeed(noon.Add(-40 * time.Hour))
	if key := holds.ChangeKey(&settled.install); slices.Contains(holds.ChangeKeys(noon, nil), key) {
		t.Errorf("an install that succeeded long ago is looked at: %s", key)
	}
}
