// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

var created = metav1.NewTime(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))

func ladder(t testing.TB, notation string) *catalogs.Package {
	t.Helper()
	files := catalogs.SingleFile("test", strings.NewReader(catalogtest.Graph("echo", notation)))
	pkg, err := catalogs.ReadPackage(files, "echo")
	if err != nil {
		t.Fatalf("read package: %v", err)
	}
	return pkg
}

const upTo110 = `
	1.0.0
	1.1.0 replaces 1.0.0`

// newInput has two clusters that run 1.1.0, installed by the first rollout.
func newInput(t testing.TB) operators.Input {
	operator := &v1alpha1.ManagedOperator{}
	operator.Namespace, operator.Name, operator.UID, operator.Generation = "team", "echo", "uid", 2
	operator.CreationTimestamp, operator.Finalizers = created, []string{v1alpha1.FinalizerHub}
	operator.Spec = v1alpha1.ManagedOperatorSpec{Package: "echo", Catalog: v1alpha1.LocalReference{Name: "main"}}
	catalog := &v1alpha1.OperatorCatalog{}
	catalog.Namespace, catalog.Name = "team", "main"
	catalog.Spec.Source.Image = "registry.example.com/main:latest"
	catalog.Status.Digest, catalog.Status.Source = "sha256:1",
		&v1alpha1.CatalogSource{Image: "registry.example.com/main:latest"}
	in := operators.Input{
		Operator: operator, Catalog: catalog, Package: ladder(t, upTo110),
		Clusters: []rollouts.Cluster{
			{Name: "a", Online: true, Labels: map[string]string{"tier": "canary"}},
			{Name: "b", Online: true, Labels: map[string]string{"tier": "prod"}},
		},
	}
	first := operators.Next(in).Create
	if first == nil {
		t.Fatal("no first rollout")
		return in
	}
	first.Status.Phase = v1alpha1.RolloutSucceeded
	in.Rollouts = []v1alpha1.OperatorRollout{*first}
	for _, c := range in.Clusters {
		in.Installs = append(in.Installs, operators.Install{
			Install: removal.Install{Namespace: "bellwether-" + c.Name, Name: "team.echo", Cluster: c.Name,
				Policy: v1alpha1.RemovalOrphan, Held: true},
			Installed:     catalogs.Installed{Name: "echo.v1.1.0", Version: "1.1.0"},
			SucceededHash: first.Spec.Release.Hash(),
			Rollout:       first.Name, Revision: 1, Ready: true,
		})
	}
	return in
}

type want struct {
	state    string // Ready's status, and Stalled's
	reason   string
	contains string
	create   string
	version  string
	supersed string
	deleted  []string
	removals []removal.Step
	finish   bool
	recheck  time.Duration
}

type scenario struct {
	change func(*testing.T, *operators.Input)
	want   want
}

func check(t *testing.T, in operators.Input, want want) {
	t.Helper()
	got := operators.Next(in)
	ready := conditions.Get(got.Status.Conditions, v1alpha1.ConditionReady)
	state := string(ready.Status)
	if conditions.IsTrue(got.Status.Conditions, v1alpha1.ConditionStalled) {
		state = "Stalled"
	}
	if state != want.state || ready.Reason != want.reason || !strings.Contains(ready.Message, want.contains) {
		t.Errorf("%s %s %q,\nwant %s %s with %q", state, ready.Reason, ready.Message, want.state, want.reason,
			want.contains)
	}
	var name, version, superseded string
	if got.Create != nil {
		name, version = got.Create.Name, got.Create.Spec.Release.Version
	}
	if got.Supersede != nil {
		superseded = got.Supersede.Rollout
	}
	if name != want.create || version != want.version || superseded != want.supersed {
		t.Errorf("create %q (%s), supersede %q; want %q (%s), %q", name, version, superseded, want.create, want.version,
			want.supersed)
	}
	if diff := cmp.Diff(want.deleted, got.DeleteRollouts); diff != "" {
		t.Errorf("deleted rollouts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.removals, got.Removals); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
	if got.RemoveFinalizer != want.finish || got.RecheckAfter != want.recheck {
		t.Errorf("remove finalizer %v, recheck %s; want %v, %s", got.RemoveFinalizer, got.RecheckAfter, want.finish,
			want.recheck)
	}
}

func run(t *testing.T, tests map[string]scenario) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			test.change(t, &in)
			check(t, in, test.want)
		})
	}
}

func TestTarget(t *testing.T) {
	run(t, map[string]scenario{
		"nothing to do": {
			func(*testing.T, *operators.Input) {},
			want{state: "True", reason: "Succeeded", contains: "2 of 2 clusters run 1.1.0"},
		},
		"nothing to do on the only cluster": {
			func(_ *testing.T, in *operators.Input) { in.Clusters, in.Installs = in.Clusters[:1], in.Installs[:1] },
			want{state: "True", reason: "Succeeded", contains: "1 of 1 cluster runs 1.1.0"},
		},
		"first rollout": {
			func(_ *testing.T, in *operators.Input) { in.Rollouts, in.Installs = nil, nil },
			want{state: "False", reason: "Progressing", create: "echo-1", version: "1.1.0"},
		},
		"the head moved": {
			func(t *testing.T, in *operators.Input) { in.Package = ladder(t, upTo110+"\n1.2.0 replaces 1.1.0") },
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0"},
		},
		"an exact version does not follow the head": {
			func(t *testing.T, in *operators.Input) {
				in.Package = ladder(t, upTo110+"\n1.2.0 replaces 1.1.0")
				in.Operator.Spec.Version = "1.1.0"
			},
			want{state: "True", reason: "Succeeded"},
		},
		"a republished catalog is the same release": {
			func(_ *testing.T, in *operators.Input) { in.Catalog.Status.Digest = "sha256:2" },
			want{state: "True", reason: "Succeeded"},
		},
		"the drift policy is no release": {
			func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Install.Drift = v1alpha1.DriftCorrect },
			want{state: "True", reason: "Succeeded"},
		},
		"changed settings are another release": {
			func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Install.Mode = v1alpha1.InstallOwnNamespace },
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0"},
		},
		"explicit defaults are the same release": {
			func(_ *testing.T, in *operators.Input) {
				in.Operator.Spec.Install.InstallSettings = v1alpha1.InstallSettings{Namespace: "echo",
					Mode: v1alpha1.InstallAllNamespaces}
			},
			want{state: "True", reason: "Succeeded"},
		},
		"no catalog": {
			func(_ *testing.T, in *operators.Input) { in.Catalog, in.Package = nil, nil },
			want{state: "Stalled", reason: "CatalogNotFound",
				contains: "OperatorCatalog main not found in namespace team"},
		},
		"catalog not read yet": {
			func(_ *testing.T, in *operators.Input) {
				in.Package, in.Catalog.Status = nil, v1alpha1.OperatorCatalogStatus{}
			},
			want{state: "False", reason: "Waiting", contains: "has not been read yet"},
		},
		"catalog unreachable from the start": {
			func(_ *testing.T, in *operators.Input) {
				in.Package, in.Catalog.Status = nil, v1alpha1.OperatorCatalogStatus{}
				conditions.Summarize(&in.Catalog.Status.Conditions, 1, conditions.Summary{
					State: conditions.Stalled, Reason: v1alpha1.ReasonCatalogUnreachable,
					Message: "connection refused"})
			},
			want{state: "Stalled", reason: "CatalogUnreachable", contains: "OperatorCatalog main: connection refused"},
		},
		"package unknown": {
			func(_ *testing.T, in *operators.Input) {
				in.Package = nil
				in.PackageFailure = &operators.Failure{Reason: v1alpha1.ReasonUnknownPackage, Cause: "no such package"}
			},
			want{state: "Stalled", reason: "UnknownPackage", contains: "correct spec.package"},
		},
		"catalog missing in the registry": {
			func(_ *testing.T, in *operators.Input) {
				in.Package = nil
				in.PackageFailure = &operators.Failure{Reason: v1alpha1.ReasonCatalogUnreachable,
					Cause: "connection refused"}
			},
			want{state: "Stalled", reason: "CatalogUnreachable", contains: "this is retried automatically",
				recheck: 30 * time.Second},
		},
		"channel unknown": {
			func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Channel = "fast" },
			want{state: "Stalled", reason: "UnknownChannel", contains: `"fast"`},
		},
		"version unknown": {
			func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Version = "9.9.9" },
			want{state: "Stalled", reason: "UnknownVersion", contains: "it offers 1.1.0, 1.0.0"},
		},
		"paused": {
			func(_ *testing.T, in *operators.Input) {
				in.Rollouts, in.Installs, in.Operator.Spec.Paused = nil, nil, true
			},
			want{state: "False", reason: "Paused", contains: "spec.paused"},
		},
	})
}

func TestPaths(t *testing.T) {
	from := func(i *operators.Install, version string) {
		i.Installed, i.SucceededHash = catalogs.Installed{Name: "echo.v" + version, Version: version}, "other"
	}
	run(t, map[string]scenario{
		"downgrade": {
			func(_ *testing.T, in *operators.Input) { in.Operator.Spec.Version = "1.0.0" },
			want{state: "Stalled", reason: "NoUpgradePath", contains: "this is a downgrade"},
		},
		"no cluster has a path": {
			func(t *testing.T, in *operators.Input) {
				in.Package = ladder(t, "2.0.0")
				from(&in.Installs[0], "0.9.0")
			},
			want{state: "Stalled", reason: "NoUpgradePath",
				contains: `no upgrade path to 2.0.0 in channel "stable" for 2 of 2 clusters: a, b (from 0.9.0, 1.1.0)`},
		},
		"some have a path": {
			func(t *testing.T, in *operators.Input) {
				in.Package = ladder(t, upTo110+"\n1.2.0 replaces 1.1.0")
				from(&in.Installs[0], "0.9.0")
			},
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0",
				contains: "no upgrade path to 1.2.0 in channel \"stable\" for 1 of 2 clusters: a (from 0.9.0)"},
		},
		"a fresh cluster has a path": {
			func(t *testing.T, in *operators.Input) {
				in.Package = ladder(t, "2.0.0")
				in.Installs = in.Installs[:1]
			},
			want{state: "False", reason: "Progressing", create: "echo-2", version: "2.0.0"},
		},
		"a republished catalog brings the missing edge": {
			func(t *testing.T, in *operators.Input) {
				in.Package = ladder(t, "0.9.0\n1.0.0\n1.1.0 replaces 0.9.0 skips 1.0.0")
				in.Catalog.Status.Digest = "sha256:2"
				from(&in.Installs[0], "0.9.0")
				in.Installs[0].StalledReason = v1alpha1.ReasonNoUpgradePath
				in.Rollouts[0].Status.Phase = v1alpha1.RolloutHalted
			},
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0", supersed: "echo-1"},
		},
	})
}

func TestRollouts(t *testing.T) {
	next := func(t *testing.T, in *operators.Input) { in.Package = ladder(t, upTo110+"\n1.2.0 replaces 1.1.0") }
	phase := func(p v1alpha1.RolloutPhase) func(*testing.T, *operators.Input) {
		return func(_ *testing.T, in *operators.Input) {
			in.Rollouts[0].Status.Phase, in.Rollouts[0].Status.Message = p, "wave canary"
			in.Installs[1].SucceededHash = ""
		}
	}
	then := func(changes ...func(*testing.T, *operators.Input)) func(*testing.T, *operators.Input) {
		return func(t *testing.T, in *operators.Input) {
			for _, change := range changes {
				change(t, in)
			}
		}
	}
	abort := func(superseded bool) func(*testing.T, *operators.Input) {
		return func(_ *testing.T, in *operators.Input) {
			in.Rollouts[0].Spec.Abort = &v1alpha1.RolloutAbort{Reason: "why", Superseded: superseded}
		}
	}
	run(t, map[string]scenario{
		"in progress": {phase(v1alpha1.RolloutProgressing),
			want{state: "False", reason: "Progressing", contains: "wave canary"}},
		"not seen yet": {phase(""), want{state: "False", reason: "Progressing"}},
		"paused": {phase(v1alpha1.RolloutPaused),
			want{state: "False", reason: "Paused", contains: "wave canary"}},
		"halted": {phase(v1alpha1.RolloutHalted),
			want{state: "Stalled", reason: "Halted", contains: "wave canary"}},
		"aborted by a person: not started again": {
			then(phase(v1alpha1.RolloutAborted), abort(false)),
			want{state: "Stalled", reason: "Aborted", contains: "change the version"},
		},
		"superseded: started again": {
			then(phase(v1alpha1.RolloutSuperseded), abort(true)),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0"},
		},
		"another target supersedes": {
			then(phase(v1alpha1.RolloutProgressing), next),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0", supersed: "echo-1"},
		},
		"another target waits with Finish": {
			then(phase(v1alpha1.RolloutProgressing), next, func(_ *testing.T, in *operators.Input) {
				in.Operator.Spec.Strategy.NewTarget = v1alpha1.NewTargetFinish
			}),
			want{state: "False", reason: "Waiting", contains: "1.2.0 waits for rollout echo-1 (1.1.0) to end"},
		},
		"a hub that stopped between two rollouts": {
			then(phase(v1alpha1.RolloutProgressing), abort(true), next),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.2.0"},
		},
		"revisions never go back": {
			then(next, func(_ *testing.T, in *operators.Input) { in.Installs[1].Revision = 7 }),
			want{state: "False", reason: "Progressing", create: "echo-8", version: "1.2.0"},
		},
		"waits for a late joiner": {
			func(_ *testing.T, in *operators.Input) {
				in.Clusters = append(in.Clusters, rollouts.Cluster{Name: "c", Online: true})
			},
			want{state: "False", reason: "Progressing", contains: "not updated yet: c"},
		},
		"does not wait for an offline late joiner": {
			func(_ *testing.T, in *operators.Input) {
				in.Clusters = append(in.Clusters, rollouts.Cluster{Name: "c"})
			},
			want{state: "True", reason: "Succeeded", contains: "deferred because offline or paused: c"},
		},
		"an offline cluster's report is not current": {
			func(_ *testing.T, in *operators.Input) {
				in.Clusters[1].Online = false
				in.Clusters[1].OfflineSince = time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
			},
			want{state: "True", reason: "Succeeded",
				contains: "; no current report from b (since 2026-11-22T02:00:00Z)"},
		},
		"does not wait for an ignored late joiner": {
			func(_ *testing.T, in *operators.Input) {
				in.Clusters = append(in.Clusters, rollouts.Cluster{Name: "c", Online: true})
				in.Rollouts[0].Spec.Strategy.LateJoiners = v1alpha1.LateIgnore
			},
			want{state: "True", reason: "Succeeded", contains: "2 of 3"},
		},
		"no longer ready": {
			func(_ *testing.T, in *operators.Input) { in.Installs[0].Ready = false },
			want{state: "False", reason: "ClustersNotReady", contains: "no longer Ready: a"},
		},
	})
}

// TestRevisionsOfAgents checks that the revision that an agent reports raises the next revision by at most one, and
// that no number overflows.
func TestRevisionsOfAgents(t *testing.T) {
	for name, test := range map[string]struct {
		admitted, observed, want int64
	}{
		"as the hub gave out":              {5, 5, 6},
		"one that the hub does not know":   {5, 6, 7},
		"far ahead":                        {5, 1000, 7},
		"the largest number":               {5, math.MaxInt64, 7},
		"less than nothing":                {5, math.MinInt64, 6},
		"the hub has given out nearly all": {v1alpha1.MaxRevision - 1, math.MaxInt64, v1alpha1.MaxRevision},
		"a status from before":             {math.MaxInt64, 5, v1alpha1.MaxRevision},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.Installs[0].Revision, in.Installs[0].Observed = test.admitted, test.observed
			in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing
			in.Package = ladder(t, upTo110+"\n1.2.0 replaces 1.1.0")
			next := operators.Next(in)
			if next.Create == nil || next.Create.Spec.Revision != test.want {
				t.Fatalf("%+v, want revision %d", next.Create, test.want)
			}
			if name := next.Create.Name; len(strings.Repeat("o", 50)+strings.TrimPrefix(name, "echo")) > 63 {
				t.Errorf("an operator with a long name has no room for %s", name)
			}
		})
	}
}

func TestClusters(t *testing.T) {
	deselect := func(_ *testing.T, in *operators.Input) {
		in.Operator.Spec.ClusterSelector.MatchLabels = map[string]string{"tier": "canary"}
	}
	followed := func(t *testing.T, in *operators.Input) {
		deselect(t, in)
		in.Rollouts[0].Spec.ClusterSelector = in.Operator.Spec.ClusterSelector
	}
	leave := removal.Step{Namespace: "bellwether-b", Name: "team.echo", Delete: true}
	run(t, map[string]scenario{
		"a changed selector takes another rollout, and removes nothing before": {
			deselect, want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0"},
		},
		"a deselected cluster is removed": {
			followed, want{state: "True", reason: "Succeeded", contains: "1 of 1", removals: []removal.Step{leave}},
		},
		"a deselected cluster is removed by policy": {
			func(t *testing.T, in *operators.Input) {
				followed(t, in)
				in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
			},
			want{state: "True", reason: "Succeeded", removals: []removal.Step{{
				Namespace: "bellwether-b", Name: "team.echo", SetPolicy: v1alpha1.RemovalUninstall}}},
		},
		"the policy is written before the install is deleted": {
			func(t *testing.T, in *operators.Input) {
				followed(t, in)
				in.Operator.Spec.RemovalPolicy, in.Installs[1].Policy = v1alpha1.RemovalUninstall,
					v1alpha1.RemovalUninstall
			},
			want{state: "True", reason: "Succeeded", contains: "no longer selected: it must still be " +
				"uninstalled from 1 cluster",
				removals: []removal.Step{leave}},
		},
		"a removal from more clusters than without a confirmation": {
			func(t *testing.T, in *operators.Input) {
				followed(t, in)
				in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
				in.Operator.Spec.Removal = &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(0))}
			},
			want{state: "True", reason: "Succeeded",
				contains: "it is to be uninstalled from 1 cluster, which needs a confirmation: bellwether operator " +
					"confirm-removal echo"},
		},
		"a cluster that is selected again before its removal began": {
			func(_ *testing.T, in *operators.Input) { in.Installs[0].Policy = v1alpha1.RemovalUninstall },
			want{state: "True", reason: "Succeeded", removals: []removal.Step{{
				Namespace: "bellwether-a", Name: "team.echo", SetPolicy: v1alpha1.RemovalOrphan}}},
		},
		"an offline deselected cluster is named": {
			func(t *testing.T, in *operators.Input) {
				followed(t, in)
				in.Operator.Spec.RemovalPolicy, in.Installs[1].Policy = v1alpha1.RemovalUninstall,
					v1alpha1.RemovalUninstall
				in.Installs[1].Deleting, in.Clusters[1].Online = true, false
			},
			want{state: "True", reason: "Succeeded", contains: "but cannot be uninstalled because they are offline: b"},
		},
		"a deselected cluster is removed while the version is unknown": {
			func(t *testing.T, in *operators.Input) {
				followed(t, in)
				in.Operator.Spec.Version = "9.9.9"
			},
			want{state: "Stalled", reason: "UnknownVersion", removals: []removal.Step{leave}},
		},
		"a cluster that leaves the fleet is not handled": {
			func(_ *testing.T, in *operators.Input) { in.Clusters[1].Deleting = true },
			want{state: "True", reason: "Succeeded", contains: "1 of 1"},
		},
		"nothing matches: nothing is removed": {
			func(_ *testing.T, in *operators.Input) {
				in.Operator.Spec.ClusterSelector.MatchLabels = map[string]string{"tier": "cannary"}
				in.Rollouts[0].Spec.ClusterSelector = in.Operator.Spec.ClusterSelector
			},
			want{state: "Stalled", reason: "NoClusters",
				contains: "(tier=cannary) matches none of the fleet's 2 clusters"},
		},
		"no clusters at all": {
			func(_ *testing.T, in *operators.Input) { in.Clusters = nil },
			want{state: "Stalled", reason: "NoClusters", contains: "create a FleetCluster"},
		},
		"it depends on itself": {
			func(_ *testing.T, in *operators.Input) { in.Rollouts, in.Cycle = nil, "echo, db, echo" },
			want{state: "Stalled", reason: "InvalidSpec", contains: "(echo, db, echo)"},
		},
		"an invalid selector": {
			func(_ *testing.T, in *operators.Input) {
				in.Operator.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a",
					Operator: "Near"}}
			},
			want{state: "Stalled", reason: "InvalidSpec", contains: "spec.clusterSelector"},
		},
	})
}

func TestClaims(t *testing.T) {
	claimed := func(namespace string, created time.Time,
		change func(*engines.Claim)) func(*testing.T, *operators.Input) {
		return func(_ *testing.T, in *operators.Input) {
			in.Rollouts, in.Installs = nil, nil
			in.Package.Bundles["echo.v1.1.0"].Properties = []bundles.Property{{Type: bundles.PropertyGVK,
				Value: json.RawMessage(`{"group":"example.com","version":"v1","kind":"Echo"}`)}}
			c := engines.Claim{Key: types.NamespacedName{Namespace: namespace, Name: "echo"}, Package: "echo",
				Created: metav1.NewTime(created), Namespace: "echo", AllNamespaces: true}
			if change != nil {
				change(&c)
			}
			in.Claims = []engines.Claim{c}
		}
	}
	older := created.Add(-time.Minute)
	selects := func(tier string) func(*engines.Claim) {
		return func(c *engines.Claim) { c.Selector.MatchLabels = map[string]string{"tier": tier} }
	}
	elsewhere := func(all bool, pkg string, apis ...string) func(*engines.Claim) {
		return func(c *engines.Claim) {
			c.Namespace, c.AllNamespaces, c.Package, c.Provides = "other", all, pkg, apis
		}
	}
	ownNamespace := func(change func(*testing.T, *operators.Input)) func(*testing.T, *operators.Input) {
		return func(t *testing.T, in *operators.Input) {
			in.Operator.Spec.Install.Mode = v1alpha1.InstallOwnNamespace
			change(t, in)
		}
	}
	permits := func(namespaces string, change func(*testing.T, *operators.Input)) func(*testing.T, *operators.Input) {
		return func(t *testing.T, in *operators.Input) {
			change(t, in)
			in.Access = []v1alpha1.FleetAccess{{Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{namespaces}}}}
		}
	}
	free := want{state: "False", reason: "Progressing", create: "echo-1", version: "1.1.0"}
	elsewhereStalls := func(contains string) want {
		return want{state: "Stalled", reason: "InstalledElsewhere", contains: contains}
	}
	run(t, map[string]scenario{
		"an older operator wins": {
			claimed("zoo", older, nil),
			want{state: "Stalled", reason: "NamespaceConflict",
				contains: "ManagedOperator zoo/echo is older and installs into namespace echo as well, on a, b"},
		},
		"a newer operator loses": {claimed("all", created.Add(time.Minute), nil), free},
		"same age: the first name wins": {claimed("all", created.Time, nil),
			want{state: "Stalled", reason: "NamespaceConflict"}},
		"same age: the last name loses": {claimed("zoo", created.Time, nil), free},
		"other clusters: no conflict":   {claimed("zoo", older, selects("edge")), free},
		"one shared cluster: conflict": {
			claimed("zoo", older, selects("prod")),
			want{state: "Stalled", reason: "NamespaceConflict", contains: "on b:"},
		},
		"one package in two namespaces, both watch all": {claimed("zoo", older, elsewhere(true, "echo")),
			elsewhereStalls("zoo/echo is older and installs package echo into namespace other, on a, b; OLM fails " +
				"the second operator that provides an API where one of the two watches all namespaces: install both " +
				"with spec.install.mode OwnNamespace")},
		"the older one watches all": {ownNamespace(claimed("zoo", older, elsewhere(true, "echo"))),
			elsewhereStalls("package echo")},
		"the newer one watches all": {claimed("zoo", older, elsewhere(false, "echo")),
			elsewhereStalls("package echo")},
		"each watches a namespace of its own": {ownNamespace(claimed("zoo", older, elsewhere(false, "echo"))), free},
		"another package provides the API": {
			claimed("zoo", older, elsewhere(true, "delta", "Delta.v1.example.com", "Echo.v1.example.com")),
			elsewhereStalls("provides Echo.v1.example.com as well, on a, b; OLM fails the second operator that " +
				"provides")},
		"another package provides another API": {
			claimed("zoo", older, elsewhere(true, "delta", "Delta.v1.example.com")),
			free},
		"another package provides the API in a namespace of its own": {
			ownNamespace(claimed("zoo", older, elsewhere(false, "delta", "Echo.v1.example.com"))), free},
		"a namespace that may install nothing claims nothing": {permits("team", claimed("zoo", older, nil)), free},
		"a namespace that may install claims": {permits("*", claimed("zoo", older, nil)),
			want{state: "Stalled", reason: "NamespaceConflict"}},
	})
}

func TestLeaving(t *testing.T) {
	leaving := func(changes ...func(*operators.Input)) func(*testing.T, *operators.Input) {
		return func(_ *testing.T, in *operators.Input) {
			in.Operator.DeletionTimestamp = &created
			in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
			for _, change := range changes {
				change(in)
			}
		}
	}
	noRollouts := func(in *operators.Input) { in.Rollouts = nil }
	deleted := func(in *operators.Input) {
		for i := range in.Installs {
			in.Installs[i].Deleting, in.Installs[i].Policy = true, v1alpha1.RemovalUninstall
		}
	}
	step := func(cluster string) removal.Step {
		return removal.Step{Namespace: "bellwether-" + cluster, Name: "team.echo", SetPolicy: v1alpha1.RemovalUninstall}
	}
	agreed := func(in *operators.Input) {
		for i := range in.Installs {
			in.Installs[i].Policy = v1alpha1.RemovalUninstall
		}
	}
	run(t, map[string]scenario{
		"rollouts are deleted first": {
			leaving(), want{state: "False", reason: "Deleting", contains: "rollouts", deleted: []string{"echo-1"}},
		},
		"more clusters than without a confirmation": {
			leaving(noRollouts, func(in *operators.Input) {
				in.Operator.Spec.Removal = &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(1))}
			}),
			want{state: "Stalled", reason: "RemovalUnconfirmed",
				contains: "from 2 clusters, which needs a confirmation"},
		},
		"a cluster that cannot uninstall it": {
			leaving(noRollouts, deleted,
				func(in *operators.Input) { in.Installs[0].StalledReason = "UninstallFailed" }),
			want{state: "Stalled", reason: "UninstallFailed", contains: "cannot be uninstalled from a, so no other"},
		},
		"then they are deleted one after the other": {
			leaving(noRollouts, agreed),
			want{state: "False", reason: "Deleting", contains: "waiting for 2 clusters to remove it: a, b",
				removals: []removal.Step{{Namespace: "bellwether-a", Name: "team.echo", Delete: true}}},
		},
		"then the policy is written": {
			leaving(noRollouts),
			want{state: "False", reason: "Deleting", contains: "waiting for 2 clusters to remove it: a, b",
				removals: []removal.Step{step("a"), step("b")}},
		},
		"a cluster that leaves the fleet is not handled": {
			leaving(noRollouts, func(in *operators.Input) { in.Clusters[1].Deleting = true }),
			want{state: "False", reason: "Deleting", contains: "waiting for 2 clusters to remove it: a, b",
				removals: []removal.Step{step("a")}},
		},
		"waits for an offline cluster": {
			leaving(noRollouts, deleted, func(in *operators.Input) { in.Clusters[1].Online = false }),
			want{state: "Stalled", reason: "AgentOffline",
				contains: "1 of 2 clusters are offline and have not uninstalled the operator: b; there is no time " +
					"limit"},
		},
		"waits for an offline cluster where something is to be put back": {
			leaving(noRollouts, deleted, func(in *operators.Input) {
				in.Clusters[1].Online = false
				in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalRestore
				for i := range in.Installs {
					in.Installs[i].Policy = v1alpha1.RemovalRestore
				}
			}),
			want{state: "Stalled", reason: "AgentOffline",
				contains: "1 of 2 clusters are offline and have not put back what was there before: b; there is no " +
					"time limit"},
		},
		"what was there is put back everywhere at once": {
			leaving(noRollouts, func(in *operators.Input) {
				in.Operator.Spec.RemovalPolicy, in.Clusters[1].Paused = v1alpha1.RemovalRestore, true
			}),
			want{state: "False", reason: "ClusterPaused",
				contains: "nothing is put back on clusters that are paused (b)",
				removals: []removal.Step{{Namespace: "bellwether-a", Name: "team.echo",
					SetPolicy: v1alpha1.RemovalRestore, Delete: true},
					{Namespace: "bellwether-b", Name: "team.echo", SetPolicy: v1alpha1.RemovalRestore}}},
		},
		"nothing is uninstalled from a paused cluster": {
			leaving(noRollouts, agreed, func(in *operators.Input) { in.Clusters[1].Paused = true }),
			want{state: "False", reason: "ClusterPaused",
				contains: "waiting for 2 clusters to remove it: a, b; nothing is uninstalled from clusters that are " +
					"paused (b): set spec.paused of the FleetCluster to false",
				removals: []removal.Step{{Namespace: "bellwether-a", Name: "team.echo", Delete: true}}},
		},
		"all clusters are paused": {
			leaving(noRollouts, agreed, func(in *operators.Input) {
				in.Clusters[0].Paused, in.Clusters[1].Paused = true, true
			}),
			want{state: "False", reason: "ClusterPaused", contains: "clusters that are paused (a, b)"},
		},
		"a paused cluster and an offline one": {
			leaving(noRollouts, agreed, func(in *operators.Input) {
				in.Clusters[0].Online, in.Clusters[1].Paused = false, true
			}),
			want{state: "Stalled", reason: "AgentOffline",
				contains: "still have it; nothing is uninstalled from clusters that are paused (b)"},
		},
		"Orphan does not wait for a paused cluster": {
			leaving(noRollouts, func(in *operators.Input) {
				in.Clusters[1].Paused = true
				in.Installs = in.Installs[1:]
				in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalOrphan
			}),
			want{state: "False", reason: "Deleting", contains: "waiting for 1 cluster to remove it: b",
				removals: []removal.Step{{Namespace: "bellwether-b", Name: "team.echo", Delete: true}}},
		},
		"what hibernates is offline": {
			leaving(noRollouts, deleted, func(in *operators.Input) {
				in.Clusters[1].Online, in.Clusters[1].Paused = false, true
				in.Clusters[1].PausedReason = v1alpha1.ReasonHibernating
			}),
			want{state: "Stalled", reason: "AgentOffline", contains: "1 of 2 clusters are offline"},
		},
		"Orphan ends the wait for an offline cluster": {
			leaving(noRollouts, deleted, func(in *operators.Input) {
				in.Clusters[1].Online = false
				in.Installs = in.Installs[1:]
				in.Operator.Spec.RemovalPolicy = v1alpha1.RemovalOrphan
			}),
			want{state: "False", reason: "Deleting", contains: "waiting for 1 cluster to remove it: b",
				removals: []removal.Step{{Namespace: "bellwether-b", Name: "team.echo",
					SetPolicy: v1alpha1.RemovalOrphan, Release: true}}},
		},
		"does not wait for a cluster that left the fleet": {
			leaving(noRollouts, deleted, func(in *operators.Input) { in.Clusters = in.Clusters[:1] }),
			want{state: "False", reason: "Deleting",
				removals: []removal.Step{{Namespace: "bellwether-b", Name: "team.echo", Release: true}}},
		},
		"gone": {
			leaving(noRollouts, func(in *operators.Input) { in.Installs = nil }),
			want{state: "False", reason: "Deleting", finish: true},
		},
		"nothing changes without the hub's finalizer": {
			leaving(func(in *operators.Input) { in.Operator.Finalizers = nil }), want{},
		},
	})
}

func TestInvalidSelectors(t *testing.T) {
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: "Near", Values: []string{"x"}}}}
	wave := []v1alpha1.Wave{{Name: "canary"}, {Name: "prod", Selector: invalid}}
	run(t, map[string]scenario{
		"of a wave: no rollout is created": {
			func(_ *testing.T, in *operators.Input) { in.Rollouts, in.Operator.Spec.Strategy.Waves = nil, wave },
			want{state: "Stalled", reason: "InvalidSpec",
				contains: `spec.strategy.waves[1].selector.matchExpressions[0].operator: Invalid value: "Near"`},
		},
		"of a wave: the running rollout continues": {
			func(_ *testing.T, in *operators.Input) {
				in.Rollouts[0].Status.Phase, in.Operator.Spec.Strategy.Waves = v1alpha1.RolloutProgressing, wave
				in.Operator.Spec.Version = "1.0.0"
			},
			want{state: "Stalled", reason: "InvalidSpec", contains: "; rollout echo-1 continues as planned"},
		},
		"of the clusters": {
			func(_ *testing.T, in *operators.Input) { in.Operator.Spec.ClusterSelector = *invalid },
			want{state: "Stalled", reason: "InvalidSpec",
				contains: `spec.clusterSelector.matchExpressions[0].operator: Invalid value: "Near"`},
		},
		"an invalid label value": {
			func(_ *testing.T, in *operators.Input) {
				in.Operator.Spec.ClusterSelector.MatchLabels = map[string]string{"tier": "not valid!"}
			},
			want{state: "Stalled", reason: "InvalidSpec",
				contains: `spec.clusterSelector.matchLabels: Invalid value: "not valid!"`},
		},
		"corrected: a rollout that could never be planned is replaced": {
			func(_ *testing.T, in *operators.Input) {
				in.Rollouts[0].Status.Phase, in.Rollouts[0].Spec.Strategy.Waves = v1alpha1.RolloutPending, wave
			},
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0", supersed: "echo-1"},
		},
	})
}

func TestRestart(t *testing.T) {
	restart := func(changes ...func(*operators.Input)) func(*testing.T, *operators.Input) {
		return func(_ *testing.T, in *operators.Input) {
			in.Operator.Spec.Restart = "now"
			for _, change := range changes {
				change(in)
			}
		}
	}
	progressing := func(in *operators.Input) { in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing }
	run(t, map[string]scenario{
		"the same release again": {
			restart(), want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0"},
		},
		"once": {
			restart(func(in *operators.Input) { in.Rollouts[0].Spec.Restart = "now" }),
			want{state: "True", reason: "Succeeded"},
		},
		"removing spec.restart starts nothing": {
			restart(func(in *operators.Input) {
				in.Rollouts[0].Spec.Restart, in.Operator.Spec.Restart = "now", ""
			}),
			want{state: "True", reason: "Succeeded"},
		},
		"the running rollout is superseded, even with newTarget Finish": {
			restart(progressing,
				func(in *operators.Input) { in.Operator.Spec.Strategy.NewTarget = v1alpha1.NewTargetFinish }),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0", supersed: "echo-1"},
		},
		"after an abort": {
			restart(func(in *operators.Input) {
				in.Rollouts[0].Spec.Abort = &v1alpha1.RolloutAbort{Reason: "no"}
				in.Rollouts[0].Status.Phase = v1alpha1.RolloutAborted
			}),
			want{state: "False", reason: "Progressing", create: "echo-2", version: "1.1.0"},
		},
	})
	in := newInput(t)
	in.Operator.Spec.Restart = "now"
	if got := operators.Next(in).Create.Spec.Restart; got != "now" {
		t.Errorf("the rollout was made with restart %q: it would be made again", got)
	}
}

func TestStrategyEdit(t *testing.T) {
	in := newInput(t)
	in.Rollouts[0].Status.Phase = v1alpha1.RolloutProgressing
	in.Operator.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
	got := operators.Next(in)
	ready := conditions.Get(got.Status.Conditions, v1alpha1.ConditionReady)
	if !got.Status.Rollout.StrategyOutdated || !strings.Contains(ready.Message, "applies to the next rollout") {
		t.Errorf("%+v: %s", got.Status.Rollout, ready.Message)
	}
	in.Rollouts[0].Status.Phase = v1alpha1.RolloutSucceeded
	if operators.Next(in).Status.Rollout.StrategyOutdated {
		t.Error("the strategy of a rollout that has ended is shown as outdated")
	}
}

func TestHistory(t *testing.T) {
	in := newInput(t)
	in.Rollouts[0].Status.Message = "2 of 2 clusters updated"
	in.Operator.Status = operators.Next(in).Status
	want := []v1alpha1.RolloutOutcome{{Name: "echo-1", Revision: 1, Version: "1.1.0",
		Phase: v1alpha1.RolloutSucceeded, Message: "2 of 2 clusters updated"}}
	if diff := cmp.Diff(want, in.Operator.Status.History); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	in.Rollouts[0].Status.Message, in.Rollouts[0].Status.Clusters.Deferred = "0 of 2 clusters updated", 2
	if diff := cmp.Diff(want, operators.Next(in).Status.History); diff != "" {
		t.Errorf("history after its agents were away (-want +got):\n%s", diff)
	}
	in.Rollouts = nil
	got := operators.Next(in)
	want[0].Deleted = true
	if diff := cmp.Diff(want, got.Lost); diff != "" {
		t.Errorf("deleted by somebody (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got.Status.History); diff != "" {
		t.Errorf("history after the deletion (-want +got):\n%s", diff)
	}
	if got.Create.Spec.Revision != 2 {
		t.Errorf("revision %d after 1 was deleted", got.Create.Spec.Revision)
	}
	in.Operator.Status = got.Status
	if again := operators.Next(in).Lost; again != nil {
		t.Errorf("reported again: %v", again)
	}
}

func TestFinalizerComesFirst(t *testing.T) {
	in := newInput(t)
	in.Operator.Finalizers = nil
	if !operators.Next(in).AddFinalizer {
		t.Error("the finalizer is not added")
	}
}

func TestPruning(t *testing.T) {
	tests := map[string]struct {
		phases []v1alpha1.RolloutPhase // from revision 1 on
		limit  int32
		want   []string
	}{
		"within the limit": {[]v1alpha1.RolloutPhase{v1alpha1.RolloutSuperseded, v1alpha1.RolloutSucceeded}, 2,
			nil},
		"the oldest is deleted": {[]v1alpha1.RolloutPhase{v1alpha1.RolloutAborted, v1alpha1.RolloutSuperseded,
			v1alpha1.RolloutSucceeded}, 2, []string{"echo-1"}},
		"a running one is kept": {[]v1alpha1.RolloutPhase{v1alpha1.RolloutProgressing, v1alpha1.RolloutSuperseded,
			v1alpha1.RolloutSucceeded}, 1, []string{"echo-2"}},
		"a running one does not count": {[]v1alpha1.RolloutPhase{v1alpha1.RolloutSucceeded,
			v1alpha1.RolloutProgressing},
			1, nil},
		"the newest is kept": {[]v1alpha1.RolloutPhase{v1alpha1.RolloutSucceeded, v1alpha1.RolloutSucceeded}, 1,
			[]string{"echo-1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.Operator.Spec.HistoryLimit = &test.limit
			template := in.Rollouts[0]
			in.Rollouts = nil
			for i, phase := range test.phases {
				r := *template.DeepCopy()
				r.Name, r.Spec.Revision, r.Status.Phase = fmt.Sprintf("echo-%d", i+1), int64(i+1), phase
				in.Rollouts = append(in.Rollouts, r)
			}
			if diff := cmp.Diff(test.want, operators.Next(in).DeleteRollouts); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	in := newInput(t)
	in.Clusters[1].Online = false
	in.Installs[1].Installed, in.Installs[1].SucceededHash = catalogs.Installed{Name: "echo.v1.0.0", Version: "1.0.0"},
		""
	got := operators.Next(in).Status
	want := v1alpha1.ManagedOperatorStatus{
		Target: &v1alpha1.TargetVersion{Version: "1.1.0", Bundle: "echo.v1.1.0", Channel: "stable",
			CatalogDigest: "sha256:1",
			Reason:        "the head of the channel"},
		Rollout: &v1alpha1.RolloutSummary{Name: "echo-1", Revision: 1, Phase: v1alpha1.RolloutSucceeded},
		History: []v1alpha1.RolloutOutcome{{Name: "echo-1", Revision: 1, Version: "1.1.0",
			Phase: v1alpha1.RolloutSucceeded}},
		Clusters: v1alpha1.ClusterCounts{Selected: 2, Updated: 1, Ready: 1, Offline: 1},
		Versions: []v1alpha1.VersionCount{{Version: "1.0.0", Clusters: 1}, {Version: "1.1.0", Clusters: 1}},
	}
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// A bundle's SLOs are copied to the status if they are small enough.
func TestTargetHasSLO(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"nothing":   {"", ""},
		"something": {`{"without":["webhook"]}`, `{"without":["webhook"]}`},
		"no object": {`[]`, ""},
		"too much":  {`{"without":["` + strings.Repeat("x", 16<<10) + `"]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			if test.value != "" {
				b := in.Package.Bundles["echo.v1.1.0"]
				b.Properties = append(b.Properties, bundles.Property{Type: bundles.PropertySLO,
					Value: json.RawMessage(test.value)})
			}
			got := ""
			if slo := operators.Next(in).Status.Target.SLO; slo != nil {
				got = string(slo.Raw)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestMessagesStayShort(t *testing.T) {
	in := newInput(t)
	in.Package = ladder(t, "2.0.0")
	template := in.Installs[0]
	in.Clusters, in.Installs = nil, nil
	for i := range 1000 {
		install := template
		install.Cluster, install.SucceededHash = fmt.Sprintf("cluster-%04d", i), "other"
		install.Installed = catalogs.Installed{Name: fmt.Sprintf("echo.v0.%d.0", i), Version: fmt.Sprintf("0.%d.0", i)}
		in.Installs = append(in.Installs, install)
		in.Clusters = append(in.Clusters, rollouts.Cluster{Name: install.Cluster, Online: true})
	}
	got := operators.Next(in).Status
	if ready := conditions.Get(got.Conditions, v1alpha1.ConditionReady); len(ready.Message) > 1024 {
		t.Errorf("message of %d bytes: %s", len(ready.Message), ready.Message)
	}
	if len(got.Versions) != 50 {
		t.Errorf("%d versions, want the API's bound", len(got.Versions))
	}
}
