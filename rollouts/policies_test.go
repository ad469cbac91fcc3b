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
func (f *fixture) bindTo(spec v1alpha1.RolloutPolicySpec) {
	p := v1alpha1.RolloutPolicy{Spec: spec}
	p.Name, p.Generation = "house", 1
	f.Policies = append(f.Policies, p)
}

func goGate() []v1alpha1.Gate {
	return []v1alpha1.Gate{{Name: "go", Approval: &v1alpha1.ApprovalGate{}}}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	long := &metav1.Duration{Duration: time.Hour}
	tests := map[string]struct {
		given func(*fixture)
		want  string
	}{
		"fewer clusters at a time": {
			given: func(f *fixture) { f.bindTo(v1alpha1.RolloutPolicySpec{MaxConcurrency: number(1)}) },
			want:  "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"what was admitted before finishes": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{MaxConcurrency: number(1)})
				f.admit(time.Minute, 0, 1)
			},
			want: "Progressing, one Updating, two Waiting: wave one: 0 of 2 clusters updated, 2 in progress",
		},
		"a longer soak": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{MinSoak: long})
				f.succeed(0, 1)
				f.ro.Status.Waves[0].Updated, f.ro.Status.Waves[0].UpdatedAt = 2, ago(time.Minute)
			},
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:59:00Z: 2 of 2 clusters " +
				"updated",
		},
		"a wave that is verified stays so": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{MinSoak: long, Gates: goGate()})
				f.verified()
			},
			want: "Progressing, one Verified, two Gated: wave two waits for gate house/go: 2 clusters " +
				"have to be approved",
		},
		"an approval": {
			given: func(f *fixture) { f.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate()}) },
			want: "Progressing, one Gated, two Waiting: wave one waits for gate house/go: 2 clusters have to be " +
				"approved",
		},
		"an approval that was given": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate(), MaxConcurrency: number(1)})
				f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "house/go", By: "ann", Reason: "fine"}}
			},
			want: "Progressing, one Updating, two Waiting, batch a: wave one: 0 of 2 clusters updated, 1 in progress",
		},
		"too few waves: nothing is admitted": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{MinWaves: new(int32(3))})
				f.batch(0, "a", "b")
			},
			want: "Halted, one Updating, two Waiting, batch a b: RolloutPolicy house asks for at least 3 waves, " +
				"and the clusters are in 2: give the strategy of ManagedOperator echo more waves that take clusters " +
				"and start another rollout, or change the policy; nothing is admitted until then",
		},
		"a rollout that aborts itself does not because of a policy": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{MinWaves: new(int32(2)), ClusterSelector: selector("a", "b", "Is")})
				f.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
			},
			want: "Halted, one Updating, two Waiting: RolloutPolicy house cannot be evaluated: clusterSelector: " +
				"\"Is\" is not a valid label selector operator; correct or delete it; nothing is admitted until then",
		},
		"a gate that can never be passed": {
			given: func(f *fixture) {
				g := queryGate()
				g.PromQL.Query = "up{cluster=~\"${clusters}\",x=\"${y}\"}"
				f.bindTo(v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{g}})
			},
			want: "Halted, one Updating, two Waiting: RolloutPolicy house is not valid: spec.gates[0].promQL.query: " +
				"Invalid value: \"${y}\": is not a variable: use one of clusters, hash, namespace, operator, " +
				"operator_namespace, release, version, wave, window; correct or delete it; nothing is admitted " +
				"until then",
		},
		"a rollback ignores policies": {
			given: func(f *fixture) {
				f.bindTo(v1alpha1.RolloutPolicySpec{MaxConcurrency: number(1), MinWaves: new(int32(3)),
					Gates: goGate()})
				f.back()
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.ro.Spec.Operator.Name = "echo"
			test.given(f)
			if diff := cmp.Diff(test.want, summarize(rollouts.Next(f.Input))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func selector(key, value string, operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: operator, Values: []string{value}}}}
}

// The status has what policies add, and each change is reported once.
func TestPoliciesAreRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.bindTo(v1alpha1.RolloutPolicySpec{MinSoak: &metav1.Duration{Duration: time.Minute}})
	d := rollouts.Next(f.Input)
	want := []v1alpha1.AppliedPolicy{{Name: "house", Generation: 1, Waves: []string{"one", "two"},
		Added: []string{"soak 1m in wave one, was 0s", "soak 1m in wave two, was 0s"}}}
	if diff := cmp.Diff(want, d.Status.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if soak := d.Status.Waves[0].Soak; soak == nil || soak.Duration != time.Minute {
		t.Errorf("soak %v", soak)
	}
	if diff := cmp.Diff([]string{"RolloutPolicy house adds: soak 1m in wave one, was 0s; soak 1m in wave two, was 0s"},
		listPolicyEvents(d)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	f.ro.Status = d.Status
	if again := listPolicyEvents(rollouts.Next(f.Input)); again != nil {
		t.Errorf("told again: %v", again)
	}
	f.Policies[0].Spec.MinSoak.Duration, f.Policies[0].Generation = 2*time.Minute, 2
	d = rollouts.Next(f.Input)
	f.ro.Status = d.Status
	f.Policies = nil
	if diff := cmp.Diff([]string{"RolloutPolicy house adds: soak 2m in wave one, was 0s; soak 2m in wave two, was 0s " +
		"(before: soak 1m in wave one, was 0s; soak 1m in wave two, was 0s)",
		"RolloutPolicy house no longer binds the rollout; it had added: soak 2m in wave one, was 0s; soak 2m in wave " +
			"two, was 0s"}, append(listPolicyEvents(d), listPolicyEvents(rollouts.Next(f.Input))...)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func listPolicyEvents(d rollouts.Decision) []string {
	var texts []string
	for _, e := range d.Events {
		if e.Reason == "PolicyApplied" || e.Reason == "PolicyLifted" {
			texts = append(texts, e.Message)
		}
	}
	return texts
}

// Callers without policies find the gates of policies in the status, and the verdicts of these gates stay in a
// verified wave.
func TestGatesOfPoliciesAreInTheStatus(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.bindTo(v1alpha1.RolloutPolicySpec{Gates: append(goGate(), queryGate())})
	f.ro.Status = rollouts.Next(f.Input).Status
	if diff := cmp.Diff([]rollouts.GateRef{{Wave: "one", Gate: "house/go"}, {Wave: "two", Gate: "house/go"}},
		rollouts.GatesOf(f.ro, true)); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	if got := rollouts.GatesOf(f.ro, false); len(got) != 2 {
		t.Errorf("gates that measure: %v", got)
	}
	passed := f.ro.Status.Waves[0].Gates
	f.verified()
	f.ro.Status.Waves[0].Gates = passed
	f.Policies = nil
	if got := rollouts.Next(f.Input).Status.Waves[0].Gates; len(got) != 2 {
		t.Errorf("the wave was verified with two gates, and its status has %v", got)
	}
}

func TestPreviewWithPolicies(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate(), MaxConcurrency: new(intstr.FromInt32(1)),
		MinWaves: new(int32(3))})
	waves, outcome, err := rollouts.Preview(metav1.LabelSelector{}, f.ro.Spec.Strategy, f.Clusters,
		policy.Read(f.Policies, policy.Operator{}))
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
	f := newFixture()
	f.bindTo(v1alpha1.RolloutPolicySpec{Gates: goGate()})
	f.ro.Status = rollouts.Next(f.Input).Status
	if g := f.ro.Status.Waves[0].Gates; len(g) != 1 || g[0].WaitingSince == nil {
		t.Fatalf("gates %+v, want one that is waited for", g)
	}
	f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "enough"}
	for range 2 {
		f.ro.Status = rollouts.Next(f.Input).Status
		f.Policies = nil
	}
	if g := f.ro.Status.Waves[0].Gates; len(g) != 1 || g[0].WaitingSince != nil {
		t.Errorf("gates %+v, want one that nobody waits for", g)
	}
}
