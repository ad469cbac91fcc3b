// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

const upTo120 = upTo110 + `
	1.2.0 replaces 1.1.0`

// failed is a world in which cluster a was admitted to 1.2.0, the channel's head,
// and that ended to be rolled back.
func failed(t *testing.T) operators.Input {
	in := newInput(t)
	in.Package = ladder(t, upTo120)
	was := in.Rollouts[0].Spec.Release
	bad := operators.Next(in).Create
	if bad == nil || bad.Spec.Release.Version != "1.2.0" {
		t.Fatalf("no rollout to 1.2.0: %+v", bad)
	}
	bad.UID = "uid-2"
	bad.Status.Phase, bad.Status.EndedAt = v1alpha1.RolloutRolledBack, &created
	bad.Status.Message = "wave canary: 1 cluster failed, 0 allowed: a (NotReady)"
	in.Rollouts = append(in.Rollouts, *bad)
	a := &in.Installs[0]
	a.Rollout, a.Revision, a.Ready = bad.Name, 2, false
	a.SucceededHash = bad.Spec.Release.Hash()
	a.Installed = catalogs.Installed{Name: "echo.v1.2.0", Version: "1.2.0"}
	a.Admitted = rollouts.Install{Cluster: "a", Rollout: bad.Name, Previous: was.ToPrevious(),
		Stamp: rollouts.Stamp{RolloutUID: "uid-2", Hash: bad.Spec.Release.Hash()}}
	return in
}

// back is the world after the rollback was made, in a phase. While it is running
// cluster a still has the bad version.
func back(t *testing.T, phase v1alpha1.RolloutPhase) operators.Input {
	in := failed(t)
	next := operators.Next(in)
	if next.Create == nil || next.Holds == nil {
		t.Fatalf("no rollback: %+v", next)
	}
	next.Create.UID, next.Create.Status.Phase = "uid-3", phase
	in.Rollouts = append(in.Rollouts, *next.Create)
	in.Operator.Spec.Holds = *next.Holds
	if phase == v1alpha1.RolloutSucceeded {
		a := &in.Installs[0]
		a.Rollout, a.Revision, a.Ready = next.Create.Name, 3, true
		a.SucceededHash = next.Create.Spec.Release.Hash()
		a.Installed = catalogs.Installed{Name: "echo.v1.1.0", Version: "1.1.0"}
	}
	return in
}

func TestStartOfARollback(t *testing.T) {
	in := failed(t)
	in.PackageFailure, in.Package = &operators.Failure{Reason: v1alpha1.ReasonCatalogUnreachable, Cause: "no answer"},
		nil
	next := operators.Next(in)
	spec := next.Create.Spec
	want := &v1alpha1.RolloutRollback{Of: "echo-2", UID: "uid-2", Version: "1.2.0", Automatic: true,
		Reason: "wave canary: 1 cluster failed, 0 allowed: a (NotReady)"}
	if diff := cmp.Diff(want, spec.Rollback); diff != "" {
		t.Errorf("rollback (-want +got):\n%s", diff)
	}
	if next.Create.Name != "echo-3" || spec.Revision != 3 ||
		spec.Release.Hash() != in.Rollouts[0].Spec.Release.Hash() ||
		len(spec.Strategy.Waves) != 1 || spec.Strategy.Waves[0].MaxConcurrency.String() != "100%" {
		t.Errorf("%s: %+v", next.Create.Name, spec)
	}
	holds := []v1alpha1.VersionHold{{Version: "1.2.0", Rollout: "echo-2", Since: created,
		Reason: "it was rolled back: wave canary: 1 cluster failed, 0 allowed: a (NotReady)"}}
	if diff := cmp.Diff(&holds, next.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	if held := conditions.Get(next.Status.Conditions, v1alpha1.ConditionVersionHeld); held.Status != "True" ||
		!strings.Contains(held.Message, "1.2.0 is held since") {
		t.Errorf("%+v", held)
	}
}

func TestARollbackByAPerson(t *testing.T) {
	in := failed(t)
	in.Rollouts[1].Spec.Abort = &v1alpha1.RolloutAbort{Reason: "users complain",
		Rollback: &v1alpha1.RollbackRequest{Force: true}}
	got := operators.Next(in).Create.Spec.Rollback
	if got.Automatic || !got.Force || got.Reason != "users complain" {
		t.Errorf("%+v", got)
	}
}

// TestSettingsAreHeld: where only the settings were changed, the version itself is
// good.
func TestSettingsAreHeld(t *testing.T) {
	in := failed(t)
	in.Package = ladder(t, upTo110)
	bad := &in.Rollouts[1].Spec.Release
	bad.Version, bad.Bundle = "1.1.0", "echo.v1.1.0"
	bad.Install.Config = &v1alpha1.OperatorConfig{NodeSelector: map[string]string{"none": "such"}}
	in.Operator.Spec.Install.Config = bad.Install.Config
	next := operators.Next(in)
	hold := v1alpha1.VersionHold{Version: "1.1.0", Settings: bad.SettingsHash(), Release: bad.Hash(),
		Changes: []string{"node selector none is added: such"}, Rollout: "echo-2", Since: created,
		Reason: "it was rolled back: wave canary: 1 cluster failed, 0 allowed: a (NotReady)"}
	if diff := cmp.Diff([]v1alpha1.VersionHold{hold}, *next.Holds); diff != "" {
		t.Fatalf("holds (-want +got):\n%s", diff)
	}
	if next.Create.Spec.Release.Install.Config != nil {
		t.Fatalf("back to %+v", next.Create.Spec.Release)
	}
	held := conditions.Get(next.Status.Conditions, v1alpha1.ConditionVersionHeld).Message
	const start = "Settings of version 1.1.0 are held since 2026-11-21T10:00:00Z: it was rolled back: "
	if !strings.HasPrefix(held, start) ||
		!strings.Contains(held, "(the change: node selector none is added: such). The version is not rolled out with "+
			"these settings again, also not from another channel; with other settings it is. Release one with") {
		t.Errorf("the condition says: %s", held)
	}
	next.Create.Status.Phase = v1alpha1.RolloutSucceeded
	in.Rollouts = append(in.Rollouts, *next.Create)
	in.Operator.Spec.Holds = *next.Holds
	in.Installs[0].Installed = catalogs.Installed{Name: "echo.v1.1.0", Version: "1.1.0"}
	check(t, in, want{state: "Stalled", reason: v1alpha1.ReasonVersionHeld, contains: "settings of version 1.1.0 " +
		"are held since 2026-11-21T10:00:00Z: it was rolled back: wave canary: 1 cluster failed, 0 allowed: a " +
		"(NotReady) (the change: node selector none is added: such); change spec.install, or release the hold " +
		"with `bellwether operator release-hold echo 1.1.0`"})
	if next := operators.Next(in); len(next.SetBlocks) == 0 || len(next.Blocks) != 0 {
		t.Errorf("agents are told that 1.1.0 is blocked: %+v", next.Blocks)
	}
	in.Operator.Spec.Install.Config = &v1alpha1.OperatorConfig{NodeSelector: map[string]string{"disk": "fast"}}
	check(t, in, want{state: "False", reason: v1alpha1.ReasonProgressing, contains: "rollout echo-4 to 1.1.0 starts",
		create: "echo-4", version: "1.1.0"})
}

func TestHeldVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		in     func(*testing.T) operators.Input
		change func(*testing.T, *operators.Input)
		want   want
	}{
		"a rollback goes on whatever the spec asks for": {
			in: func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutProgressing) },
			change: func(t *testing.T, in *operators.Input) {
				in.Package, in.Operator.Spec.Version = ladder(t, upTo130), "1.3.0"
			},
			want: want{state: "False", reason: v1alpha1.ReasonRollingBack,
				contains: "takes the clusters of echo-2 (1.2.0) back to what they ran before, automatic: wave canary"},
		},
		"but not where it needs a person": {
			in: func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutHalted) },
			change: func(t *testing.T, in *operators.Input) {
				in.Package, in.Operator.Spec.Version = ladder(t, upTo130), "1.3.0"
			},
			want: want{state: "False", reason: v1alpha1.ReasonProgressing, contains: "rollout echo-4 to 1.3.0 starts",
				create: "echo-4", version: "1.3.0", supersed: "echo-3"},
		},
		"the head of the channel is not rolled out again": {
			in:   func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutSucceeded) },
			want: want{state: "True", reason: v1alpha1.ReasonSucceeded, contains: "held after a rollback: 1.2.0"},
		},
		"nor a version that is asked for": {
			in:     func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutSucceeded) },
			change: func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Version = "1.2.0" },
			want: want{state: "Stalled", reason: v1alpha1.ReasonVersionHeld,
				contains: "bellwether operator release-hold echo 1.2.0"},
		},
		"nor by a restart": {
			in: func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutSucceeded) },
			change: func(_ *testing.T, in *operators.Input) {
				in.Operator.Spec.Version, in.Operator.Spec.Restart = "1.2.0", "now"
			},
			want: want{state: "Stalled", reason: v1alpha1.ReasonVersionHeld},
		},
		"a released one is": {
			in:     func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutSucceeded) },
			change: func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Holds = nil },
			want: want{state: "False", reason: v1alpha1.ReasonProgressing, contains: "rollout echo-4 to 1.2.0 starts",
				create: "echo-4", version: "1.2.0"},
		},
		"another one goes around it": {
			in:     func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutSucceeded) },
			change: func(t *testing.T, in *operators.Input) { in.Package = ladder(t, upTo130) },
			want: want{state: "False", reason: v1alpha1.ReasonProgressing, contains: "rollout echo-4 to 1.3.0 starts",
				create: "echo-4", version: "1.3.0"},
		},
		"clusters that the rollback did not touch are brought to the release": {
			in: func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutSucceeded) },
			change: func(_ *testing.T, in *operators.Input) {
				in.Clusters = append(in.Clusters, rollouts.Cluster{Name: "c", Online: true})
			},
			want: want{state: "False", reason: v1alpha1.ReasonProgressing, contains: "rollout echo-4 to 1.1.0 starts",
				create: "echo-4", version: "1.1.0"},
		},
		"a rollback that was refused says so": {
			in: func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutHalted) },
			change: func(_ *testing.T, in *operators.Input) {
				in.Rollouts[2].Status.Message = "wave rollback: 1 cluster failed"
			},
			want: want{state: "Stalled", reason: v1alpha1.ReasonHalted, contains: "wave rollback: 1 cluster failed"},
		},
		"a rollback that a person aborted is not made again": {
			in: func(t *testing.T) operators.Input { return back(t, v1alpha1.RolloutAborted) },
			change: func(_ *testing.T, in *operators.Input) {
				in.Rollouts[2].Spec.Abort = &v1alpha1.RolloutAbort{Reason: "enough"}
			},
			want: want{state: "Stalled", reason: v1alpha1.ReasonAborted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in(t)
			if tc.change != nil {
				tc.change(t, &in)
			}
			check(t, in, tc.want)
		})
	}
}

// TestHoldsReachTheAgents: an agent neither goes to a held version nor through it.
func TestHoldsReachTheAgents(t *testing.T) {
	in := back(t, v1alpha1.RolloutSucceeded)
	next := operators.Next(in)
	if len(next.SetBlocks) != 2 || len(next.Blocks) != 1 || next.Blocks[0].Version != "1.2.0" ||
		!strings.Contains(next.Blocks[0].Reason, "held for ManagedOperator echo: it was rolled back") {
		t.Fatalf("%+v for %v", next.Blocks, next.SetBlocks)
	}
	in.Catalog.Spec.Blocks = []v1alpha1.VersionBlock{{Package: "echo", Version: "1.2.0", Reason: "it loses data"},
		{Package: "echo", Version: "1.0.0", Reason: "it is old"}}
	var got []string
	for _, b := range operators.Next(in).Blocks {
		got = append(got, b.Version+": "+b.Reason)
	}
	if diff := cmp.Diff([]string{"1.0.0: it is old", "1.2.0: it loses data"}, got); diff != "" {
		t.Errorf("beside blocks of the catalog (-want +got):\n%s", diff)
	}
}

// TestHoldsEnd: a hold that the hub made has served once a newer version was rolled
// out. One that a person made stays.
func TestHoldsEnd(t *testing.T) {
	in := newInput(t)
	in.Operator.Spec.Holds = []v1alpha1.VersionHold{
		{Version: "1.0.5", Rollout: "echo-0", Reason: "it was rolled back"},
		{Version: "1.0.7", Reason: "we do not trust it"},
		{Version: "1.2.0", Rollout: "echo-0", Reason: "it was rolled back"},
	}
	next := operators.Next(in)
	if next.Holds == nil {
		t.Fatal("no hold is removed")
	}
	if diff := cmp.Diff(in.Operator.Spec.Holds[1:], *next.Holds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady).Message
	if !strings.HasSuffix(text, "held after a rollback: 1.0.7, 1.2.0") {
		t.Errorf("the message does not name what is held from now on: %s", text)
	}
	in.Operator.Spec.Holds = *next.Holds
	if next := operators.Next(in); next.Holds != nil {
		t.Errorf("written again: %+v", *next.Holds)
	}
}
