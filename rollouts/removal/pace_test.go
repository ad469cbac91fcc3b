// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

const agreed = v1alpha1.RemovalUninstall

// waves are a canary, and others two at a time.
func waves() v1alpha1.RolloutStrategy {
	return v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{
		{Name: "canary", Size: ptr.To(intstr.FromInt32(1))},
		{Name: "others", MaxConcurrency: ptr.To(intstr.FromInt32(2))},
	}}
}

func leaver(cluster, wave string, change ...func(*removal.Leaver)) removal.Leaver {
	l := removal.Leaver{Install: removal.Install{Name: "echo", Cluster: cluster, Namespace: cluster, Held: true},
		Wave: wave}
	for _, c := range change {
		c(&l)
	}
	return l
}

func isAgreed(l *removal.Leaver)       { l.Policy = agreed }
func isOffline(l *removal.Leaver)      { l.Reach = removal.Offline }
func isFrozen(l *removal.Leaver)       { l.Frozen = true }
func isPaused(l *removal.Leaver)       { l.Paused = true }
func isStalled(l *removal.Leaver)      { l.Stalled = true }
func isGone(l *removal.Leaver)         { l.Reach = removal.Gone }
func isBeingDeleted(l *removal.Leaver) { l.Policy, l.Deleting = agreed, true }

func deleted(clusters ...string) []removal.Step {
	var steps []removal.Step
	for _, c := range clusters {
		steps = append(steps, removal.Step{Namespace: c, Name: "echo", Delete: true})
	}
	return steps
}

func TestUninstall(t *testing.T) {
	t.Parallel()
	three := []removal.Leaver{leaver("a", "canary"), leaver("b", "others"), leaver("c", "others")}
	few := &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(2))}
	request := removal.Uninstall(three, waves(), few).Progress.Request
	tests := map[string]struct {
		leavers []removal.Leaver
		removal *v1alpha1.OperatorRemoval
		want    removal.Pace
	}{
		"nothing": {},
		"few clusters need no confirmation": {
			leavers: three,
			want: removal.Pace{Steps: []removal.Step{{Namespace: "a", Name: "echo", SetPolicy: agreed},
				{Namespace: "b", Name: "echo", SetPolicy: agreed}, {Namespace: "c", Name: "echo", SetPolicy: agreed}},
				Progress: &v1alpha1.RemovalProgress{Waiting: 3}},
		},
		"many clusters need a confirmation": {
			leavers: three, removal: few,
			want: removal.Pace{Progress: &v1alpha1.RemovalProgress{Request: request, Unconfirmed: 3}},
		},
		"a confirmation of other clusters": {
			leavers: three, removal: &v1alpha1.OperatorRemoval{ConfirmAbove: few.ConfirmAbove, Confirm: "12345678"},
			want: removal.Pace{Progress: &v1alpha1.RemovalProgress{Request: request, Unconfirmed: 3}},
		},
		"clusters that are added need a confirmation of their own": {
			leavers: []removal.Leaver{leaver("a", "canary", isAgreed), leaver("b", "others", isAgreed),
				leaver("c", "others")},
			removal: &v1alpha1.OperatorRemoval{ConfirmAbove: few.ConfirmAbove, Confirm: request},
			want: removal.Pace{Steps: deleted("a"), Progress: &v1alpha1.RemovalProgress{
				Request: removal.Uninstall([]removal.Leaver{leaver("c", "others")}, waves(),
					&v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(0))}).Progress.Request,
				Unconfirmed: 1, Waiting: 2}},
		},
		"the first wave comes first": {
			leavers: []removal.Leaver{leaver("a", "others", isAgreed), leaver("b", "canary", isAgreed)},
			want:    removal.Pace{Steps: deleted("b"), Progress: &v1alpha1.RemovalProgress{Waiting: 2}},
		},
		"a cluster under a freeze is not waited for, and what is agreed to is noted there": {
			leavers: []removal.Leaver{leaver("a", "canary", isAgreed, isFrozen), leaver("b", "others", isAgreed),
				leaver("c", "others", isFrozen)},
			want: removal.Pace{Steps: append([]removal.Step{{Namespace: "c", Name: "echo", SetPolicy: agreed}},
				deleted("b")...), Progress: &v1alpha1.RemovalProgress{Waiting: 3}},
		},
		"one that cannot uninstall it keeps the others waiting also under a freeze": {
			leavers: []removal.Leaver{leaver("a", "canary", isBeingDeleted, isStalled, isFrozen),
				leaver("b", "others", isAgreed)},
			want: removal.Pace{Progress: &v1alpha1.RemovalProgress{Waiting: 1, Uninstalling: 1},
				Failed: []string{"a"}},
		},
		"the next wave waits for it": {
			leavers: []removal.Leaver{leaver("a", "others", isAgreed), leaver("b", "canary", isBeingDeleted)},
			want:    removal.Pace{Progress: &v1alpha1.RemovalProgress{Waiting: 1, Uninstalling: 1}},
		},
		"no more at a time than the wave allows": {
			leavers: []removal.Leaver{leaver("a", "others", isBeingDeleted), leaver("b", "others", isAgreed),
				leaver("c", "others", isAgreed)},
			want: removal.Pace{Steps: deleted("b"), Progress: &v1alpha1.RemovalProgress{Waiting: 2, Uninstalling: 1}},
		},
		"a cluster that cannot uninstall it stops the others": {
			leavers: []removal.Leaver{leaver("a", "others", isBeingDeleted, isStalled),
				leaver("b", "others", isAgreed)},
			want: removal.Pace{Progress: &v1alpha1.RemovalProgress{Waiting: 1, Uninstalling: 1},
				Failed: []string{"a"}},
		},
		"an offline cluster is not begun, and stops nobody": {
			leavers: []removal.Leaver{leaver("a", "canary", isAgreed, isOffline), leaver("b", "others", isAgreed)},
			want:    removal.Pace{Steps: deleted("b"), Progress: &v1alpha1.RemovalProgress{Waiting: 2}},
		},
		"a paused cluster is not begun, and stops nobody": {
			leavers: []removal.Leaver{leaver("a", "canary", isAgreed, isPaused), leaver("b", "others", isAgreed)},
			want:    removal.Pace{Steps: deleted("b"), Progress: &v1alpha1.RemovalProgress{Waiting: 2}},
		},
		"a cluster without an agent is released at once": {
			leavers: []removal.Leaver{leaver("a", "others", isGone)},
			want: removal.Pace{Steps: []removal.Step{{Namespace: "a", Name: "echo", SetPolicy: agreed, Delete: true,
				Release: true}}, Progress: &v1alpha1.RemovalProgress{}},
		},
		"a wave that the strategy does not have comes last": {
			leavers: []removal.Leaver{leaver("a", "old", isAgreed), leaver("b", "canary", isAgreed)},
			want:    removal.Pace{Steps: deleted("b"), Progress: &v1alpha1.RemovalProgress{Waiting: 2}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := removal.Uninstall(test.leavers, waves(), test.removal)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pace (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUninstallEnds plays removals with agents that take their time, go offline
// and come back. Limits hold at each step, and in the end every install is gone.
func TestUninstallEnds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(long.Cases(200, 5000)) {
		random := rand.New(rand.NewPCG(seed, 1))
		var leavers []removal.Leaver
		for i := range 1 + random.IntN(12) {
			wave := []string{"canary", "others", "old"}[random.IntN(3)]
			leavers = append(leavers, leaver(fmt.Sprintf("c%02d", i), wave))
		}
		asked := &v1alpha1.OperatorRemoval{}
		for step := 0; len(leavers) > 0; step++ {
			if step > 500 {
				t.Fatalf("seed %d: %d installs are left", seed, len(leavers))
			}
			pace := removal.Uninstall(leavers, waves(), asked)
			if pace.Progress.Request != "" {
				asked.Confirm = pace.Progress.Request
			}
			apply(leavers, pace.Steps)
			busy := map[string]int{}
			for _, l := range leavers {
				if l.Deleting {
					busy[l.Wave]++
				}
			}
			if n := busy["others"] + busy["old"]; busy["canary"] > 1 || n > 2 {
				t.Fatalf("seed %d: uninstalling %v", seed, busy)
			}
			leavers = slices.DeleteFunc(leavers, func(l removal.Leaver) bool {
				return l.Deleting && random.IntN(3) == 0
			})
			for i := range leavers {
				if !leavers[i].Deleting {
					leavers[i].Reach = []removal.Reach{removal.Online, removal.Online, removal.Offline}[random.IntN(3)]
				}
			}
		}
	}
}

func apply(leavers []removal.Leaver, steps []removal.Step) {
	for _, step := range steps {
		for i := range leavers {
			if l := &leavers[i]; l.Namespace == step.Namespace {
				if step.SetPolicy != "" {
					l.Policy = step.SetPolicy
				}
				l.Deleting = l.Deleting || step.Delete
			}
		}
	}
}
