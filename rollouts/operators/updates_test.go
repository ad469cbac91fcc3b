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
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

const upTo200 = upTo110 + `
	1.1.1 replaces 1.1.0
	1.2.0 replaces 1.1.1
	1.3.0 replaces 1.2.0
	2.0.0 replaces 1.3.0`

// withRange returns an input with a range and updates in the spec. All clusters run 1.1.0.
func withRange(version string, updates *v1alpha1.VersionUpdates) func(*testing.T, *operators.Input) {
	return func(t *testing.T, in *operators.Input) {
		in.Package, in.Now = ladder(t, upTo200), noon
		in.Operator.Spec.Version, in.Operator.Spec.Updates = version, updates
	}
}

func approval(minor v1alpha1.UpdatePolicy, version string) *v1alpha1.VersionUpdates {
	u := &v1alpha1.VersionUpdates{Minor: minor, Major: v1alpha1.UpdateApproval}
	if version != "" {
		u.Approved = &v1alpha1.VersionApproval{Version: version, By: "ann", Reason: "tested"}
	}
	return u
}

func TestRanges(t *testing.T) {
	run(t, map[string]scenario{
		"the highest version of the range": {
			withRange(">=1.0.0 <2.0.0", nil),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.3.0"},
		},
		"a patch while a minor version waits": {
			withRange(">=1.0.0 <2.0.0", approval(v1alpha1.UpdateApproval, "")),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.1",
				contains: "; version 1.3.0 waits for an approval since 2026-11-21T12:00:00Z: 1.3.0 is a minor update " +
					"of 1.1.0, and spec.updates.minor is Approval; approve it with `bellwether operator approve echo " +
					"1.3.0 --reason TEXT`"},
		},
		"an operator that waits for an approval is Ready": {
			withRange(">=1.0.0 <2.0.0 !1.1.1", approval(v1alpha1.UpdateApproval, "")),
			want{state: "True", reason: "Succeeded", contains: "2 of 2 clusters run 1.1.0; version 1.3.0 waits"},
		},
		"what was approved": {
			withRange(">=1.0.0 <2.0.0", approval(v1alpha1.UpdateApproval, "1.2.0")),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0",
				contains: "version 1.3.0 waits for an approval"},
		},
		"the head, with a policy": {
			withRange("", approval(v1alpha1.UpdateAutomatic, "")),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.3.0",
				contains: "version 2.0.0 waits for an approval"},
		},
		"an exact version": {
			withRange("1.2.0", nil),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0"},
		},
		"a range above what runs, which needs an approval": {
			withRange(">=1.2.0 <2.0.0", approval(v1alpha1.UpdateApproval, "")),
			want{state: "False", reason: "Waiting", contains: "every version that could be chosen needs an approval: " +
				"1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval: approve the version with " +
				"`bellwether operator approve echo 1.3.0 --reason TEXT`, or change spec.updates"},
		},
		"a range that has nothing": {
			withRange(">=1.4.0 <2.0.0", nil),
			want{state: "Stalled", reason: "UnknownVersion", contains: "the nearest are 2.0.0, 1.3.0: correct " +
				"spec.version, or publish such a version"},
		},
		"a range that has nothing but a blocked version": {
			func(t *testing.T, in *operators.Input) {
				withRange(">=1.3.0 <2.0.0", nil)(t, in)
				in.Catalog.Spec.Blocks = blocking("1.3.0")
			},
			want{state: "Stalled", reason: "VersionBlocked", contains: `no version in ">=1.3.0 <2.0.0" can be rolled ` +
				"out; version 1.3.0 is blocked: it loses data; publish a newer version in the range"},
		},
		"a range that has nothing but a held version": {
			func(t *testing.T, in *operators.Input) {
				withRange(">=1.3.0 <2.0.0", nil)(t, in)
				in.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.3.0", Rollout: "echo-0", Reason: "bad"}}
			},
			want{state: "Stalled", reason: "VersionHeld", contains: `no version in ">=1.3.0 <2.0.0" can be rolled ` +
				"out; version 1.3.0 is held: bad"},
		},
		"a range that was lowered": {
			withRange("<1.1.0", nil),
			want{state: "Stalled", reason: "NoUpgradePath", contains: "a range never takes clusters to a lower " +
				"version: 1.1.0 was rolled out last, and the highest version in the range is 1.0.0: write a range " +
				"that includes the version that the clusters run; or take the clusters back to the version before it " +
				"with `bellwether rollout rollback echo --reason TEXT`: a range is then accepted if it has that " +
				"version or a higher one"},
		},
		"what runs is blocked, and the range has nothing newer": {
			func(t *testing.T, in *operators.Input) {
				withRange("<=1.1.0", nil)(t, in)
				in.Catalog.Spec.Blocks = blocking("1.1.0")
			},
			want{state: "Stalled", reason: "VersionBlocked", contains: "the former is blocked: it loses data; " +
				"publish a newer version"},
		},
		"what runs is blocked, and the range has something newer": {
			func(t *testing.T, in *operators.Input) {
				withRange("<=1.2.0", nil)(t, in)
				in.Catalog.Spec.Blocks = blocking("1.1.0")
			},
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0"},
		},
		"what is no range": {
			withRange("^1.1.0", nil),
			want{state: "Stalled", reason: "InvalidSpec", contains: `spec.version: not a range of versions: ` +
				`"^1.1.0": "^1.1.0" is neither a whole version such as 1.2.0 nor a wildcard such as 1.2.x: write it ` +
				"as >=1.2.0 <2.0.0"},
		},
	})
}

// TestRangeAfterARollback: what was rolled back is skipped, what the clusters run stays, and a version in between needs
// a person.
func TestRangeAfterARollback(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		updates *v1alpha1.VersionUpdates
		want    want
	}{
		"what runs stays": {"<1.3.0", nil, want{state: "True", reason: "Succeeded",
			contains: "held after a rollback: 1.2.0; version 1.1.1 waits for an approval since 2026-11-21T12:00:00Z: " +
				"1.1.1 is lower than 1.2.0, which was rolled back, and higher than 1.1.0"}},
		"a version in between is approved": {"<1.3.0", approval("", "1.1.1"), want{state: "False",
			reason: "Progressing", create: "echo-4", version: "1.1.1"}},
		"the correction": {"<2.0.0", nil, want{state: "False", reason: "Progressing", create: "echo-4",
			version: "1.3.0"}},
		"the range has nothing else": {"=1.2.0", nil, want{state: "Stalled", reason: "VersionHeld",
			contains: "bellwether operator release-hold echo 1.2.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := back(t, v1alpha1.RolloutSucceeded)
			withRange(tc.version, tc.updates)(t, &in)
			check(t, in, tc.want)
		})
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestAvailable: what waits is in the status with the time from which on it does, and is announced once.
func TestAvailable(t *testing.T) {
	in := newInput(t)
	withRange(">=1.1.0 <1.3.0 !1.1.1", approval(v1alpha1.UpdateApproval, ""))(t, &in)
	want := &v1alpha1.AvailableVersion{Version: "1.2.0", Update: v1alpha1.UpdateMinor, Since: metav1.NewTime(noon),
		Reason: "1.2.0 is a minor update of 1.1.0, and spec.updates.minor is Approval"}
	next := operators.Next(in)
	if diff := cmp.Diff(want, next.Status.Available); diff != "" {
		t.Fatalf("available (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, next.Announce); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	in.Operator.Status, in.Now = next.Status, noon.Add(time.Hour)
	if next = operators.Next(in); next.Announce != nil || !next.Status.Available.Since.Equal(&want.Since) {
		t.Errorf("announced again: %+v, since %s", next.Announce, next.Status.Available.Since)
	}
	in.Operator.Spec.Version = ">=1.1.0 <2.0.0 !1.1.1"
	if next = operators.Next(in); next.Announce == nil || next.Announce.Version != "1.3.0" {
		t.Errorf("the next version is not announced: %+v", next.Announce)
	}
	in.PackageFailure, in.Package = &operators.Failure{Reason: v1alpha1.ReasonCatalogUnreachable, Cause: "no answer"},
		nil
	if next = operators.Next(in); next.Status.Available == nil {
		t.Error("while the catalog cannot be read, nothing waits")
	}
	in = newInput(t)
	in.Operator.Status.Available = want
	withRange(">=1.1.0 <1.3.0", approval(v1alpha1.UpdateAutomatic, ""))(t, &in)
	if next = operators.Next(in); next.Status.Available != nil {
		t.Errorf("still waits: %+v", next.Status.Available)
	}
}

// TestClustersBehindCatchUp: clusters in three versions are brought to one of the range, in the steps of the graph.
func TestClustersBehindCatchUp(t *testing.T) {
	in := newInput(t)
	withRange(">=1.2.0 <2.0.0", nil)(t, &in)
	in.Clusters = append(in.Clusters, rollouts.Cluster{Name: "c", Online: true})
	third := in.Installs[1]
	third.Cluster, third.Namespace = "c", "bellwether-c"
	in.Installs = append(in.Installs, third)
	for i, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		in.Installs[i].Installed = catalogs.Installed{Name: "echo.v" + version, Version: version}
		in.Installs[i].SucceededHash = "another"
	}
	check(t, in, want{state: "False", reason: "Progressing", create: "echo-2", version: "1.3.0",
		contains: "rollout echo-2 to 1.3.0 starts"})
	release := operators.Next(in).Create.Spec.Release
	var paths []string
	for _, i := range in.Installs {
		path, err := in.Package.PathFrom(release.Channel, i.Installed, release.Bundle)
		paths = append(paths, fmt.Sprintf("%v %v", path, err))
	}
	if diff := cmp.Diff([]string{"[echo.v1.1.0 echo.v1.1.1 echo.v1.2.0 echo.v1.3.0] <nil>",
		"[echo.v1.1.1 echo.v1.2.0 echo.v1.3.0] <nil>", "[echo.v1.3.0] <nil>"}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}
