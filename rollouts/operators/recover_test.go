// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// kept returns what a cluster keeps of an admission by a lost hub.
func kept(in operators.Input, revision int64, holds ...v1alpha1.VersionHold) *v1alpha1.KeptAdmission {
	release := in.Rollouts[0].Spec.Release
	return &v1alpha1.KeptAdmission{Holds: holds, Admission: v1alpha1.Admission{Rollout: "echo-7", RolloutUID: "lost",
		Revision: revision, Wave: "rest", Hash: release.Hash(), Release: release}}
}

// found returns the input of a new hub whose first rollout has just begun when cluster a reports what it keeps.
func found(t *testing.T, revision int64, holds ...v1alpha1.VersionHold) operators.Input {
	in := newInput(t)
	in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing
	a := &in.Installs[0]
	a.Kept, a.Revision, a.SucceededHash = kept(in, revision, holds...), revision, ""
	a.Admitted.Recovered = revision
	return in
}

func isRecovering(t *testing.T, next operators.Decision, clusters int32, revision int64) string {
	t.Helper()
	ready := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	recovery := next.Status.Recovery
	if ready.Reason != v1alpha1.ReasonRecovered ||
		!conditions.IsTrue(next.Status.Conditions, v1alpha1.ConditionStalled) || next.Create != nil ||
		next.Supersede != nil || len(next.Removals) != 0 || recovery == nil {
		t.Fatalf("%s: %s\n%+v", ready.Reason, ready.Message, next)
	}
	if recovery.Clusters != clusters || recovery.Revision != revision ||
		!strings.Contains(ready.Message, "`bellwether operator resume echo`, or set spec.resume to "+recovery.Request) {
		t.Errorf("%+v: %s", recovery, ready.Message)
	}
	return recovery.Request
}

func TestRecover(t *testing.T) {
	in := found(t, 7)
	next := operators.Next(in)
	isRecovering(t, next, 1, 7)
	want := in.Installs[0].Kept.Admission
	want.Recovered = true
	if len(next.Recover) != 1 || next.Recover[0].Key.Name != in.Installs[0].Name {
		t.Fatalf("recovers %+v", next.Recover)
	}
	if diff := cmp.Diff(want, next.Recover[0].Admission); diff != "" {
		t.Errorf("admission (-want +got):\n%s", diff)
	}
}

// TestRecoverHoldsFirst: the agent must find the same holds in its install as on its
// cluster, before it is admitted.
func TestRecoverHoldsFirst(t *testing.T) {
	hold := v1alpha1.VersionHold{Version: "1.2.0", Rollout: "echo-6", Reason: "it loses data"}
	in := found(t, 7, hold)
	next := operators.Next(in)
	isRecovering(t, next, 1, 7)
	if next.Holds == nil || len(next.Recover) != 0 {
		t.Fatalf("holds %+v, recovers %+v", next.Holds, next.Recover)
	}
	if diff := cmp.Diff([]v1alpha1.VersionHold{hold}, *next.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}

	in.Operator.Spec.Holds = *next.Holds
	next = operators.Next(in)
	if next.Holds != nil || len(next.Recover) != 0 || len(next.SetBlocks) == 0 {
		t.Fatalf("holds %+v, recovers %+v, writes %+v", next.Holds, next.Recover, next.SetBlocks)
	}

	for i := range in.Installs {
		in.Installs[i].Holds, in.Installs[i].Blocks = in.Operator.Spec.Holds, operators.Encode(next.Blocks)
	}
	if next = operators.Next(in); len(next.Recover) != 1 {
		t.Errorf("recovers %+v", next.Recover)
	}
}

// TestHoldsAreNotDisplaced: an agent that reports many holds pushes out none of the hub's.
func TestHoldsAreNotDisplaced(t *testing.T) {
	var many []v1alpha1.VersionHold
	for i := range 20 {
		many = append(many, v1alpha1.VersionHold{Version: fmt.Sprintf("9.0.%d", i), Reason: "none"})
	}
	in := found(t, 7, many...)
	own := v1alpha1.VersionHold{Version: "1.2.0", Reason: "it loses data"}
	in.Operator.Spec.Holds = []v1alpha1.VersionHold{own}
	next := operators.Next(in)
	if next.Holds == nil || len(*next.Holds) != 20 || !cmp.Equal((*next.Holds)[0], own) {
		t.Fatalf("%+v", next.Holds)
	}
	in.Operator.Spec.Holds = *next.Holds
	if next := operators.Next(in); next.Holds != nil {
		t.Errorf("it does not end: %+v", next.Holds)
	}
}

// TestNoClusterDecidesAboutHolds: where there is room for some only, those come first that most clusters keep.
func TestNoClusterDecidesAboutHolds(t *testing.T) {
	hold := v1alpha1.VersionHold{Version: "1.2.0", Reason: "it loses data"}
	var many []v1alpha1.VersionHold
	for i := range 20 {
		many = append(many, v1alpha1.VersionHold{Version: fmt.Sprintf("9.0.%d", i), Reason: "none"})
	}
	in := found(t, 7, many...)
	third := in.Installs[1]
	third.Cluster, third.Name = "c", "c"
	in.Installs = append(in.Installs, third)
	for i := 1; i < 3; i++ {
		in.Installs[i].Kept = kept(in, 7, hold)
	}
	next := operators.Next(in)
	if next.Holds == nil || len(*next.Holds) != 20 || !cmp.Equal((*next.Holds)[0], hold) {
		t.Fatalf("%+v", next.Holds)
	}
}

// TestRecoveredNumbers: what no hub can have given out is not recovered, and holds up no other cluster.
func TestRecoveredNumbers(t *testing.T) {
	for _, revision := range []int64{math.MinInt64, -1, 0, 1_000_008, v1alpha1.MaxRevision, math.MaxInt64} {
		in := found(t, 7)
		in.Installs[1].Admitted.Recovered = revision
		in.Installs[1].Kept = kept(in, revision, v1alpha1.VersionHold{Version: "9.0.0", Reason: "none"})
		next := operators.Next(in)
		if len(next.Recover) != 1 || next.Recover[0].Key.Name != in.Installs[0].Name || next.Holds != nil {
			t.Errorf("revision %d: recovers %+v, holds %+v", revision, next.Recover, next.Holds)
		}
		isRecovering(t, next, 1, 7)
	}
}

// TestResume checks that the next revision is above every revision that a cluster keeps. The agreement is valid for
// the revisions that were found, and for this ManagedOperator.
func TestResume(t *testing.T) {
	in := found(t, 7)
	request := isRecovering(t, operators.Next(in), 1, 7)
	in.Installs[0].Kept = nil // recovered; found still says so

	for name, resume := range map[string]string{"of another hub": "00000000-7", "for less": strings.TrimSuffix(request,
		"7") + "6", "nonsense": "yes"} {
		in.Operator.Spec.Resume = resume
		t.Run(name, func(t *testing.T) { isRecovering(t, operators.Next(in), 1, 7) })
	}

	in.Operator.Spec.Resume = request
	next := operators.Next(in)
	if next.Create == nil || next.Create.Spec.Revision != 8 || next.Create.Spec.Resumed != 7 ||
		next.Status.Recovery != nil || next.Supersede == nil || next.Supersede.Rollout != "echo-1" {
		t.Fatalf("%+v", next)
	}

	// The agreement stays valid without spec.resume.
	in.Operator.Spec.Resume = ""
	next.Create.Status.Phase = v1alpha1.RolloutProgressing
	in.Rollouts = append(in.Rollouts, *next.Create)
	if next := operators.Next(in); next.Status.Recovery != nil || next.Create != nil {
		t.Errorf("%+v", next)
	}

	// A cluster that joins late with a newer admission stops it.
	in.Installs[1].Kept, in.Installs[1].Admitted.Recovered = kept(in, 9), 9
	isRecovering(t, operators.Next(in), 2, 9)
}

// TestRecoverAdoption loses the hub during or after a take-over. A new hub continues from what clusters keep:
// operators that were taken over stay so, and other operators are taken over in their installed version, or are not
// changed. No cluster is upgraded before the take-over has ended.
func TestRecoverAdoption(t *testing.T) {
	// keeps has clusters keep an admission of the lost hub. The first hub is lost at once, so that revisions are the
	// same ones.
	keeps := func(in *operators.Input, revision int64, change func(*v1alpha1.Release), installs ...int) {
		for _, n := range installs {
			release := *in.Rollouts[0].Spec.Release.DeepCopy()
			change(&release)
			in.Installs[n].Kept = &v1alpha1.KeptAdmission{Admission: v1alpha1.Admission{Rollout: "echo-1",
				RolloutUID: "lost", Revision: revision, Wave: "rest", Hash: release.Hash(), Release: release}}
			in.Installs[n].Admitted.Recovered = revision
		}
	}
	asInstalled := func(*v1alpha1.Release) {}
	goesOn := func(r *v1alpha1.Release) { r.AsInstalled, r.Version, r.Bundle = false, "1.1.0", "echo.v1.1.0" }
	for name, test := range map[string]struct {
		change func(*operators.Input)
		// recovered are the clusters that get the admission that they keep. asInstalled is true if the next rollout is
		// a take-over.
		recovered   []string
		asInstalled bool
		says        string
	}{
		"one was taken over, one was not": {
			change:    func(in *operators.Input) { keeps(in, 7, asInstalled, 0) },
			recovered: []string{"a"}, asInstalled: true,
			says: "; what is installed is then taken over, before version 1.1.0 is rolled out",
		},
		"the first rollout of both hubs": {
			change:    func(in *operators.Input) { keeps(in, 1, asInstalled, 0) },
			recovered: []string{"a"}, asInstalled: true,
		},
		"all were taken over": {
			change:    func(in *operators.Input) { keeps(in, 7, asInstalled, 0, 1) },
			recovered: []string{"a", "b"}, asInstalled: true,
		},
		"one had gone on to the target": {
			change:    func(in *operators.Input) { keeps(in, 8, goesOn, 0); keeps(in, 7, asInstalled, 1) },
			recovered: []string{"a", "b"}, asInstalled: true,
		},
		"one had gone on, and the other one joined late": {
			change:    func(in *operators.Input) { keeps(in, 8, goesOn, 0) },
			recovered: []string{"a"}, asInstalled: true,
		},
		"there is no target": {
			change:    func(in *operators.Input) { keeps(in, 7, asInstalled, 0); in.Operator.Spec.Version = "7.0.0" },
			recovered: []string{"a"}, asInstalled: true,
			says: "; what is installed is then taken over",
		},
		"nothing is to be adopted any more": {
			change:    func(in *operators.Input) { keeps(in, 7, asInstalled, 0); in.Operator.Spec.Adopt = nil },
			recovered: []string{"a"},
			says:      "; it is then rolled out in version 1.1.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := brownfield(t)
			in.Rollouts = []v1alpha1.OperatorRollout{*operators.Next(in).Create}
			in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing
			test.change(&in)
			next := operators.Next(in)
			var clusters int32
			var revision int64
			for _, i := range in.Installs {
				if i.Kept != nil {
					clusters, revision = clusters+1, max(revision, i.Kept.Admission.Revision)
				}
			}
			request := isRecovering(t, next, clusters, revision)
			var recovered []string
			for _, r := range next.Recover {
				i := in.Installs[slices.IndexFunc(in.Installs, func(i operators.Install) bool {
					return i.Namespace == r.Key.Namespace
				})]
				want := i.Kept.Admission
				want.Recovered = true
				if diff := cmp.Diff(want, r.Admission); diff != "" {
					t.Errorf("admission of %s (-want +got):\n%s", i.Cluster, diff)
				}
				recovered = append(recovered, i.Cluster)
			}
			if diff := cmp.Diff(test.recovered, recovered); diff != "" {
				t.Errorf("recovered (-want +got):\n%s", diff)
			}
			if !strings.Contains(ready(next), test.says) {
				t.Errorf("says %q, want %q", ready(next), test.says)
			}

			in.Operator.Status = next.Status
			for n := range in.Installs {
				in.Installs[n].Kept = nil // recovered; found still says so
			}
			in.Operator.Spec.Resume = request
			next = operators.Next(in)
			if next.Create == nil || next.Create.Spec.Revision <= revision || next.Create.Spec.Resumed != revision ||
				len(next.Removals) > 0 {
				t.Fatalf("%s: %+v", ready(next), next)
			}
			if got := next.Create.Spec.Release.AsInstalled; got != test.asInstalled {
				t.Errorf("takes over: %v, want %v", got, test.asInstalled)
			}
			if got := next.Status.Adoption; got != nil {
				t.Errorf("says that a rollout of this hub has taken over: %+v", got)
			}
		})
	}
}
