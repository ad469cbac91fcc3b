// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// bindTo has the platform team write a policy for all operators and clusters.
func (s *scene) bindTo(spec v1alpha1.RolloutPolicySpec) {
	p := v1alpha1.RolloutPolicy{Spec: spec}
	p.Name, p.Generation = "house", 1
	s.Policies = append(s.Policies, p)
}

func goGate() []v1alpha1.Gate {
	return []v1alpha1.Gate{{Name: "go", Approval: &v1alpha1.ApprovalGate{}}}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	long := &metav1.Duration{Duration: time.Hour}
	tests := map[string]struct {
		given func(*scene)
		want  string
	}{
		"fewer clusters at a time": {
			given: func(s *scene) { s.bindTo(v1alpha1.RolloutPolicySpec{MaxConcurrency: number(1)}) },
			want:  "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"what was admitted before finishes": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{MaxConcurrency: number(1)})
				s.admit(time.Minute, 0, 1)
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"a longer soak": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{MinSoak: long})
				s.succeed(0, 1)
				s.ro.Status.Waves[0].Updated, s.ro.Status.Waves[0].UpdatedAt = 2, ago(time.Minute)
			},
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:59:00Z: 2 of 2 clusters " +
				"updated",
		},
		"a wave that is verified stays so": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{MinSoak: long, Gates: goGate()})
				s.verified()
			},
			want: "Progressing, one Verified, two Gated: wave two waits for gate house/go: 2 clusters " +
				"have to be approved",
		},
		"an approval": {
			given: func(s *scene) { s.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate()}) },
			want: "Progressing, one Gated, two Waiting: wave one waits for gate house/go: 2 clusters have to be " +
				"approved",
		},
		"an approval that was given": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate(), MaxConcurrency: number(1)})
				s.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "house/go", By: "ann", Reason: "fine"}}
			},
			want: "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"too few waves: nothing is admitted": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{MinWaves: new(int32(3))})
				s.batch(0, "a", "b")
			},
			want: "Halted, one Updating, two Waiting, batch a b: RolloutPolicy house asks for at least 3 waves, " +
				"and the clusters are in 2: give the strategy of ManagedOperator echo more waves that take clusters " +
				"and start another rollout, or change the policy; nothing is admitted until then",
		},
		"a rollout that aborts itself does not because of a policy": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{MinWaves: new(int32(2)), ClusterSelector: selector("a", "b", "Is")})
				s.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
			},
			want: "Halted, one Updating, two Waiting: RolloutPolicy house cannot be evaluated: clusterSelector: " +
				"\"Is\" is not a valid label selector operator; correct or delete it; nothing is admitted until then",
		},
		"a gate that can never be passed": {
			given: func(s *scene) {
				g := queryGate()
				g.PromQL.Query = "up{cluster=~\"${clusters}\",x=\"${y}\"}"
				s.bindTo(v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{g}})
			},
			want: "Halted, one Updating, two Waiting: RolloutPolicy house is not valid: spec.gates[0].promQL.query: " +
				"Invalid value: \"${y}\": is not a variable: use one of clusters, hash, namespace, operator, " +
				"operator_namespace, release, version, wave, window; correct or delete it; nothing is admitted " +
				"until then",
		},
		"a rollback ignores policies": {
			given: func(s *scene) {
				s.bindTo(v1alpha1.RolloutPolicySpec{MaxConcurrency: number(1), MinWaves: new(int32(3)),
					Gates: goGate()})
				s.back()
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.ro.Spec.Operator.Name = "echo"
			test.given(s)
			if diff := cmp.Diff(test.want, told(rollouts.Next(s.Input))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func selector(key, value string, operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: operator, Values: []string{value}}}}
}

// What policies add is in the status, and each change of it is told once.
func TestPoliciesAreRecorded(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.bindTo(v1alpha1.RolloutPolicySpec{MinSoak: &metav1.Duration{Duration: time.Minute}})
	d := rollouts.Next(s.Input)
	want := []v1alpha1.AppliedPolicy{{Name: "house", Generation: 1, Waves: []string{"one", "two"},
		Added: []string{"soak 1m in wave one, was 0s", "soak 1m in wave two, was 0s"}}}
	if diff := cmp.Diff(want, d.Status.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if soak := d.Status.Waves[0].Soak; soak == nil || soak.Duration != time.Minute {
		t.Errorf("soak %v", soak)
	}
	if diff := cmp.Diff([]string{"RolloutPolicy house adds: soak 1m in wave one, was 0s; soak 1m in wave two, was 0s"},
		policyEvents(d)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.ro.Status = d.Status
	if again := policyEvents(rollouts.Next(s.Input)); again != nil {
		t.Errorf("told again: %v", again)
	}
	s.Policies[0].Spec.MinSoak.Duration, s.Policies[0].Generation = 2*time.Minute, 2
	d = rollouts.Next(s.Input)
	s.ro.Status = d.Status
	s.Policies = nil
	if diff := cmp.Diff([]string{"RolloutPolicy house adds: soak 2m in wave one, was 0s; soak 2m in wave two, was 0s " +
		"(before: soak 1m in wave one, was 0s; soak 1m in wave two, was 0s)",
		"RolloutPolicy house no longer binds the rollout; it had added: soak 2m in wave one, was 0s; soak 2m in wave " +
			"two, was 0s"}, append(policyEvents(d), policyEvents(rollouts.Next(s.Input))...)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func policyEvents(d rollouts.Decision) []string {
	var texts []string
	for _, e := range d.Events {
		if e.Reason == "PolicyApplied" || e.Reason == "PolicyLifted" {
			texts = append(texts, e.Message)
		}
	}
	return texts
}

// Whoever has no policies to look at finds their gates in the status, and the verdicts
// on them stay with a wave that is verified.
func TestGatesOfPoliciesAreInTheStatus(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.bindTo(v1alpha1.RolloutPolicySpec{Gates: append(goGate(), queryGate())})
	s.ro.Status = rollouts.Next(s.Input).Status
	if diff := cmp.Diff([]rollouts.GateRef{{Wave: "one", Gate: "house/go"}, {Wave: "two", Gate: "house/go"}},
		rollouts.GatesOf(s.ro, true)); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	if got := rollouts.GatesOf(s.ro, false); len(got) != 2 {
		t.Errorf("gates that measure: %v", got)
	}
	passed := s.ro.Status.Waves[0].Gates
	s.verified()
	s.ro.Status.Waves[0].Gates = passed
	s.Policies = nil
	if got := rollouts.Next(s.Input).Status.Waves[0].Gates; len(got) != 2 {
		t.Errorf("the wave was verified with two gates, and its status has %v", got)
	}
}

func TestPreviewWithPolicies(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate(), MaxConcurrency: new(intstr.FromInt32(1)),
		MinWaves: new(int32(3))})
	waves, outcome, err := rollouts.Preview(metav1.LabelSelector{}, s.ro.Spec.Strategy, s.Clusters,
		policy.Read(s.Policies, policy.Operator{}))
	if err != nil {
		t.Fatal(err)
	}
	if w := waves[0]; w.MaxConcurrency != 1 || len(w.Approvals) != 1 || w.Approvals[0] != "house/go" {
		t.Errorf("wave %+v", w)
	}
	if outcome.Unmet == "" || len(outcome.Applied) != 1 {
		t.Errorf("outcome %+v", outcome)
	}
}

// TestNobodyWaitsForGatesOfAnEndedRollout: an alert is made from since when a gate holds
// a wave back.
func TestNobodyWaitsForGatesOfAnEndedRollout(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate()})
	s.ro.Status = rollouts.Next(s.Input).Status
	if g := s.ro.Status.Waves[0].Gates; len(g) != 1 || g[0].WaitingSince == nil {
		t.Fatalf("gates %+v, want one that is waited for", g)
	}
	s.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "enough"}
	for range 2 {
		s.ro.Status = rollouts.Next(s.Input).Status
		s.Policies = nil
	}
	if g := s.ro.Status.Waves[0].Gates; len(g) != 1 || g[0].WaitingSince != nil {
		t.Errorf("gates %+v, want one that nobody waits for", g)
	}
}
