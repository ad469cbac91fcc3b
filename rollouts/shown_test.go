// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestShownPhase checks that the shown phase of a wave matches what the wave does.
func TestShownPhase(t *testing.T) {
	some := v1alpha1.WaveCounts{Total: 2, Pending: 1, InProgress: 1}
	none := v1alpha1.WaveCounts{Total: 2, Pending: 1, Deferred: 1}
	for name, c := range map[string]struct {
		rollout v1alpha1.RolloutPhase
		wave    v1alpha1.WavePhase
		counts  v1alpha1.WaveCounts
		want    string
	}{
		"it updates":                {v1alpha1.RolloutProgressing, v1alpha1.WaveUpdating, some, "Updating"},
		"no cluster is admitted":    {v1alpha1.RolloutProgressing, v1alpha1.WaveUpdating, none, "Waiting"},
		"halted with a cluster":     {v1alpha1.RolloutHalted, v1alpha1.WaveUpdating, some, "Updating"},
		"aborted while it updates":  {v1alpha1.RolloutAborted, v1alpha1.WaveUpdating, some, "Stopped"},
		"aborted before it began":   {v1alpha1.RolloutAborted, v1alpha1.WaveUpdating, none, "Not started"},
		"aborted while it soaks":    {v1alpha1.RolloutAborted, v1alpha1.WaveSoaking, some, "Stopped"},
		"superseded in a later one": {v1alpha1.RolloutSuperseded, v1alpha1.WaveWaiting, none, "Not started"},
		"rolled back while gated":   {v1alpha1.RolloutRolledBack, v1alpha1.WaveGated, none, "Not started"},
		"aborted after it":          {v1alpha1.RolloutAborted, v1alpha1.WaveVerified, some, "Verified"},
		"aborted after none":        {v1alpha1.RolloutAborted, v1alpha1.WaveSkipped, none, "Skipped"},
		"joined after success":      {v1alpha1.RolloutSucceeded, v1alpha1.WaveUpdating, some, "Updating"},
	} {
		r := &v1alpha1.OperatorRollout{}
		r.Status.Phase = c.rollout
		if got := rollouts.ShownPhase(r, &v1alpha1.WaveStatus{Phase: c.wave, WaveCounts: c.counts}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
