// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestMayAdmit(t *testing.T) {
	t.Parallel()
	type answers struct{ mayAdmit, isRunning, isStopped bool }
	running, stopped := answers{mayAdmit: true, isRunning: true}, answers{isStopped: true}
	for phase, want := range map[v1alpha1.RolloutPhase]answers{
		"": running, v1alpha1.RolloutPending: running, v1alpha1.RolloutProgressing: running,
		v1alpha1.RolloutPaused: running, v1alpha1.RolloutHalted: running,
		v1alpha1.RolloutSucceeded: {mayAdmit: true}, v1alpha1.RolloutAborted: stopped,
		v1alpha1.RolloutSuperseded: stopped, v1alpha1.RolloutRolledBack: stopped,
	} {
		for _, paused := range []bool{false, true} {
			for _, abort := range []*v1alpha1.RolloutAbort{nil, {Reason: "bad"}} {
				r := v1alpha1.OperatorRollout{Spec: v1alpha1.OperatorRolloutSpec{Paused: paused, Abort: abort},
					Status: v1alpha1.OperatorRolloutStatus{Phase: phase}}
				want := want
				if abort != nil { // the status says so later
					want.mayAdmit, want.isRunning = false, false
				}
				if got := (answers{r.MayAdmit(), r.IsRunning(), r.IsStopped()}); got != want {
					t.Errorf("phase %q, paused %t, abort %v: %+v, want %+v", phase, paused, abort, got, want)
				}
			}
		}
	}
}
