// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

const upTo130 = upTo110 + `
	1.2.0 replaces 1.1.0
	1.3.0 replaces 1.2.0`

func blocking(versions ...string) []v1alpha1.VersionBlock {
	var list []v1alpha1.VersionBlock
	for _, v := range versions {
		list = append(list, v1alpha1.VersionBlock{Package: "echo", Version: v, Reason: "it loses data"})
	}
	return list
}

func TestBlockedTargets(t *testing.T) {
	given := func(notation, version string, blocked ...string) func(*testing.T, *operators.Input) {
		return func(t *testing.T, in *operators.Input) {
			in.Package, in.Operator.Spec.Version = ladder(t, notation), version
			in.Catalog.Spec.Blocks = blocking(blocked...)
		}
	}
	run(t, map[string]scenario{
		"the head is the newest good version": {
			given(upTo130, "", "1.3.0"),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0"},
		},
		"an exact version that is blocked": {
			given(upTo130, "1.3.0", "1.3.0"),
			want{state: "Stalled", reason: "VersionBlocked",
				contains: "version 1.3.0 is blocked: it loses data; no cluster is upgraded to it: set " +
					"spec.version to " +
					"1.2.0, the channel's head"},
		},
		"an exact version that is blocked, with a newer one": {
			given(upTo130, "1.2.0", "1.2.0"),
			want{state: "Stalled", reason: "VersionBlocked", contains: "set spec.version to 1.3.0"},
		},
		"the block names another version": {
			func(t *testing.T, in *operators.Input) {
				given(upTo130, "1.3.0", "1.3.0")(t, in)
				in.Catalog.Spec.Blocks[0].Instead = "1.1.0"
			},
			want{state: "Stalled", reason: "VersionBlocked",
				contains: "set spec.version to 1.1.0, or remove the block from OperatorCatalog main"},
		},
		"the catalog's own block": {
			func(t *testing.T, in *operators.Input) {
				given(upTo130, "1.3.0")(t, in)
				var err error
				if in.Package, err = in.Package.WithBlocked(catalogs.Block{Version: "1.3.0",
					Reason: "bad"}); err != nil {
					t.Fatal(err)
				}
			},
			want{state: "Stalled", reason: "VersionBlocked", contains: "version 1.3.0 is blocked: bad"},
		},
		"all newer versions are blocked: clusters wait": {
			given(upTo110, "", "1.1.0"),
			want{state: "Stalled", reason: "VersionBlocked", contains: "publish a newer version, or roll back by hand"},
		},
		"clusters upgrade to a newer version": {
			given(upTo130, "", "1.1.0"),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.3.0",
				contains: "2 clusters run 1.1.0, which is blocked (it loses data): a, b"},
		},
		"all versions are blocked": {
			given(upTo110, "", "1.0.0", "1.1.0"),
			want{state: "Stalled", reason: "VersionBlocked",
				contains: "all versions of package echo are blocked"},
		},
		"a running rollout to it ends, even with newTarget Finish": {
			func(t *testing.T, in *operators.Input) {
				given(upTo130, "", "1.3.0")(t, in)
				in.Rollouts[0].Spec.Release.Version, in.Rollouts[0].Spec.Release.Bundle = "1.3.0", "echo.v1.3.0"
				in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing
				in.Operator.Spec.Strategy.NewTarget = v1alpha1.NewTargetFinish
			},
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0", supersed: "echo-1"},
		},
		"a block on another package": {
			func(t *testing.T, in *operators.Input) {
				given(upTo110, "", "1.1.0")(t, in)
				in.Catalog.Spec.Blocks[0].Package = "other"
			},
			want{state: "True", reason: "Succeeded"},
		},
	})
}

func TestBlocksAreWritten(t *testing.T) {
	blocks := blocking("1.1.0")
	both := []types.NamespacedName{{Namespace: "bellwether-a", Name: "team.echo"},
		{Namespace: "bellwether-b", Name: "team.echo"}}
	tests := map[string]struct {
		change func(*operators.Input)
		block  *operators.Block
		set    []types.NamespacedName
		blocks []v1alpha1.VersionBlock
	}{
		"nothing is blocked": {change: func(*operators.Input) {}},
		"a block": {
			change: func(in *operators.Input) { in.Catalog.Spec.Blocks = blocks },
			block:  &operators.Block{Rollout: "echo-1", Reason: "it loses data"},
			set:    both, blocks: blocks,
		},
		"for installs without it": {
			change: func(in *operators.Input) {
				in.Catalog.Spec.Blocks = blocks
				in.Installs[0].Blocks, in.Rollouts[0].Spec.Blocked = operators.Encode(blocks), "it loses data"
			},
			set: both[1:], blocks: blocks,
		},
		"while the catalog cannot be read": {
			change: func(in *operators.Input) {
				in.Catalog.Spec.Blocks, in.Package = blocks, nil
				in.PackageFailure = &operators.Failure{Reason: v1alpha1.ReasonCatalogUnreachable}
			},
			block: &operators.Block{Rollout: "echo-1", Reason: "it loses data"},
			set:   both, blocks: blocks,
		},
		"a removed block": {
			change: func(in *operators.Input) {
				in.Installs[0].Blocks, in.Rollouts[0].Spec.Blocked = operators.Encode(blocks), "it loses data"
			},
			block: &operators.Block{Rollout: "echo-1"},
			set:   both[:1],
		},
		"a missing catalog removes no block": {
			change: func(in *operators.Input) {
				in.Installs[0].Blocks, in.Rollouts[0].Spec.Blocked = operators.Encode(blocks), "it loses data"
				in.Catalog, in.Package = nil, nil
			},
		},
		"not for an install that is being deleted": {
			change: func(in *operators.Input) {
				in.Catalog.Spec.Blocks = blocks
				in.Installs[0].Deleting, in.Installs[1].Deleting = true, true
			},
			block: &operators.Block{Rollout: "echo-1", Reason: "it loses data"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			test.change(&in)
			got := operators.Next(in)
			if diff := cmp.Diff(test.block, got.Block); diff != "" {
				t.Errorf("rollout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.set, got.SetBlocks); diff != "" {
				t.Errorf("installs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.blocks, got.Blocks); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyBlocksConcernOneOperator has as many blocks on one package as an OperatorCatalog takes, and more in the
// catalog itself. An install carries as many as the API accepts, and the operator of another package none.
func TestManyBlocksConcernOneOperator(t *testing.T) {
	for _, n := range []int{100, catalogs.MaxBlocksPerInstall + 50} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			in, before := newInput(t), "1.1.0"
			notation, blocked := upTo110, []catalogs.Block{}
			for i := range n {
				version := fmt.Sprintf("1.1.%d", i+1)
				notation += "\n" + version + " replaces " + before
				blocked, before = append(blocked, catalogs.Block{Version: version, Reason: "it loses data"}), version
			}
			var err error
			if in.Package, err = ladder(t, notation+"\n1.2.0 replaces "+before).WithBlocked(blocked...); err != nil {
				t.Fatal(err)
			}
			got := operators.Next(in)
			if got.Create == nil || got.Create.Spec.Release.Version != "1.2.0" {
				t.Errorf("created %+v, want a rollout of 1.2.0", got.Create)
			}
			if want := min(n, catalogs.MaxBlocksPerInstall); len(got.Blocks) != want {
				t.Errorf("installs get %d blocks, want %d", len(got.Blocks), want)
			}

			other := newInput(t)
			other.Package = ladder(t, upTo130)
			for i := range n {
				other.Catalog.Spec.Blocks = append(other.Catalog.Spec.Blocks, v1alpha1.VersionBlock{
					Package: "other", Version: fmt.Sprintf("1.1.%d", i+1), Reason: "it loses data"})
			}
			got = operators.Next(other)
			if got.Create == nil || got.Create.Spec.Release.Version != "1.3.0" || got.SetBlocks != nil ||
				got.Block != nil {
				t.Errorf("created %+v, blocks for %v, block of the rollout %+v", got.Create, got.SetBlocks, got.Block)
			}
		})
	}
}

// The drift policy is written to every install that has another one, beside its
// release.
func TestDriftPolicyTravelsBesideTheRelease(t *testing.T) {
	in := newInput(t)
	key := func(i operators.Install) types.NamespacedName {
		return types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
	}
	in.Operator.Spec.Install.Drift = v1alpha1.DriftReport
	if got := operators.Next(in); got.SetDrift != nil {
		t.Errorf("Report, the default, was written to %v", got.SetDrift)
	}
	in.Operator.Spec.Install.Drift = v1alpha1.DriftCorrect
	in.Installs[0].Drift, in.Installs[1].Deleting = v1alpha1.DriftCorrect, true
	got := operators.Next(in)
	if got.Create != nil || got.SetDrift != nil {
		t.Errorf("rollout %v, installs %v", got.Create, got.SetDrift)
	}
	in.Operator.Spec.Install.Drift = ""
	if diff := cmp.Diff([]types.NamespacedName{key(in.Installs[0])}, operators.Next(in).SetDrift); diff != "" {
		t.Errorf("installs that are told Report (-want +got):\n%s", diff)
	}
}

// Keys and blocks are not part of a release's hash: neither starts a rollout.
func TestKeysAndBlocksStartNoRollout(t *testing.T) {
	in := newInput(t)
	in.Catalog.Spec.Verification = &v1alpha1.CatalogVerification{PublicKeys: []string{"a key"}}
	if got := operators.Next(in); got.Create != nil {
		t.Errorf("a key started rollout %s", got.Create.Name)
	}
	in.Rollouts = nil
	if got := operators.Next(in).Create; !cmp.Equal(got.Spec.Release.Catalog.PublicKeys, []string{"a key"}) {
		t.Errorf("keys of the release: %v", got.Spec.Release.Catalog.PublicKeys)
	}
}

// TestWhyBlockedFits: the API server takes no longer text. What ends a hold is not cut.
func TestWhyBlockedFits(t *testing.T) {
	long := strings.Repeat("é", 1024)
	for name, test := range map[string]struct {
		change func(*operators.Input)
		end    string
	}{
		"a block": {func(in *operators.Input) {
			in.Catalog.Spec.Blocks = blocking("1.1.0")
			in.Catalog.Spec.Blocks[0].Reason = long
			in.Catalog.Spec.Blocks[0].Instead = "1.2.0"
		}, "…"},
		"a hold": {func(in *operators.Input) {
			in.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Reason: long,
				Release: in.Rollouts[0].Spec.Release.Hash()}}
		}, "release the hold with `bellwether operator release-hold echo 1.1.0`"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			test.change(&in)
			got := operators.Next(in)
			if got.Block == nil {
				t.Fatal("nothing is blocked")
			}
			why := got.Block.Reason
			if n := utf8.RuneCountInString(why); n != 1024 || !strings.HasSuffix(why, test.end) {
				t.Errorf("%d characters: %s", n, why)
			}
		})
	}
}
