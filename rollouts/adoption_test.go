// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// takesOver changes the rollout so that it takes over the installed operators.
func (f *fixture) takesOver() {
	f.ro.Spec.Release = v1alpha1.Release{Package: "echo", Channel: "stable", Adopt: &v1alpha1.OperatorAdoption{},
		AsInstalled: true}
	for i := range f.Installs {
		f.Installs[i].Bundle = "echo.v1.0.0"
	}
}

// notAdoptable makes the agents of clusters report why they cannot take over the installed operator.
func (f *fixture) notAdoptable(why string, clusters ...int) {
	f.admit(0, clusters...)
	for _, i := range clusters {
		f.Installs[i].Stalled, f.Installs[i].StalledReason, f.Installs[i].StalledMessage = true, "NotAdoptable", why
	}
}

// TestTakesOver: waves work as for any rollout. What cannot be taken over stops it, and is named with the reason.
func TestTakesOver(t *testing.T) {
	t.Parallel()
	const argo = "Argo CD (team/echo) writes Subscription echo/echo. Remove it from Git."
	checkDecisions(t, map[string]decisionCase{
		"wave by wave": {
			given: func(f *fixture) { f.takesOver(); f.succeed(0) },
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 1 of 2 clusters taken over, 1 in " +
				"progress",
		},
		"the end": {
			given: func(f *fixture) {
				f.takesOver()
				f.verified()
				f.succeed(2, 3)
				f.ro.Status.Waves[1].Updated, f.ro.Status.Waves[1].UpdatedAt = 2, ago(0)
			},
			want: "Succeeded, one Verified, two Verified: 4 of 4 clusters taken over",
		},
		"some have nothing": {
			given: func(f *fixture) {
				f.takesOver()
				f.verified()
				f.succeed(2, 3)
				f.Installs[0].Bundle, f.Installs[3].Bundle = "", ""
				f.ro.Status.Waves[1].Updated, f.ro.Status.Waves[1].UpdatedAt = 2, ago(0)
			},
			want: "Succeeded, one Verified, two Verified: 2 of 4 clusters taken over, 2 had nothing to take over",
		},
		"some of a wave have nothing": {
			given: func(f *fixture) { f.takesOver(); f.succeed(0); f.Installs[0].Bundle = "" },
			want: "Progressing, one Updating, two Waiting, batch b: wave one: 0 of 2 clusters taken over, 1 had " +
				"nothing to take over, 1 in progress",
		},
		"a refusal": {
			given: func(f *fixture) { f.takesOver(); f.notAdoptable(argo, 0); f.succeed(1) },
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotAdoptable: " + argo +
				"); nothing more is taken over until that changes: do what the message says, accept the finding in " +
				"spec.adopt.accept, or take the cluster out of the selection; `bellwether fleet scan --package echo` " +
				"shows all of them",
		},
		"an agent of an earlier version": {
			given: func(f *fixture) {
				f.takesOver()
				f.notAdoptable(`bundle "" is not in channel "stable" of package "echo"`, 0)
				f.Installs[0].StalledReason = v1alpha1.ReasonUnknownVersion
				f.succeed(1)
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (AgentTooOld: its " +
				"agent cannot take operators over, and has changed nothing; upgrade it with `bellwether fleet join " +
				"a`, or with the tool that installs its chart); nothing more is taken over until that changes: do " +
				"what the message says, accept the finding in spec.adopt.accept, or take the cluster out of the " +
				"selection; `bellwether fleet scan --package echo` shows all of them",
		},
		"a refusal, and the policy is to roll back": {
			given: func(f *fixture) {
				f.takesOver()
				f.ro.Spec.Strategy.OnFailure = v1alpha1.FailureRollback
				f.notAdoptable("It has failed.", 0)
				f.succeed(1)
				f.Installs[1].Previous = before("1.0.0")
			},
			want: "Halted, one Updating, two Waiting: wave one: 1 cluster failed, 0 allowed: a (NotAdoptable: It has " +
				"failed.); nothing more is taken over until that changes: do what the message says, accept the " +
				"finding in spec.adopt.accept, or take the cluster out of the selection; `bellwether fleet scan " +
				"--package echo` shows all of them",
		},
		"a person asks for a rollback": {
			given: func(f *fixture) {
				f.takesOver()
				f.succeed(0, 1)
				f.Installs[0].Previous = before("1.0.0")
				f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "no", Rollback: &v1alpha1.RollbackRequest{}}
			},
			want: "Aborted, one Updating, two Waiting: aborted: no",
		},
		"no new permissions": {
			given: func(f *fixture) {
				f.takesOver()
				f.wave(0).Gates = []v1alpha1.Gate{{Name: "rights",
					Approval: &v1alpha1.ApprovalGate{OnlyForNewPermissions: true}}}
			},
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters taken over, 2 in " +
				"progress",
		},
	})
}

// TestPreviousOfTakenOver: a rollback of what follows goes back to what was taken over.
func TestPreviousOfTakenOver(t *testing.T) {
	t.Parallel()
	install := &v1alpha1.OperatorInstall{}
	install.Spec.Admission = &v1alpha1.Admission{RolloutUID: "uid-1", Hash: "adopt", Release: v1alpha1.Release{
		Package: "echo", Channel: "stable", Adopt: &v1alpha1.OperatorAdoption{}, AsInstalled: true}}
	install.Status.SucceededHash = "adopt"
	next := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{UID: "uid-2"}}
	if was := rollouts.PreviousOf(next, install); was != nil {
		t.Errorf("nothing was installed, and before it was %+v", was)
	}
	install.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo.v1.0.0", Version: "1.0.0"}
	was := rollouts.PreviousOf(next, install)
	if diff := cmp.Diff(before("1.0.0"), was); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	next.Spec.Release = v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0",
		Adopt: &v1alpha1.OperatorAdoption{}}
	if back := next.Spec.Release.WithPrevious(*was); back.AsInstalled || back.Version != "1.0.0" || back.Adopt == nil {
		t.Errorf("goes back to %+v", back)
	}
	install.Status.SucceededHash = ""
	if was := rollouts.PreviousOf(next, install); was != nil {
		t.Errorf("nothing was taken over, and before it was %+v", was)
	}
}

// TestLongRefusals: messages stay within what the API takes.
func TestLongRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.takesOver()
	f.notAdoptable(strings.Repeat("long ", 2000), 0, 1, 2, 3)
	if n := len([]rune(rollouts.Next(f.Input).Status.Message)); n > 2048 {
		t.Errorf("%d characters", n)
	}
}
