// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/operator/plan"
)

// kept is what a cluster keeps that was admitted by a hub that is lost.
func kept(in plan.Input, revision int64, holds ...v1alpha1.VersionHold) *v1alpha1.KeptAdmission {
	release := in.Rollouts[0].Spec.Release
	return &v1alpha1.KeptAdmission{Holds: holds, Admission: v1alpha1.Admission{Rollout: "echo-7", RolloutUID: "lost",
		Revision: revision, Wave: "rest", Hash: release.Hash(), Release: release}}
}

// found is what a new hub finds whose first rollout has just begun when cluster a
// reports what it keeps.
func found(t *testing.T, revision int64, holds ...v1alpha1.VersionHold) plan.Input {
	in := newInput(t)
	in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing
	a := &in.Installs[0]
	a.Kept, a.Revision, a.SucceededHash = kept(in, revision, holds...), revision, ""
	a.Admitted.Adopted = revision
	return in
}

func isAdopting(t *testing.T, next plan.Decision, clusters int32, revision int64) string {
	t.Helper()
	ready := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	adoption := next.Status.Adoption
	if ready.Reason != v1alpha1.ReasonAdopted ||
		!conditions.IsTrue(next.Status.Conditions, v1alpha1.ConditionStalled) || next.Create != nil ||
		next.Supersede != nil || len(next.Removals) != 0 || adoption == nil {
		t.Fatalf("%s: %s\n%+v", ready.Reason, ready.Message, next)
	}
	if adoption.Clusters != clusters || adoption.Revision != revision ||
		!strings.Contains(ready.Message, "`bellwether operator resume echo`, or set spec.resume to "+adoption.Request) {
		t.Errorf("%+v: %s", adoption, ready.Message)
	}
	return adoption.Request
}

func TestAdopt(t *testing.T) {
	in := found(t, 7)
	next := plan.Next(in)
	isAdopting(t, next, 1, 7)
	want := in.Installs[0].Kept.Admission
	want.Adopted = true
	if len(next.Adopt) != 1 || next.Adopt[0].Key.Name != in.Installs[0].Name {
		t.Fatalf("adopts %+v", next.Adopt)
	}
	if diff := cmp.Diff(want, next.Adopt[0].Admission); diff != "" {
		t.Errorf("admission (-want +got):\n%s", diff)
	}
}

// TestAdoptHoldsFirst: the agent must find the same holds in its install as on its
// cluster, before it is admitted.
func TestAdoptHoldsFirst(t *testing.T) {
	hold := v1alpha1.VersionHold{Version: "1.2.0", Rollout: "echo-6", Reason: "it loses data"}
	in := found(t, 7, hold)
	next := plan.Next(in)
	isAdopting(t, next, 1, 7)
	if next.Holds == nil || len(next.Adopt) != 0 {
		t.Fatalf("holds %+v, adopts %+v", next.Holds, next.Adopt)
	}
	if diff := cmp.Diff([]v1alpha1.VersionHold{hold}, *next.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}

	in.Operator.Spec.Holds = *next.Holds
	next = plan.Next(in)
	if next.Holds != nil || len(next.Adopt) != 0 || len(next.SetBlocks) == 0 {
		t.Fatalf("holds %+v, adopts %+v, writes %+v", next.Holds, next.Adopt, next.SetBlocks)
	}

	for i := range in.Installs {
		in.Installs[i].Holds, in.Installs[i].Blocks = in.Operator.Spec.Holds, plan.Encode(next.Blocks)
	}
	if next = plan.Next(in); len(next.Adopt) != 1 {
		t.Errorf("adopts %+v", next.Adopt)
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
	next := plan.Next(in)
	if next.Holds == nil || len(*next.Holds) != 20 || !cmp.Equal((*next.Holds)[0], own) {
		t.Fatalf("%+v", next.Holds)
	}
	in.Operator.Spec.Holds = *next.Holds
	if next := plan.Next(in); next.Holds != nil {
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
	next := plan.Next(in)
	if next.Holds == nil || len(*next.Holds) != 20 || !cmp.Equal((*next.Holds)[0], hold) {
		t.Fatalf("%+v", next.Holds)
	}
}

// TestAdoptedNumbers: what no hub can have given out is not adopted, and holds up no other cluster.
func TestAdoptedNumbers(t *testing.T) {
	for _, revision := range []int64{math.MinInt64, -1, 0, 1_000_008, v1alpha1.MaxRevision, math.MaxInt64} {
		in := found(t, 7)
		in.Installs[1].Admitted.Adopted = revision
		in.Installs[1].Kept = kept(in, revision, v1alpha1.VersionHold{Version: "9.0.0", Reason: "none"})
		next := plan.Next(in)
		if len(next.Adopt) != 1 || next.Adopt[0].Key.Name != in.Installs[0].Name || next.Holds != nil {
			t.Errorf("revision %d: adopts %+v, holds %+v", revision, next.Adopt, next.Holds)
		}
		isAdopting(t, next, 1, 7)
	}
}

// TestResume goes on above every revision that a cluster keeps. The agreement is good
// for what was found, and for this ManagedOperator.
func TestResume(t *testing.T) {
	in := found(t, 7)
	request := isAdopting(t, plan.Next(in), 1, 7)
	in.Installs[0].Kept = nil // adopted; found still says so

	for name, resume := range map[string]string{"of another hub": "00000000-7", "for less": strings.TrimSuffix(request,
		"7") + "6", "nonsense": "yes"} {
		in.Operator.Spec.Resume = resume
		t.Run(name, func(t *testing.T) { isAdopting(t, plan.Next(in), 1, 7) })
	}

	in.Operator.Spec.Resume = request
	next := plan.Next(in)
	if next.Create == nil || next.Create.Spec.Revision != 8 || next.Create.Spec.Resumed != 7 ||
		next.Status.Adoption != nil || next.Supersede == nil || next.Supersede.Rollout != "echo-1" {
		t.Fatalf("%+v", next)
	}

	// What was agreed to stays so without spec.resume.
	in.Operator.Spec.Resume = ""
	next.Create.Status.Phase = v1alpha1.RolloutProgressing
	in.Rollouts = append(in.Rollouts, *next.Create)
	if next := plan.Next(in); next.Status.Adoption != nil || next.Create != nil {
		t.Errorf("%+v", next)
	}

	// A cluster that joins late with a newer admission stops it.
	in.Installs[1].Kept, in.Installs[1].Admitted.Adopted = kept(in, 9), 9
	isAdopting(t, plan.Next(in), 2, 9)
}
