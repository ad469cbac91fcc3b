// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestWhatIsToldFirst combines two problems. The problem that a person must solve first must come first.
func TestWhatIsToldFirst(t *testing.T) {
	faults := faults()
	faults["held"] = fault{change: func(in *InstallInput) {
		stall(&in.Operator.Status.Conditions, v1alpha1.ReasonVersionHeld, "1.2.0 is held since 11:00: crash")
	}, state: Failed, reason: v1alpha1.ReasonVersionHeld}
	faults["rollback halted"] = fault{change: func(in *InstallInput) {
		in.Rollout.Spec.Rollback = &v1alpha1.RolloutRollback{}
		in.Rollout.Status.Phase = v1alpha1.RolloutHalted
		stall(&in.Rollout.Status.Conditions, v1alpha1.ReasonHalted, "wave prod: 1 cluster failed")
	}, state: Waiting, reason: v1alpha1.ReasonHalted}
	faults["rollout of others halted"] = fault{change: func(in *InstallInput) {
		faults["rollback halted"].change(in)
		in.Rollout.UID = "another"
	}, state: Failed, reason: v1alpha1.ReasonHalted}
	faults["rollout of others aborted"] = fault{change: func(in *InstallInput) {
		faults["rollout aborted"].change(in)
		in.Rollout.UID = "another"
	}, state: Failed, reason: v1alpha1.ReasonAborted}
	faults["agent too old"] = fault{change: onCluster(v1alpha1.ConditionVersionSupported,
		v1alpha1.ReasonAgentTooOld, "0.1.0"), state: Degraded, reason: v1alpha1.ReasonAgentTooOld}
	for _, test := range []struct {
		first string
		// then are the problems that follow.
		then []string
	}{
		{"offline", []string{"held", "alert fires", "gated"}},
		{"quota as reported", []string{"held", "rollback halted", "rollout of others halted",
			"rollout of others aborted", "unknown version", "drifted", "alert fires", "cluster unreadable"}},
		{"pods unavailable", []string{"held", "no upgrade path", "rollback halted", "rollout paused", "alert fires",
			"cluster unreadable"}},
		{"crash loop as reported", []string{"held", "rollback halted"}},
		{"scaled to zero", []string{"held", "unknown version"}},
		{"rollout of others halted", []string{"held"}},
		{"held", []string{"rollout of others aborted", "cluster unreadable", "drifted", "alert fires", "cluster paused",
			"agent too old"}},
		{"drifted", []string{"agent too old", "catalog unreachable", "alert fires", "gated", "rollout aborted"}},
		{"catalog unreachable", []string{"agent too old", "alert fires", "rollout paused"}},
		{"gated", []string{"alert fires", "budget spent"}},
		{"rollout aborted", []string{"alert fires", "budget spent"}},
		{"cluster paused", []string{"alert fires", "rollout soaking"}},
		{"alert fires", []string{"rollout soaking", "another release"}},
	} {
		for _, then := range test.then {
			t.Run(test.first+" before "+then, func(t *testing.T) {
				in, want := healthyInstall(), faults[test.first]
				faults[then].change(&in)
				faults[test.first].change(&in)
				if e := Install(in); e.State != want.state || e.Reason != want.reason {
					t.Errorf("%s %s (%s), want %s %s", e.State, e.Reason, e.Summary, want.state, want.reason)
				}
			})
		}
	}
}

// TestWaitingNamesAlerts checks that the summary of a Waiting state also names alerts.
func TestWaitingNamesAlerts(t *testing.T) {
	in, all := healthyInstall(), faults()
	all["alert fires"].change(&in)
	all["gated"].change(&in)
	if e := Install(in); e.State != Waiting || !strings.Contains(e.Summary, "firing alert") {
		t.Errorf("%s: %s", e.State, e.Summary)
	}
}

// TestOperatorThatDoesNotRun: what does not run comes before the hold of a version that was left, also of all clusters.
func TestOperatorThatDoesNotRun(t *testing.T) {
	in := healthyFleet()
	stall(&in.operator.Status.Conditions, v1alpha1.ReasonVersionHeld, "1.2.0 is held")
	notReady(&in.install.Status.Conditions, v1alpha1.ReasonPodsUnavailable, "exceeded quota")
	if e := in.explain("operator"); e.Reason != v1alpha1.ReasonPodsUnavailable {
		t.Errorf("%s %s: %s", e.State, e.Reason, e.Summary)
	}
}

// TestUnreadableClusterIsNotHidden checks that unreadable data is listed even if another problem comes first.
func TestUnreadableClusterIsNotHidden(t *testing.T) {
	in := healthyInstall()
	notReady(&in.Install.Status.Conditions, v1alpha1.ReasonPodsUnavailable, "exceeded quota")
	in.Downstream = &Downstream{Err: errors.New("no access")}
	if e := Install(in); e.Reason == remedy.ClusterUnreadable || len(e.Stale) != 1 {
		t.Errorf("%s %s, stale %+v", e.State, e.Reason, e.Stale)
	}
}

// TestPrecedence: every state has a place, and no place is there twice or without a reason.
func TestPrecedence(t *testing.T) {
	type place struct {
		state State
		about aspect
	}
	known := map[place]bool{}
	for _, p := range precedence {
		if at := (place{p.state, p.about}); p.why == "" || known[at] {
			t.Errorf("%+v is there twice, or without a reason", at)
		} else {
			known[at] = true
		}
	}
	for state := range severity {
		if !known[place{state, aboutRunning}] {
			t.Errorf("%s has no place", state)
		}
	}
}
