// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// brownfield has two clusters with installs that no rollout of this hub made, and a ManagedOperator that adopts them.
func brownfield(t *testing.T) operators.Input {
	in := newInput(t)
	in.Rollouts = nil
	in.Operator.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	for i := range in.Installs {
		in.Installs[i].Installed = catalogs.Installed{Name: "echo.v1.0.0", Version: "1.0.0"}
		in.Installs[i].SucceededHash, in.Installs[i].Rollout, in.Installs[i].Revision = "", "", 0
	}
	return in
}

// adopting is the brownfield while its first rollout takes it over, and has taken over cluster a.
func adopting(t *testing.T) operators.Input {
	in := brownfield(t)
	first := operators.Next(in).Create
	if first == nil {
		t.Fatal("no rollout")
	}
	first.Status.Phase = v1alpha1.RolloutProgressing
	in.Rollouts = []v1alpha1.OperatorRollout{*first}
	for i := range in.Installs {
		in.Installs[i].Rollout, in.Installs[i].Revision = first.Name, 1
	}
	in.Installs[0].SucceededHash = first.Spec.Release.Hash()
	return in
}

func ready(next operators.Decision) string {
	c := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	return c.Reason + ": " + c.Message
}

// TestAdoptFirst: what others installed is taken over in the versions that the clusters have, before the target is
// rolled out.
func TestAdoptFirst(t *testing.T) {
	in := brownfield(t)
	next := operators.Next(in)
	if next.Create == nil {
		t.Fatal(ready(next))
	}
	release := next.Create.Spec.Release
	if !release.AsInstalled || release.Version != "" || release.Bundle != "" || release.Adopt == nil ||
		release.Channel != "stable" || release.Catalog.Digest != "sha256:1" {
		t.Errorf("%+v", release)
	}
	if want := "Progressing: rollout echo-1 to take over the installed versions starts"; !strings.HasPrefix(ready(next),
		want) {
		t.Errorf("got %q, want %q", ready(next), want)
	}
	if next.Status.Target == nil || next.Status.Target.Version != "1.1.0" {
		t.Errorf("target %+v", next.Status.Target)
	}
	in.Operator.Spec.Adopt = nil
	if next = operators.Next(in); next.Create == nil || next.Create.Spec.Release.AsInstalled ||
		next.Create.Spec.Release.Adopt != nil || next.Create.Spec.Release.Version != "1.1.0" {
		t.Errorf("without spec.adopt: %s", ready(next))
	}
}

// TestAdoptionGoesOn: nothing that is about the target ends the rollout that takes over.
func TestAdoptionGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*operators.Input)
		another bool // whether another rollout takes its place
		says    string
	}{
		"nothing changes": {change: func(*operators.Input) {},
			says: "rollout echo-1 to take over the installed versions"},
		"the channel has a new head": {change: func(in *operators.Input) {
			in.Package, in.Catalog.Status.Digest = ladder(t, upTo110+"\n1.2.0 replaces 1.1.0"), "sha256:2"
		}},
		"another version": {change: func(in *operators.Input) { in.Operator.Spec.Version = "1.0.0" }},
		"a version that is not there": {change: func(in *operators.Input) { in.Operator.Spec.Version = "7.0.0" },
			says: "; after that: "},
		"the version is held": {change: func(in *operators.Input) {
			in.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Reason: "it loses data"}}
		}},
		"all versions are held": {change: func(in *operators.Input) {
			in.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.0.0", Reason: "a"},
				{Version: "1.1.0", Reason: "b"}}
		}, says: "; after that: "},
		"no way up from what runs": {change: func(in *operators.Input) { in.Package = ladder(t, "\n1.1.0") }},
		"more is accepted": {change: func(in *operators.Input) {
			in.Operator.Spec.Adopt.Accept = []v1alpha1.AcceptedFinding{"CSVEdited"}
		}, another: true},
		"a setting": {change: func(in *operators.Input) {
			in.Operator.Spec.Install.Namespace = "elsewhere"
		}, another: true},
		"another channel": {change: func(in *operators.Input) { in.Operator.Spec.Channel = "nightly" },
			says: "UnknownChannel: "},
		"one cannot be taken over": {
			change: func(in *operators.Input) { in.Installs[1].StalledReason = "NotAdoptable" }},
		"one could not be taken over, and the catalog has changed since": {change: func(in *operators.Input) {
			in.Installs[1].StalledReason, in.Catalog.Status.Digest = "NotAdoptable", "sha256:2"
		}, another: true},
		"nothing is to be adopted any more": {change: func(in *operators.Input) { in.Operator.Spec.Adopt = nil },
			another: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := adopting(t)
			test.change(&in)
			next := operators.Next(in)
			if got := next.Create != nil; got != test.another || got != (next.Supersede != nil) {
				t.Errorf("another rollout: %v, want %v: %s", got, test.another, ready(next))
			}
			if !strings.Contains(ready(next), test.says) {
				t.Errorf("says %q, want %q", ready(next), test.says)
			}
			if next.Status.Clusters.Updated != 1 && next.Create == nil && next.Status.Target != nil {
				t.Errorf("%d updated", next.Status.Clusters.Updated)
			}
		})
	}
}

// TestAfterAdoption: once a rollout has taken over, the target is rolled out, also when that rollout was deleted.
func TestAfterAdoption(t *testing.T) {
	in := adopting(t)
	of := &in.Rollouts[0]
	ended := metav1.NewTime(created.Add(3600e9))
	of.Status.Phase, of.Status.EndedAt, of.Status.Clusters.Succeeded = v1alpha1.RolloutSucceeded, &ended, 2
	in.Installs[1].SucceededHash = of.Spec.Release.Hash()

	next := operators.Next(in)
	if next.Create == nil || next.Create.Spec.Release.AsInstalled || next.Create.Spec.Release.Version != "1.1.0" ||
		next.Create.Spec.Release.Adopt == nil || next.Supersede != nil {
		t.Fatal(ready(next))
	}
	a := next.Status.Adoption
	if a == nil || a.Rollout != "echo-1" || a.Clusters != 2 || !a.EndedAt.Equal(&ended) {
		t.Errorf("adoption %+v", a)
	}
	if h := next.Status.History; len(h) != 1 || h[0].Version != v1alpha1.AsInstalledText {
		t.Errorf("history %+v", h)
	}

	second := *next.Create
	second.Status.Phase = v1alpha1.RolloutProgressing
	in.Operator.Status, in.Rollouts = next.Status, []v1alpha1.OperatorRollout{second}
	if next = operators.Next(in); next.Create != nil || next.Status.Adoption == nil {
		t.Errorf("the rollout is gone: %s", ready(next))
	}
	in.Operator.Status = next.Status
	in.Operator.Spec.Adopt = nil
	if next = operators.Next(in); next.Status.Adoption != nil || next.Create == nil ||
		next.Create.Spec.Release.AsInstalled {
		t.Errorf("nothing is to be adopted any more: %s, %+v", ready(next), next.Status.Adoption)
	}
}

// TestAdoptionNeverRollsBack: no version was changed, so that there is nothing to go back to.
func TestAdoptionNeverRollsBack(t *testing.T) {
	in, size := brownfield(t), intstr.FromInt32(1)
	in.Operator.Spec.Strategy = v1alpha1.RolloutStrategy{OnFailure: v1alpha1.FailureRollback, Waves: []v1alpha1.Wave{
		{Name: "canary", Size: &size, Gates: []v1alpha1.Gate{{Name: "compare", Baseline: &v1alpha1.BaselineGate{}},
			{Name: "ok", Approval: &v1alpha1.ApprovalGate{}}}}}}
	of := operators.Next(in).Create
	strategy := of.Spec.Strategy
	if strategy.OnFailure != v1alpha1.FailurePause || len(strategy.Waves[0].Gates) != 1 ||
		strategy.Waves[0].Gates[0].Name != "ok" {
		t.Errorf("%+v", strategy)
	}
	of.Status.Phase, of.Status.Message = v1alpha1.RolloutHalted, "wave canary: 1 cluster failed"
	in.Rollouts = []v1alpha1.OperatorRollout{*of}
	next := operators.Next(in)
	if next.Create != nil || next.Holds != nil || next.Status.Rollout.StrategyOutdated ||
		!strings.HasPrefix(ready(next), "Halted: rollout echo-1 to take over the installed versions: wave canary") {
		t.Errorf("%s: %+v", ready(next), next.Create)
	}
}
