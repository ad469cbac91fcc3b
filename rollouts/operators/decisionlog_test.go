// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

var (
	decisionTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	earlier      = metav1.NewTime(decisionTime.Add(-time.Hour))
)

// logFixture is an operator with one rollout that runs.
type logFixture struct {
	operators.DecisionLogInput
}

func newLogFixture() *logFixture {
	f := &logFixture{DecisionLogInput: operators.DecisionLogInput{Now: decisionTime,
		Operator: &v1alpha1.ManagedOperator{}}}
	f.rollout(1, v1alpha1.RolloutProgressing)
	return f
}

func (f *logFixture) rollout(revision int64, phase v1alpha1.RolloutPhase) *v1alpha1.OperatorRollout {
	r := v1alpha1.OperatorRollout{}
	r.Name = fmt.Sprintf("echo-%d", revision)
	r.Spec.Revision, r.Spec.Release.Version, r.Status.Phase = revision, fmt.Sprintf("1.%d.0", revision), phase
	f.Rollouts = append(f.Rollouts, r)
	return &f.Rollouts[len(f.Rollouts)-1]
}

// update has the hub look, and returns what is new in words.
func (f *logFixture) approve(version string) {
	f.Operator.Spec.Updates = &v1alpha1.VersionUpdates{Approved: &v1alpha1.VersionApproval{Version: version, By: "ann",
		Reason: "tested", At: earlier}}
}

func (f *logFixture) update() []string {
	log, fresh := operators.UpdateDecisionLog(f.DecisionLogInput)
	f.Operator.Status.Decisions = log
	var texts []string
	for _, d := range fresh {
		texts = append(texts, d.At.UTC().Format("15:04")+" "+operators.FormatLoggedDecision(d))
	}
	return texts
}

func ofSettings() []v1alpha1.VersionHold {
	return []v1alpha1.VersionHold{{Version: "1.1.0", Settings: "hash", Release: "hash", Rollout: "echo-1",
		Reason: "bad"}}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	approval := v1alpha1.Approval{Wave: "rest", Gate: "go", By: "ann", Reason: "fine", At: earlier}
	for name, test := range map[string]struct {
		// before is recorded, then comes after.
		before, after func(*logFixture)
		want          []string
	}{
		"nothing": {},
		"an approval": {
			after: func(f *logFixture) { f.Rollouts[0].Spec.Approvals = []v1alpha1.Approval{approval} },
			want:  []string{"11:00 Approved in rollout echo-1, gate go of wave rest, by ann: fine"},
		},
		"what was recorded is not recorded again": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Approvals = []v1alpha1.Approval{approval} },
		},
		"an approval that is withdrawn": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Approvals = []v1alpha1.Approval{approval} },
			after:  func(f *logFixture) { f.Rollouts[0].Spec.Approvals = nil },
			want:   []string{"12:00 ApprovalWithdrawn in rollout echo-1, gate go of wave rest"},
		},
		"an approval by somebody else instead": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Approvals = []v1alpha1.Approval{approval} },
			after:  func(f *logFixture) { f.Rollouts[0].Spec.Approvals[0].By = "bob" },
			want:   []string{"11:00 Approved in rollout echo-1, gate go of wave rest, by bob: fine"},
		},
		"an approval of a version": {
			after: func(f *logFixture) { f.approve("1.2.0") },
			want:  []string{"11:00 Approved, version 1.2.0, by ann: tested"},
		},
		"an approval of the next version withdraws none": {
			before: func(f *logFixture) { f.approve("1.2.0") },
			after:  func(f *logFixture) { f.approve("1.3.0") },
			want:   []string{"11:00 Approved, version 1.3.0, by ann: tested"},
		},
		"an approval of a version that is withdrawn": {
			before: func(f *logFixture) { f.approve("1.2.0") },
			after:  func(f *logFixture) { f.Operator.Spec.Updates = nil },
			want:   []string{"12:00 ApprovalWithdrawn, version 1.2.0"},
		},
		"an override of a gate": {
			after: func(f *logFixture) {
				f.Rollouts[0].Spec.Overrides = []v1alpha1.GateOverride{{Wave: "rest", Gate: "budget", By: "ann",
					Reason: "noise"}}
			},
			want: []string{"12:00 GateOverridden in rollout echo-1, gate budget of wave rest, by ann: noise"},
		},
		"an override of windows": {
			after: func(f *logFixture) {
				f.Rollouts[0].Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "CVE", At: earlier}
			},
			want: []string{"11:00 WindowsOverridden in rollout echo-1, by ann: CVE"},
		},
		"a pause": {
			after: func(f *logFixture) {
				f.Rollouts[0].Spec.Paused, f.Rollouts[0].Spec.PausedReason = true, "incident"
			},
			want: []string{"12:00 Paused in rollout echo-1: incident"},
		},
		"the end of a pause": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Paused = true },
			after:  func(f *logFixture) { f.Rollouts[0].Spec.Paused = false },
			want:   []string{"12:00 Resumed in rollout echo-1"},
		},
		"retries": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Retries = 1 },
			after:  func(f *logFixture) { f.Rollouts[0].Spec.Retries = 2 },
			want:   []string{"12:00 Retried in rollout echo-1, attempt 2"},
		},
		"a rollback by a person": {
			after: func(f *logFixture) {
				f.Rollouts[0].Spec.Abort = &v1alpha1.RolloutAbort{Reason: "errors",
					Rollback: &v1alpha1.RollbackRequest{}}
			},
			want: []string{"12:00 RollbackRequested in rollout echo-1, version 1.1.0: errors"},
		},
		"a rollback by the hub": {
			after: func(f *logFixture) {
				f.Rollouts[0].Status.Phase = v1alpha1.RolloutRolledBack
				r := f.rollout(2, v1alpha1.RolloutProgressing)
				r.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-1", Version: "1.1.0", Reason: "a gate failed",
					Automatic: true}
				f.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Rollout: "echo-1", Reason: "it was " +
					"rolled back"}}
			},
			want: []string{"12:00 VersionHeld, version 1.1.0, by hub: it was rolled back",
				"12:00 RollbackStarted in rollout echo-2, version 1.1.0, brought by echo-1, by hub: a gate failed"},
		},
		"a hold that a person lifts": {
			before: func(f *logFixture) {
				f.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Rollout: "echo-1", Reason: "bad"}}
			},
			after: func(f *logFixture) { f.Operator.Spec.Holds = nil },
			want:  []string{"12:00 HoldLifted, version 1.1.0"},
		},
		"a hold that the hub lifts": {
			before: func(f *logFixture) {
				f.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Rollout: "echo-1", Reason: "bad"}}
			},
			after: func(f *logFixture) {
				f.Operator.Spec.Holds = nil
				f.LiftsHolds = func(version string) bool { return version == "1.1.0" }
			},
			want: []string{"12:00 HoldLifted, version 1.1.0, by hub"},
		},
		"a hold of settings": {
			after: func(f *logFixture) { f.Operator.Spec.Holds = ofSettings() },
			want:  []string{"12:00 VersionHeld, settings of version 1.1.0, by hub: bad"},
		},
		"a hold of settings that the hub lifts": {
			before: func(f *logFixture) { f.Operator.Spec.Holds = ofSettings() },
			after: func(f *logFixture) {
				f.Operator.Spec.Holds = nil
				f.LiftsHolds = func(version string) bool { return version == "1.1.0" }
			},
			want: []string{"12:00 HoldLifted, settings of version 1.1.0, by hub"},
		},
		"a hold of settings that a hub of an earlier version recorded": {
			before: func(f *logFixture) {
				f.Operator.Spec.Holds = ofSettings()
				f.Operator.Spec.Holds[0].Settings, f.Operator.Spec.Holds[0].Release = "", ""
			},
			after: func(f *logFixture) { f.Operator.Spec.Holds = ofSettings() },
		},
		"an abort, and one by a newer rollout": {
			after: func(f *logFixture) {
				f.Rollouts[0].Spec.Abort = &v1alpha1.RolloutAbort{Reason: "enough"}
				f.rollout(2, v1alpha1.RolloutProgressing).Spec.Abort = &v1alpha1.RolloutAbort{
					Reason: "superseded by revision 3", Superseded: true}
			},
			want: []string{"12:00 Aborted in rollout echo-1: enough",
				"12:00 Superseded in rollout echo-2, by hub: superseded by revision 3"},
		},
		"a block": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Blocked = "it loses data" },
			after:  func(f *logFixture) { f.Rollouts[0].Spec.Blocked = "" },
			want:   []string{"12:00 Unblocked in rollout echo-1, version 1.1.0"},
		},
		"a removal that is confirmed, and a restart": {
			after: func(f *logFixture) {
				f.Operator.Spec.Removal = &v1alpha1.OperatorRemoval{Confirm: "abc"}
				f.Operator.Spec.Restart = "now"
			},
			want: []string{"12:00 RestartRequested, restart now", "12:00 RemovalConfirmed, request abc"},
		},
		"a policy that is not met": {
			after: func(f *logFixture) {
				f.Rollouts[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady,
					Reason: v1alpha1.ReasonPolicyNotMet, Message: "too few waves"}}
			},
			want: []string{"12:00 PolicyNotMet in rollout echo-1, by hub: too few waves"},
		},
		"a rollout that was deleted withdraws nothing": {
			before: func(f *logFixture) { f.Rollouts[0].Spec.Approvals = []v1alpha1.Approval{approval} },
			after:  func(f *logFixture) { f.Rollouts = nil },
		},
		"a rollout that ended long ago is not looked at": {
			after: func(f *logFixture) {
				f.Rollouts[0].Status.Phase, f.Rollouts[0].Spec.Paused = v1alpha1.RolloutSucceeded, true
				f.rollout(2, v1alpha1.RolloutSucceeded)
				f.rollout(3, v1alpha1.RolloutSucceeded)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newLogFixture()
			if test.before != nil {
				test.before(f)
			}
			f.update()
			if test.after != nil {
				test.after(f)
			}
			if diff := cmp.Diff(test.want, f.update()); diff != "" {
				t.Errorf("new decisions (-want +got):\n%s", diff)
			}
			if again := f.update(); again != nil {
				t.Errorf("recorded again: %v", again)
			}
		})
	}
}

// The newest 50 are kept, the newest first; what was dropped and still holds is not
// recorded again.
func TestTheTrailIsBounded(t *testing.T) {
	t.Parallel()
	f := newLogFixture()
	for i := range 70 {
		f.Rollouts[0].Spec.Approvals = append(f.Rollouts[0].Spec.Approvals, v1alpha1.Approval{
			Wave: fmt.Sprintf("w%02d", i), Gate: "go", By: "ann", Reason: "fine",
			At: metav1.NewTime(decisionTime.Add(time.Duration(i) * time.Second))})
	}
	if n := len(f.update()); n != 70 {
		t.Errorf("%d decisions are new", n)
	}
	log := f.Operator.Status.Decisions
	if len(log.Entries) != 50 || log.Dropped != 20 || len(log.InForce) != 70 {
		t.Errorf("%d entries, %d dropped, %d in force", len(log.Entries), log.Dropped, len(log.InForce))
	}
	if log.Entries[0].On != "gate go of wave w69" || log.Entries[49].On != "gate go of wave w20" {
		t.Errorf("the newest is %s, the oldest %s", log.Entries[0].On, log.Entries[49].On)
	}
	if again := f.update(); again != nil || f.Operator.Status.Decisions.Dropped != 20 {
		t.Errorf("recorded again: %v", again)
	}
}
