// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestRollout(t *testing.T) {
	soaking := fixture.RolloutAt()
	soaking.Status.Phase, soaking.Status.Message = v1alpha1.RolloutProgressing, "wave prod soaks until 12:06:00"
	soaking.Status.Waves[1] = v1alpha1.WaveStatus{
		Name: "prod", Phase: v1alpha1.WaveSoaking, WaveCounts: v1alpha1.WaveCounts{Total: 3, Succeeded: 3},
		UpdatedAt: fixture.AgoPtr(4 * time.Minute),
	}
	gated := fixture.RolloutAt()
	gated.Status.Phase, gated.Status.Message = v1alpha1.RolloutProgressing, "wave rest waits for an approval"
	gated.Status.Waves[1].Phase = v1alpha1.WaveVerified
	gated.Status.Waves[2].Phase = v1alpha1.WaveGated
	paused := fixture.RolloutAt()
	paused.Spec.Paused, paused.Spec.PausedReason, paused.Status.Phase = true, "incident 4711", v1alpha1.RolloutPaused
	pending := fixture.RolloutAt()
	pending.Status = v1alpha1.OperatorRolloutStatus{}
	for name, test := range map[string]struct {
		rollout *v1alpha1.OperatorRollout
		style   term.Style
	}{
		"halted":   {rollout: fixture.RolloutAt()},
		"coloured": {rollout: fixture.RolloutAt(), style: term.Style{Colour: true, Width: 100}},
		"narrow":   {rollout: fixture.RolloutAt(), style: term.Style{Width: 60}},
		"soaking":  {rollout: soaking},
		"gated":    {rollout: gated},
		"paused":   {rollout: paused},
		"pending":  {rollout: pending},
	} {
		t.Run(name, func(t *testing.T) {
			in := RolloutInput{Now: fixture.Noon, Rollout: test.rollout, Installs: fixture.Installs(),
				Clusters: fixture.FleetOfFour()}
			fixture.Golden(t, "rollout-"+name, Rollout(in, test.style))
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
			if diff := cmp.Diff(test.want, bar(test.counts, 10)); diff != "" {
				t.Errorf("bar (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolloutChanges(t *testing.T) {
	look := func(change func(*v1alpha1.OperatorRollout)) RolloutInput {
		r := fixture.RolloutAt()
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
			if diff := cmp.Diff(test.want, RolloutChanges(test.before, test.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
