// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

var echo = policy.Operator{
	OperatorReference: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"},
	Labels:            map[string]string{"tier": "1"},
}

// waves returns the waves of a strategy: a canary of one cluster with the stage canary, and a wave of four clusters
// with the stage prod.
func waves() []policy.Wave {
	prod := map[string]string{"stage": "prod"}
	one, percent := intstr.FromInt32(1), intstr.FromString("50%")
	return []policy.Wave{
		{Wave: v1alpha1.Wave{Name: "canary", MaxConcurrency: &one, Soak: minutes(2)}, Total: 1,
			Clusters: []map[string]string{{"stage": "canary"}}},
		{Wave: v1alpha1.Wave{Name: "rest", MaxConcurrency: &percent, Soak: minutes(0)}, Total: 4, TakesAll: true,
			Clusters: []map[string]string{prod, prod, prod, prod}},
	}
}

func minutes(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func named(name string, spec v1alpha1.RolloutPolicySpec) v1alpha1.RolloutPolicy {
	p := v1alpha1.RolloutPolicy{Spec: spec}
	p.Name, p.Generation = name, 1
	return p
}

var (
	malformed = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	approval  = v1alpha1.Gate{Name: "go", Approval: &v1alpha1.ApprovalGate{}}
	baseline  = v1alpha1.Gate{Name: "as-before", Baseline: &v1alpha1.BaselineGate{SLI: "reconcile"}}
)

// describe returns an outcome in words: what each policy adds and where it binds, then the
// limits of each wave, then what is not met.
func describe(o policy.Outcome, members []policy.Wave) []string {
	var lines []string
	for _, a := range o.Applied {
		lines = append(lines, a.Name+" binds "+strings.Join(a.Waves, " ")+": "+strings.Join(a.Added, "; "))
	}
	for i, w := range o.Waves {
		line := w.Name + ": soak " + w.Soak.Duration.String() + ", " +
			string(rune('0'+policy.Concurrency(*w.MaxConcurrency, w.Caps, members[i].Total))) + " at a time"
		for _, g := range w.Gates {
			line += ", gate " + g.Name
		}
		lines = append(lines, line)
	}
	if o.Unmet != "" {
		lines = append(lines, "unmet: "+o.Unmet)
	}
	return lines
}

const canaryAsItIs, restAsItIs = "canary: soak 2m0s, 1 at a time", "rest: soak 0s, 2 at a time"

func TestApply(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policies []v1alpha1.RolloutPolicy
		operator func(*policy.Operator)
		waves    func([]policy.Wave)
		done     bool
		want     []string
	}{
		"no policy": {want: []string{canaryAsItIs, restAsItIs}},
		"the soak is raised where it is shorter": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinSoak: minutes(10)})},
			want: []string{"p binds canary rest: soak 10m in wave canary, was 2m; soak 10m in wave rest, was 0s",
				"canary: soak 10m0s, 1 at a time", "rest: soak 10m0s, 2 at a time"},
		},
		"a strategy that is stricter stays": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{
				MinSoak: &metav1.Duration{Duration: time.Second}, MaxConcurrency: new(intstr.FromString("100%")),
				ClusterSelector: selecting("stage", "canary")})},
			want: []string{"p binds canary: ", canaryAsItIs, restAsItIs},
		},
		"only waves with a cluster that is selected": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinSoak: minutes(60),
				MaxConcurrency: new(intstr.FromInt32(1)), ClusterSelector: selecting("stage", "prod")})},
			want: []string{"p binds rest: soak 1h in wave rest, was 0s; maxConcurrency 1 in wave rest, was 50%",
				canaryAsItIs, "rest: soak 1h0m0s, 1 at a time"},
		},
		"the strictest of several counts": {
			policies: []v1alpha1.RolloutPolicy{
				named("z", v1alpha1.RolloutPolicySpec{MinSoak: minutes(5),
					MaxConcurrency: new(intstr.FromString("25%"))}),
				named("a", v1alpha1.RolloutPolicySpec{MinSoak: minutes(3), MaxConcurrency: new(intstr.FromInt32(3))}),
			},
			want: []string{
				"a binds canary rest: soak 3m in wave canary, was 2m; soak 3m in wave rest, was 0s",
				"z binds canary rest: soak 5m in wave canary, was 3m; soak 5m in wave rest, was 3m; " +
					"maxConcurrency 25% in wave rest, was 50%",
				"canary: soak 5m0s, 1 at a time", "rest: soak 5m0s, 1 at a time"},
		},
		"gates of the same name do not meet": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{approval}}),
				named("q", v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{approval}})},
			waves: func(w []policy.Wave) { w[0].Gates = []v1alpha1.Gate{approval} },
			want: []string{"p binds canary rest: gate p/go in waves canary, rest",
				"q binds canary rest: gate q/go in waves canary, rest",
				canaryAsItIs + ", gate go, gate p/go, gate q/go", restAsItIs + ", gate p/go, gate q/go"},
		},
		"a comparison needs clusters on another release": {
			policies: []v1alpha1.RolloutPolicy{named("p",
				v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{baseline}})},
			want: []string{"p binds canary rest: gate p/as-before in wave canary",
				canaryAsItIs + ", gate p/as-before", restAsItIs},
		},
		"and is not met where no wave leaves any": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{baseline},
				ClusterSelector: selecting("stage", "prod")})},
			want: []string{"p binds rest: ", canaryAsItIs, restAsItIs, "unmet: RolloutPolicy p asks for gate " +
				"as-before, which compares with clusters on another release, and the strategy has no wave that " +
				"leaves any: give the strategy of ManagedOperator echo a wave before the last one and start another " +
				"rollout, or change the policy"},
		},
		"too few waves": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinWaves: new(int32(3))})},
			want: []string{"p binds canary rest: ", canaryAsItIs, restAsItIs, "unmet: RolloutPolicy p asks for at " +
				"least 3 waves, and the clusters are in 2: give the strategy of ManagedOperator echo more waves that " +
				"take clusters and start another rollout, or change the policy"},
		},
		"too few waves once all are verified": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinWaves: new(int32(3))})},
			done:     true, want: []string{"p binds canary rest: ", canaryAsItIs, restAsItIs},
		},
		"each cluster has a wave of its own": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinWaves: new(int32(3))})},
			waves:    func(w []policy.Wave) { w[1].Total = 1 },
			want:     []string{"p binds canary rest: ", canaryAsItIs, "rest: soak 0s, 1 at a time"},
		},
		"waves without clusters do not count": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinWaves: new(int32(2))})},
			waves:    func(w []policy.Wave) { w[0].Total = 0 },
			want: []string{"p binds canary rest: ", canaryAsItIs, restAsItIs, "unmet: RolloutPolicy p asks for at " +
				"least 2 waves, and the clusters are in 1: give the strategy of ManagedOperator echo more waves that " +
				"take clusters and start another rollout, or change the policy"},
		},
		"windows": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{Windows: []string{"nights"}})},
			want:     []string{"p binds canary rest: ChangeWindow nights", canaryAsItIs, restAsItIs},
		},
		"operators that are not selected": {
			policies: []v1alpha1.RolloutPolicy{
				named("p", v1alpha1.RolloutPolicySpec{MinSoak: minutes(9), Namespaces: []string{"other"}}),
				named("q", v1alpha1.RolloutPolicySpec{MinSoak: minutes(9), OperatorSelector: selecting("tier", "2")})},
			want: []string{canaryAsItIs, restAsItIs},
		},
		"one that binds the rollout stays when labels are removed": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinSoak: minutes(9),
				OperatorSelector: selecting("tier", "2"), ClusterSelector: selecting("stage", "test")})},
			operator: func(o *policy.Operator) {
				o.Applied = []v1alpha1.AppliedPolicy{{Name: "p", Generation: 1, Waves: []string{"canary"}}}
			},
			want: []string{"p binds canary: soak 9m in wave canary, was 2m", "canary: soak 9m0s, 1 at a time",
				restAsItIs},
		},
		"but not when the policy was changed": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinSoak: minutes(9),
				OperatorSelector: selecting("tier", "2")})},
			operator: func(o *policy.Operator) {
				o.Applied = []v1alpha1.AppliedPolicy{{Name: "p", Generation: 7, Waves: []string{"canary"}}}
			},
			want: []string{canaryAsItIs, restAsItIs},
		},
		"a wave that is verified is not judged again, and its speed is bound": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{MinSoak: minutes(9),
				MaxConcurrency: new(intstr.FromInt32(1)), Gates: []v1alpha1.Gate{approval}})},
			waves: func(w []policy.Wave) { w[1].Verified = true },
			want: []string{"p binds canary rest: soak 9m in wave canary, was 2m; maxConcurrency 1 in wave rest, was " +
				"50%; gate p/go in wave canary", "canary: soak 9m0s, 1 at a time, gate p/go",
				"rest: soak 0s, 1 at a time"},
		},
		"and keeps the gates that it was judged by": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{Gates: []v1alpha1.Gate{approval},
				ClusterSelector: selecting("stage", "prod")})},
			waves: func(w []policy.Wave) { w[1].Verified, w[1].Judged = true, []string{"p/go"} },
			want:  []string{"p binds rest: gate p/go in wave rest", canaryAsItIs, restAsItIs + ", gate p/go"},
		},
		"one that cannot be evaluated binds everybody and is not met": {
			policies: []v1alpha1.RolloutPolicy{named("p", v1alpha1.RolloutPolicySpec{OperatorSelector: malformed,
				MinSoak: minutes(3)})},
			want: []string{"p binds canary rest: soak 3m in wave canary, was 2m; soak 3m in wave rest, was 0s",
				"canary: soak 3m0s, 1 at a time", "rest: soak 3m0s, 2 at a time", "unmet: RolloutPolicy p cannot be " +
					"evaluated: operatorSelector: \"Is\" is not a valid label selector operator; correct or delete it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operator, members := echo, waves()
			if test.operator != nil {
				test.operator(&operator)
			}
			if test.waves != nil {
				test.waves(members)
			}
			got := policy.Read(test.policies, operator).Apply(members, test.done)
			if diff := cmp.Diff(test.want, describe(got, members)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(waves()[0].Soak, members[0].Soak); diff != "" {
				t.Errorf("the strategy was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimitsOfTheAPI(t *testing.T) {
	t.Parallel()
	var many []v1alpha1.RolloutPolicy
	for _, letter := range "abcdefghijklmnopqrstu" {
		many = append(many, named(string(letter), v1alpha1.RolloutPolicySpec{
			Gates: []v1alpha1.Gate{approval, {Name: "b", Approval: &v1alpha1.ApprovalGate{}}}}))
	}
	got := policy.Read(many, echo).Apply(waves(), false)
	if len(got.Applied) != 20 || len(got.Waves[0].Gates) != 20 || got.Unmet == "" {
		t.Errorf("%d policies, %d gates, unmet: %s", len(got.Applied), len(got.Waves[0].Gates), got.Unmet)
	}
	if few := policy.Read(many[:1], echo).Apply(waves(), false); few.Unmet != "" {
		t.Errorf("unmet: %s", few.Unmet)
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	set := policy.Read([]v1alpha1.RolloutPolicy{
		named("b", v1alpha1.RolloutPolicySpec{Windows: []string{"nights", "weekends"}}),
		named("a", v1alpha1.RolloutPolicySpec{Windows: []string{"nights"},
			ClusterSelector: selecting("stage", "prod")}),
		named("c", v1alpha1.RolloutPolicySpec{Windows: []string{"never"}, Namespaces: []string{"other"}}),
	}, echo)
	for stage, want := range map[string]map[string]string{
		"prod": {"nights": "a", "weekends": "b"}, "test": {"nights": "b", "weekends": "b"},
	} {
		if diff := cmp.Diff(want, set.Windows(map[string]string{"stage": stage})); diff != "" {
			t.Errorf("windows of %s (-want +got):\n%s", stage, diff)
		}
	}
}
