// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// minute is a time so many minutes after noon.
func minute(n int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 3, 1, 12, n, 0, 0, time.UTC)}
}

// canary is a rollout whose first wave is verified.
func canary() *v1alpha1.OperatorRollout {
	ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "echo-2"}}
	ro.Spec.Operator.Name, ro.Spec.Release.Version = "echo", "1.1.0"
	ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "rest", Gate: "go", By: "jane", At: *minute(4)}}
	ro.Status.StartedAt = minute(0)
	ro.Status.Clusters = v1alpha1.WaveCounts{Total: 3, Succeeded: 1, Pending: 2}
	ro.Status.Waves = []v1alpha1.WaveStatus{
		{Name: "canary", WaveCounts: v1alpha1.WaveCounts{Total: 1, Succeeded: 1}, StartedAt: minute(1),
			VerifiedAt: minute(3)},
		{Name: "empty", VerifiedAt: minute(3)},
		{Name: "rest", WaveCounts: v1alpha1.WaveCounts{Total: 2, Pending: 2}},
	}
	ro.Status.Phases = []v1alpha1.PhaseChange{{Phase: v1alpha1.RolloutPending, At: *minute(0)},
		{Phase: v1alpha1.RolloutProgressing, At: *minute(0)}}
	return ro
}

// into adds a phase.
func into(ro *v1alpha1.OperatorRollout, at int, phase v1alpha1.RolloutPhase, message string) {
	ro.Status.Phases = append(ro.Status.Phases, v1alpha1.PhaseChange{Phase: phase, At: *minute(at), Message: message})
}

func TestTransitions(t *testing.T) {
	first := []string{
		"12:00 started: payments/echo: rollout 1.0.0 -> 1.1.0 started on 3 clusters in 3 waves",
		"12:01 wave/canary/started: payments/echo 1.1.0: wave canary started on 1 cluster",
		"12:03 wave/canary/verified: payments/echo 1.1.0: wave canary verified: 1 of 1 cluster updated, 0 failed",
	}
	for name, test := range map[string]struct {
		edit func(*v1alpha1.OperatorRollout)
		// want is nil if the transitions are those of an unchanged
		// canary rollout, and else the transitions after the first.
		want []string
	}{
		"the first wave is verified": {},
		"paused and resumed twice": {
			edit: func(ro *v1alpha1.OperatorRollout) {
				into(ro, 5, v1alpha1.RolloutPaused,
					"paused: incident; clusters that were already admitted finish their update")
				into(ro, 6, v1alpha1.RolloutProgressing, "wave rest: 0 of 2 clusters updated, 0 in progress")
				into(ro, 7, v1alpha1.RolloutPaused, "paused; clusters that were already admitted finish their update")
				into(ro, 8, v1alpha1.RolloutProgressing, "")
			},
			want: []string{
				"12:05 paused: payments/echo 1.1.0: rollout paused: incident; clusters that were already " +
					"admitted finish their update",
				"12:06 resumed: payments/echo 1.1.0: rollout resumed: wave rest: 0 of 2 clusters updated, 0 in " +
					"progress",
				"12:07 paused: payments/echo 1.1.0: rollout paused; clusters that were already admitted " +
					"finish their update",
				"12:08 resumed: payments/echo 1.1.0: rollout resumed",
			},
		},
		"a wave fails by its clusters, and the rollout is rolled back": {
			edit: func(ro *v1alpha1.OperatorRollout) {
				ro.Status.Waves[2].StartedAt, ro.Status.Waves[2].FailedAt = minute(5), minute(6)
				ro.Status.Waves[2].Failed, ro.Status.Waves[2].MaxFailures = 2, 1
				into(ro, 6, v1alpha1.RolloutRolledBack, "rolled back, as its failure policy says: wave rest: 2 "+
					"clusters failed, 1 allowed: a, b")
			},
			want: []string{
				"12:05 wave/rest/started: payments/echo 1.1.0: wave rest started on 2 clusters",
				"12:06 wave/rest/failed: payments/echo 1.1.0: wave rest failed: 2 clusters failed, 1 allowed",
				"12:06 rolled-back: payments/echo 1.1.0: rollout rolled back, as its failure policy says: wave rest: " +
					"2 clusters failed, 1 allowed: a, b",
			},
		},
		"a wave fails by its gate, and the rollout halts": {
			edit: func(ro *v1alpha1.OperatorRollout) {
				ro.Status.Waves[2].FailedAt = minute(6)
				ro.Status.Waves[2].Gates = []v1alpha1.GateStatus{{Name: "go", Verdict: v1alpha1.GatePassed},
					{Name: "budget", Verdict: v1alpha1.GateFailed, Evidence: "burns 20 times"}}
				into(ro, 6, v1alpha1.RolloutHalted, "gate budget of wave rest failed")
			},
			want: []string{
				"12:06 wave/rest/failed: payments/echo 1.1.0: wave rest failed: gate budget: burns 20 times",
				"12:06 halted: payments/echo 1.1.0: rollout halted: gate budget of wave rest failed",
			},
		},
		"it ends in one way or another": {
			edit: func(ro *v1alpha1.OperatorRollout) {
				into(ro, 5, v1alpha1.RolloutSucceeded, "3 of 3 clusters updated")
				into(ro, 6, v1alpha1.RolloutAborted, "aborted: no")
				into(ro, 7, v1alpha1.RolloutSuperseded, "a newer rollout took over")
			},
			want: []string{
				"12:05 succeeded: payments/echo 1.1.0: rollout succeeded: 3 of 3 clusters updated",
				"12:06 aborted: payments/echo 1.1.0: rollout aborted: no",
				"12:07 superseded: payments/echo 1.1.0: rollout superseded: a newer rollout took over",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ro := canary()
			if test.edit != nil {
				test.edit(ro)
			}
			var got []string
			for _, tr := range changes.Transitions(ro, "1.0.0") {
				got = append(got, fmt.Sprintf("%s %s: %s", tr.At.Format("15:04"), tr.Name, tr.Summary))
			}
			if diff := cmp.Diff(slices.Concat(first, test.want), got); diff != "" {
				t.Errorf("transitions (-want +got):\n%s", diff)
			}
		})
	}
	takesOver := canary()
	takesOver.Spec.Release = v1alpha1.Release{AsInstalled: true}
	if got, want := changes.Transitions(takesOver, "")[0].Summary, "payments/echo: rollout to take over the installed "+
		"versions started on 3 clusters in 3 waves"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := changes.Transitions(&v1alpha1.OperatorRollout{}, ""); len(got) > 0 {
		t.Errorf("a rollout that was not looked at yet has %v", got)
	}
}

// TestDetails reads what PagerDuty shows as a table.
func TestDetails(t *testing.T) {
	text := func(ro *v1alpha1.OperatorRollout, before, name string, at *metav1.Time) string {
		tr, known := changes.Describe(ro, before, name, *at)
		if !known {
			return "unknown"
		}
		lines := []string{tr.Summary}
		for _, key := range slices.Sorted(maps.Keys(tr.Details)) {
			lines = append(lines, fmt.Sprintf("%s: %v", key, tr.Details[key]))
		}
		return strings.Join(lines, "\n") + "\n"
	}
	ro := canary()
	ro.Spec.Approvals = append(ro.Spec.Approvals,
		v1alpha1.Approval{Wave: "canary", Gate: "go", By: "joe", At: *minute(1)},
		v1alpha1.Approval{Wave: "canary", Gate: "sure", By: "ann", At: *minute(0)})
	wave := `payments/echo 1.1.0: wave canary verified: 1 of 1 cluster updated, 0 failed
approved_by: ann, joe
clusters: 1 of 3 clusters updated, 0 failed
kind: rollout
look: bellwether rollout get echo-2 -n payments
operator: payments/echo
rollout: echo-2
version: 1.1.0
version_before: several versions
wave: canary
wave_clusters: 1 of 1 cluster updated, 0 failed
`
	if diff := cmp.Diff(wave, text(ro, "several versions", "wave/canary/verified", minute(3))); diff != "" {
		t.Errorf("wave (-want +got):\n%s", diff)
	}
	if got := text(ro, "", "wave/canary/verified", minute(4)); got != "unknown" {
		t.Errorf("at another time there is %s", got)
	}

	back := canary()
	back.Name, back.Spec.Approvals, back.Spec.Release.Version = "echo-3", nil, "1.0.0"
	back.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-2", Version: "1.1.0", Reason: "wave rest failed",
		Automatic: true}
	started := `payments/echo: automatic rollback 1.1.0 -> 1.0.0 started on 3 clusters in 3 waves, of rollout echo-2: wave rest failed
clusters: 1 of 3 clusters updated, 0 failed
kind: automatic rollback
look: bellwether rollout get echo-3 -n payments
operator: payments/echo
reason: wave rest failed
rolled_back_rollout: echo-2
rollout: echo-3
version: 1.0.0
version_before: 1.1.0
`
	if diff := cmp.Diff(started, text(back, changes.VersionBefore(back, nil), "started", minute(0))); diff != "" {
		t.Errorf("rollback (-want +got):\n%s", diff)
	}
}
