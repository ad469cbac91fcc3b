// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestRollout(t *testing.T) {
	soaking := fixture.HaltedRollout()
	soaking.Status.Phase, soaking.Status.Message = v1alpha1.RolloutProgressing, "wave prod soaks until 12:06:00"
	soaking.Status.Waves[1] = v1alpha1.WaveStatus{
		Name: "prod", Phase: v1alpha1.WaveSoaking, WaveCounts: v1alpha1.WaveCounts{Total: 3, Succeeded: 3},
		UpdatedAt: fixture.AgoPtr(4 * time.Minute),
	}
	soaking.Status.Waves[1].Updated = 3
	healthy := fixture.Installs()
	healthy[2], healthy[3] = fixture.UpdatedInstall("prod-2", "prod"), fixture.UpdatedInstall("prod-3", "prod")
	online := fixture.FleetOfFour()
	online[3].Status.Conditions = online[2].Status.Conditions
	sick := soaking.DeepCopy()
	sick.Status.Message = "wave prod: 1 cluster is not Ready"
	sick.Status.Waves[1].InterruptedAt = fixture.AgoPtr(20 * time.Second)
	sick.Status.Unready = []v1alpha1.UnreadyCluster{{Cluster: "prod-2", Since: fixture.Ago(20 * time.Second)}}
	unready := fixture.Installs()
	unready[2], unready[3] = healthy[2], healthy[3]
	unready[2].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
		ObservedGeneration: 2, Reason: v1alpha1.ReasonPodsUnavailable, Message: "Deployment echo: 0 of 1 available"}}
	outdated := fixture.Operator()
	outdated.Status.Rollout.StrategyOutdated = true
	gated := fixture.HaltedRollout()
	gated.Status.Phase, gated.Status.Message = v1alpha1.RolloutProgressing, "wave rest waits for an approval"
	gated.Status.Waves[1].Phase = v1alpha1.WaveVerified
	gated.Status.Waves[2].Phase = v1alpha1.WaveGated
	paused := fixture.HaltedRollout()
	paused.Spec.Paused, paused.Spec.PausedReason, paused.Status.Phase = true, "incident 4711", v1alpha1.RolloutPaused
	held, holding := fixture.HaltedRollout(), fixture.Operator()
	held.Status.Phase, held.Status.Message = v1alpha1.RolloutRolledBack, "rolled back: it is bad"
	holding.Spec.Holds = []v1alpha1.VersionHold{
		{Version: "1.1.0", Settings: "hash", Rollout: held.Name, Reason: "it was rolled back: it is bad",
			Changes: []string{"environment variable LEVEL has another value", "node selector disk is added: fast"}},
		{Version: "1.0.0", Rollout: "echo-1", Reason: "of another rollout"}}
	skipped := fixture.HaltedRollout()
	skipped.Status.Phase, skipped.Status.Message = v1alpha1.RolloutProgressing, "wave rest waits for its turn"
	skipped.Status.Waves[0] = v1alpha1.WaveStatus{Name: "canary", Phase: v1alpha1.WaveSkipped}
	skipped.Status.Waves[1] = v1alpha1.WaveStatus{Name: "prod", Phase: v1alpha1.WaveSkipped,
		WaveCounts: v1alpha1.WaveCounts{Total: 1, Pending: 1}, Gates: []v1alpha1.GateStatus{{Name: "go", Approval: true,
			Verdict: v1alpha1.GateWaiting, Evidence: "not approved yet", WaitingSince: fixture.AgoPtr(time.Minute)}}}
	unobserved := fixture.HaltedRollout()
	unobserved.Status.Phase = v1alpha1.RolloutProgressing
	unobserved.Status.Message = "wave prod is not verified: no cluster of the wave was observed to run 1.1.0: 3 " +
		"clusters left the fleet or the selection"
	unobserved.Status.Waves[1] = v1alpha1.WaveStatus{Name: "prod", Phase: v1alpha1.WaveVerifying,
		WaveCounts: v1alpha1.WaveCounts{Total: 3, Removed: 3}, Gates: []v1alpha1.GateStatus{{
			Name: v1alpha1.GateObservation, Verdict: v1alpha1.GateWaiting, WaitingSince: fixture.AgoPtr(time.Minute),
			Evidence: "no cluster of the wave was observed to run 1.1.0: 3 clusters left the fleet or the selection"}}}
	aborted := soaking.DeepCopy()
	aborted.Status.Phase, aborted.Status.Message = v1alpha1.RolloutAborted, "aborted: not today"
	aborted.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "not today"}
	waiting := fixture.HaltedRollout()
	waiting.Status.Phase, waiting.Status.Message = v1alpha1.RolloutProgressing, "wave prod: 0 of 1 cluster updated"
	waiting.Status.Waves[1].WaveCounts = v1alpha1.WaveCounts{Total: 1, Pending: 1}
	waiting.Status.HeldBack = []v1alpha1.HeldBackClusters{{Reason: v1alpha1.ReasonVetoed, Count: 1,
		Clusters: []string{"prod-1"}, Message: "the owner of the cluster refuses changes: quarter end"}}
	abortedEarly := waiting.DeepCopy()
	abortedEarly.Status.Phase, abortedEarly.Status.Message = v1alpha1.RolloutAborted, "aborted: not today"
	abortedEarly.Spec.Abort = aborted.Spec.Abort
	moved := soaking.DeepCopy()
	moved.Spec.Strategy.Waves[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}
	pending := fixture.HaltedRollout()
	pending.Status = v1alpha1.OperatorRolloutStatus{}
	for name, test := range map[string]struct {
		rollout  *v1alpha1.OperatorRollout
		style    term.Style
		installs []v1alpha1.OperatorInstall
		clusters []v1alpha1.FleetCluster
		operator *v1alpha1.ManagedOperator
	}{
		"halted":        {rollout: fixture.HaltedRollout()},
		"coloured":      {rollout: fixture.HaltedRollout(), style: term.Style{Colour: true, Width: 100}},
		"narrow":        {rollout: fixture.HaltedRollout(), style: term.Style{Width: 60}},
		"soaking":       {rollout: soaking, installs: healthy, clusters: online},
		"unready":       {rollout: sick, installs: unready, clusters: online},
		"offline":       {rollout: soaking, installs: healthy},
		"outdated":      {rollout: fixture.HaltedRollout(), operator: outdated},
		"gated":         {rollout: gated},
		"paused":        {rollout: paused},
		"pending":       {rollout: pending},
		"held":          {rollout: held, operator: holding},
		"skipped":       {rollout: skipped},
		"moved":         {rollout: moved, installs: healthy, clusters: online},
		"aborted":       {rollout: aborted, installs: healthy, clusters: online},
		"held-from-all": {rollout: waiting, installs: healthy[:1], clusters: online},
		"aborted-early": {rollout: abortedEarly, installs: healthy[:1], clusters: online},
		"not-observed":  {rollout: unobserved, installs: fixture.Installs()[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			in := RolloutInput{Now: fixture.Noon, Rollout: test.rollout, Installs: test.installs,
				Clusters: test.clusters, Operator: test.operator}
			if in.Installs == nil {
				in.Installs = fixture.Installs()
			}
			if in.Clusters == nil {
				in.Clusters = fixture.FleetOfFour()
			}
			fixture.AssertGolden(t, "rollout-"+name, RenderRollout(in, test.style))
			long := RenderRollout(fixture.WithRealisticNames(t, in), term.Style{Width: fixture.MaxWidth})
			fixture.AssertWidth(t, "rollout get", long)
		})
	}
}

func TestBar(t *testing.T) {
	for name, test := range map[string]struct {
		counts v1alpha1.WaveCounts
		want   string
	}{
		"empty":    {want: "··········"},
		"none yet": {counts: v1alpha1.WaveCounts{Total: 4, Pending: 4}, want: "··········"},
		"all":      {counts: v1alpha1.WaveCounts{Total: 4, Succeeded: 4}, want: "██████████"},
		"nearly all": {counts: v1alpha1.WaveCounts{Total: 1000, Succeeded: 999, InProgress: 1},
			want: "█████████▒"},
		"one of many": {counts: v1alpha1.WaveCounts{Total: 1000, Failed: 1, Pending: 999}, want: "x·········"},
		"half and failed": {counts: v1alpha1.WaveCounts{Total: 4, Succeeded: 2, Failed: 1, InProgress: 1},
			want: "█████▒▒xxx"},
		"removed are gone": {counts: v1alpha1.WaveCounts{Total: 4, Succeeded: 2, Removed: 2}, want: "██████████"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, drawBar(test.counts, 10)); diff != "" {
				t.Errorf("bar (-want +got):\n%s", diff)
			}
		})
	}
}

// In a log, the health of each cluster is a line when the soak begins and when it
// changes.
func TestSoakChanges(t *testing.T) {
	soak := func(ready bool) RolloutInput {
		r := fixture.HaltedRollout()
		r.Status.Phase, r.Status.Waves[1].Phase = v1alpha1.RolloutProgressing, v1alpha1.WaveSoaking
		in := RolloutInput{Now: fixture.Noon, Rollout: r, Clusters: fixture.FleetOfFour(),
			Installs: []v1alpha1.OperatorInstall{fixture.UpdatedInstall("prod-1", "prod")}}
		if !ready {
			in.Installs[0].Status.Conditions[0].Status = metav1.ConditionFalse
			in.Installs[0].Status.Conditions[0].Message = "Deployment echo: 0 of 1 available"
		}
		return in
	}
	const line = "echo-2  wave prod  soak: cluster prod-1 is "
	for name, test := range map[string]struct {
		before, after RolloutInput
		want          []string
	}{
		"it begins": {after: soak(true), want: []string{line + "Ready: 1.1.0 runs"}},
		"no news":   {before: soak(true), after: soak(true)},
		"falls sick": {before: soak(true), after: soak(false),
			want: []string{line + "not Ready: Deployment echo: 0 of 1 available"}},
		"is restored": {before: soak(false), after: soak(true), want: []string{line + "Ready: 1.1.0 runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, listSoakChanges(test.before, test.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolloutChanges(t *testing.T) {
	look := func(change func(*v1alpha1.OperatorRollout)) RolloutInput {
		r := fixture.HaltedRollout()
		change(r)
		return RolloutInput{Now: fixture.Noon, Rollout: r, Clusters: fixture.FleetOfFour()}
	}
	same := look(func(*v1alpha1.OperatorRollout) {})
	withFailure := same
	withFailure.Installs = fixture.Installs()[2:3]
	for name, test := range map[string]struct {
		before, after RolloutInput
		want          []string
	}{
		"the first look": {after: same, want: []string{
			"echo-2  Halted  wave prod has 1 failure, 0 are allowed: prod-2",
			"echo-2  wave canary  Verified: 1/1 updated",
			"echo-2  wave prod  Updating: 1/3 updated, 1 failed, 1 deferred",
		}},
		"nothing": {before: same, after: same},
		"a wave is gated": {
			before: same,
			after:  look(func(r *v1alpha1.OperatorRollout) { r.Status.Waves[2].Phase = v1alpha1.WaveGated }),
			want:   []string{"echo-2  wave rest  Gated: 0/1 updated"},
		},
		"a gate is passed": {
			before: look(func(r *v1alpha1.OperatorRollout) { r.Status.Waves[2].Phase = v1alpha1.WaveGated }),
			after: look(func(r *v1alpha1.OperatorRollout) {
				r.Status.Waves[2].Phase = v1alpha1.WaveGated
				r.Status.Waves[2].Gates[0] = v1alpha1.GateStatus{Name: "sre", Verdict: v1alpha1.GatePassed,
					Evidence: "approved by anna: fine"}
			}),
			want: []string{"echo-2  wave rest  gate sre passed: approved by anna: fine"},
		},
		"a cluster fails": {
			before: same, after: withFailure,
			want: []string{"echo-2  cluster prod-2  Failed CSVFailed: CSV echo-operator.v1.1.0 is Failed: deployment " +
				"echo-operator is not available"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ListRolloutChanges(test.before, test.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
