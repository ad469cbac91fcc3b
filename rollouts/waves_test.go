// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func number(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }

func percent(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }

func by(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// members is a fleet of n clusters named from a.
func members(n int, labels ...map[string]string) []rollouts.Cluster {
	fleet := make([]rollouts.Cluster, n)
	for i := range fleet {
		fleet[i] = rollouts.Cluster{Name: string(rune('a' + i)), Enrolled: true, Online: true}
		if i < len(labels) {
			fleet[i].Labels = labels[i]
		}
	}
	return fleet
}

func TestPreview(t *testing.T) {
	t.Parallel()
	eu, us := map[string]string{"region": "eu"}, map[string]string{"region": "us"}
	tests := map[string]struct {
		waves    []v1alpha1.Wave
		clusters []rollouts.Cluster
		want     []string
	}{
		"default: one canary, a tenth of the others, the rest": {
			clusters: members(12),
			want:     []string{"canary 1/0 [a]", "early 1/0 [b c]", "rest 2/0 [d e f g h i j k l]"},
		},
		"one cluster is the canary": {
			clusters: members(1),
			want:     []string{"canary 1/0 [a]", "early 1/0 []", "rest 1/0 []"},
		},
		"rest is implied": {
			waves:    []v1alpha1.Wave{{Name: "eu", Selector: by("region", "eu")}},
			clusters: members(3, us, eu),
			want:     []string{"eu 1/0 [b]", "rest 1/0 [a c]"},
		},
		"no second rest where a wave takes all": {
			waves:    []v1alpha1.Wave{{Name: "everything", Selector: &metav1.LabelSelector{}}},
			clusters: members(2),
			want:     []string{"everything 1/0 [a b]"},
		},
		"a person's wave named rest keeps its name": {
			waves:    []v1alpha1.Wave{{Name: "rest", Size: number(1)}},
			clusters: members(3),
			want:     []string{"rest 1/0 [a]", "rest-2 1/0 [b c]"},
		},
		"the first wave that takes a cluster has it": {
			waves: []v1alpha1.Wave{{Name: "one", Selector: by("region", "eu")},
				{Name: "two", Selector: by("region", "eu")}},
			clusters: members(2, eu, us),
			want:     []string{"one 1/0 [a]", "two 1/0 []", "rest 1/0 [b]"},
		},
		"a percentage is of those that are left, rounded up": {
			waves:    []v1alpha1.Wave{{Name: "one", Size: number(1)}, {Name: "half", Size: percent("50%")}},
			clusters: members(6),
			want:     []string{"one 1/0 [a]", "half 1/0 [b c d]", "rest 1/0 [e f]"},
		},
		"sorted by a label's value, those without it last, then by name": {
			waves: []v1alpha1.Wave{{Name: "one", SortBy: "order", Size: number(3)}},
			clusters: members(5, nil, map[string]string{"order": "2"}, map[string]string{"order": "1"}, nil,
				map[string]string{"order": "1"}),
			want: []string{"one 1/0 [c e b]", "rest 1/0 [a d]"},
		},
		"concurrency is rounded down and at least 1, failures are clamped to the size": {
			waves: []v1alpha1.Wave{
				{Name: "one", Size: number(3), MaxConcurrency: percent("50%"), MaxFailures: number(9)},
				{Name: "two", MaxConcurrency: percent("10%"), MaxFailures: percent("40%")},
			},
			clusters: members(8),
			want:     []string{"one 1/3 [a b c]", "two 1/2 [d e f g h]"},
		},
		"not enrolled, leaving, not selected": {
			clusters: []rollouts.Cluster{{Name: "new"}, {Name: "leaving", Enrolled: true, Deleting: true}},
			want:     []string{"canary 1/0 []", "early 1/0 []", "rest 1/0 []"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waves, _, err := rollouts.Preview(metav1.LabelSelector{}, v1alpha1.RolloutStrategy{Waves: test.waves},
				test.clusters, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range waves {
				got = append(got, fmt.Sprintf("%s %d/%d %v", w.Name, w.MaxConcurrency, w.MaxFailures, w.Clusters))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("waves, with concurrency/failures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreviewRefusesSelectors(t *testing.T) {
	t.Parallel()
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	if _, _, err := rollouts.Preview(bad, v1alpha1.RolloutStrategy{}, nil, nil); err == nil {
		t.Error("a malformed cluster selector is accepted")
	}
	if _, _, err := rollouts.Preview(metav1.LabelSelector{},
		v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "w", Selector: &bad}}}, nil, nil); err == nil {
		t.Error("a malformed wave selector is accepted")
	}
}

func TestDefaulted(t *testing.T) {
	t.Parallel()
	explicit := func(name string, size *intstr.IntOrString) v1alpha1.Wave {
		return v1alpha1.Wave{
			Name: name, Size: size, MaxConcurrency: percent("25%"), MaxFailures: number(0),
			Deadline: &metav1.Duration{Duration: 30 * time.Minute}, Soak: &metav1.Duration{},
			UnreadyGrace: &metav1.Duration{Duration: time.Minute},
		}
	}
	want := v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.Wave{explicit("canary", number(1)), explicit("early", percent("10%")),
			explicit("rest", nil)},
		OnFailure: v1alpha1.FailurePause, Offline: v1alpha1.OfflineDefer, MaxDeferred: percent("100%"),
		LateJoiners: v1alpha1.LateJoin, NewTarget: v1alpha1.NewTargetSupersede,
	}
	got := rollouts.Defaulted(v1alpha1.RolloutStrategy{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the empty strategy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, rollouts.Defaulted(got)); diff != "" {
		t.Errorf("an explicit strategy changes:\n%s", diff)
	}
	var many v1alpha1.RolloutStrategy
	for i := range 20 {
		many.Waves = append(many.Waves, v1alpha1.Wave{Name: fmt.Sprintf("w%d", i), Size: number(1)})
	}
	if n := len(rollouts.Defaulted(many).Waves); n != 20 {
		t.Errorf("%d waves, the API allows 20", n)
	}
	waves, _, err := rollouts.Preview(metav1.LabelSelector{}, rollouts.Defaulted(many), members(22), nil)
	if err != nil || len(waves) != 21 || len(waves[20].Clusters) != 2 {
		t.Errorf("a cluster is lost beyond 20 waves: %+v %v", waves, err)
	}
}
