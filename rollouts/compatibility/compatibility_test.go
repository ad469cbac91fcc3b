// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility_test

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts/compatibility"
)

func TestJudge(t *testing.T) {
	needs := func(r v1alpha1.ReleaseRequirements) compatibility.Facts {
		return compatibility.Facts{Requirements: r, Read: true}
	}
	upTo := func(low, high string) v1alpha1.ReleaseRequirements {
		return v1alpha1.ReleaseRequirements{SupportedKubernetes: &v1alpha1.KubernetesRange{Min: low, Max: high}}
	}
	removed := v1alpha1.ReleaseRequirements{RemovedAPIs: []v1alpha1.RemovedAPI{{APIVersion: "policy/v1beta1",
		Kind: "PodDisruptionBudget", Name: "echo", RemovedIn: "1.25"}}}
	rights := compatibility.Facts{Read: true, RemovedRights: []requirements.RemovedResource{
		{Group: "policy", Resource: "podsecuritypolicies", In: "1.25"}}}
	declared := rights
	declared.Requirements = upTo("1.30", "1.37")
	for name, test := range map[string]struct {
		facts      compatibility.Facts
		kubernetes string
		want       compatibility.Verdict
		reason     string
	}{
		"nothing against it": {needs(v1alpha1.ReleaseRequirements{}), "1.37.0", compatibility.OK,
			"uses no removed API"},
		"removed":         {needs(removed), "1.25.0", compatibility.Breaks, "which Kubernetes 1.25 removed"},
		"not removed yet": {needs(removed), "1.24.0", compatibility.OK, "uses no removed API"},
		"older than minKubeVersion": {needs(v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0"}), "1.29.0",
			compatibility.Breaks, "bundle echo.v1.0.0 needs 1.30.0 or newer (minKubeVersion)"},
		"newer than supported": {needs(upTo("", "1.36")), "1.37.0", compatibility.Breaks,
			"bundle echo.v1.0.0 is supported on Kubernetes 1.36 or older (bellwether.dev/support)"},
		"supported, although the manifests are not known": {compatibility.Facts{Requirements: upTo("1.30", "1.37")},
			"1.37.0", compatibility.OK, "supported on Kubernetes 1.30 to 1.37"},
		"only the oldest is declared, and the manifests are not known": {
			compatibility.Facts{Requirements: upTo("1.30", "")}, "1.37.0", compatibility.Unknown,
			"the manifests of the bundle are not known"},
		"not read": {compatibility.Facts{Requirements: v1alpha1.ReleaseRequirements{NotRead: "registry unreachable"}},
			"1.37.0", compatibility.Unknown, "registry unreachable"},
		"rights to what was removed": {rights, "1.25.0", compatibility.Unknown,
			"rights to podsecuritypolicies.policy (removed in Kubernetes 1.25), and may use it"},
		"rights to what is not removed yet":                {rights, "1.24.0", compatibility.OK, "uses no removed API"},
		"rights to what was removed, and declared as fine": {declared, "1.36.0", compatibility.OK, "supported on"},
		"newer than what is known": {needs(v1alpha1.ReleaseRequirements{}), "1.99.0", compatibility.Unknown,
			"is known up to " + requirements.Kubernetes},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason := compatibility.Judge(test.facts, "echo.v1.0.0", semver.MustParse(test.kubernetes))
			if got != test.want || !strings.Contains(reason, test.reason) {
				t.Errorf("%s: %s, want %s: %s", got, reason, test.want, test.reason)
			}
		})
	}
}

const csv = `{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
	"metadata": {"name": "echo.v1.0.0"}, "spec": {"version": "1.0.0", "minKubeVersion": "1.30.0", "install": {
	"strategy": "deployment", "spec": {"deployments": [], "clusterPermissions": [{"serviceAccountName": "echo",
	"rules": [{"apiGroups": ["policy"], "resources": ["podsecuritypolicies"], "verbs": ["use"]}]}]}}}}`

const budget = `{"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "echo"}}`

func TestFactsOf(t *testing.T) {
	p := &catalogs.Package{Name: "echo", DefaultChannel: "stable",
		Channels: map[string]*catalogs.Channel{"stable": {Name: "stable",
			Entries: []catalogs.Entry{{Name: "echo.v1.0.0"}}}},
		Bundles: map[string]*catalogs.Bundle{"echo.v1.0.0": {Name: "echo.v1.0.0", Version: semver.MustParse("1.0.0"),
			Objects: [][]byte{[]byte(csv), []byte(budget)},
			Properties: []bundles.Property{{Type: bundles.PropertySupport,
				Value: []byte(`{"endOfSupport": "2027-06-30", "kubernetes": {"max": "1.36"}}`)}}}}}
	got := compatibility.FactsOf(p, "stable", "echo.v1.0.0")
	want := compatibility.Facts{Read: true,
		RemovedRights: []requirements.RemovedResource{{Group: "policy", Resource: "podsecuritypolicies", In: "1.25"}},
		Requirements: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", EndOfSupport: "2027-06-30",
			SupportedKubernetes: &v1alpha1.KubernetesRange{Max: "1.36"},
			RemovedAPIs: []v1alpha1.RemovedAPI{{APIVersion: "policy/v1beta1", Kind: "PodDisruptionBudget", Name: "echo",
				RemovedIn: "1.25"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	absent := compatibility.FactsOf(p, "stable", "echo.v0.9.0")
	if absent.Read || absent.Requirements.NotRead != "bundle echo.v0.9.0 is not in the catalog" {
		t.Errorf("a bundle that is not in the catalog: %+v", absent)
	}
}

// fleet returns a fleet with an operator whose versions up to 1.1.0 run on Kubernetes up to 1.36.
func fleet() (*catalogs.Package, func(string) compatibility.Facts) {
	p := &catalogs.Package{Name: "echo", DefaultChannel: "stable", Bundles: map[string]*catalogs.Bundle{},
		Channels: map[string]*catalogs.Channel{"stable": {Name: "stable", Entries: []catalogs.Entry{
			{Name: "echo.v1.0.0"}, {Name: "echo.v1.1.0", Replaces: "echo.v1.0.0"},
			{Name: "echo.v1.2.0", Replaces: "echo.v1.1.0"}, {Name: "echo.v1.3.0", Replaces: "echo.v1.2.0"},
		}}}}
	last := map[string]string{"1.0.0": "1.35", "1.1.0": "1.36", "1.2.0": "1.37", "1.3.0": "1.38"}
	for version := range last {
		p.Bundles["echo.v"+version] = &catalogs.Bundle{Name: "echo.v" + version, Version: semver.MustParse(version)}
	}
	return p, func(bundle string) compatibility.Facts {
		return compatibility.Facts{Read: true, Requirements: v1alpha1.ReleaseRequirements{
			SupportedKubernetes: &v1alpha1.KubernetesRange{Max: last[strings.TrimPrefix(bundle, "echo.v")]}}}
	}
}

func TestCompare(t *testing.T) {
	p, facts := fleet()
	run := func(cluster, operator, version string) compatibility.Install {
		return compatibility.Install{Cluster: cluster, Kubernetes: "v1.35.1", Operator: operator, Package: "echo",
			Bundle: catalogs.Installed{Name: "echo.v" + version, Version: version}}
	}
	installs := []compatibility.Install{run("b", "default/echo", "1.0.0"), run("a", "default/echo", "1.0.0"),
		run("c", "default/echo", "1.2.0"), run("d", "default/lost", "1.0.0")}
	asked := 0
	got := compatibility.Compare(semver.MustParse("1.37.0"), installs, func(operator string) compatibility.Catalog {
		asked++
		if operator == "default/lost" {
			return compatibility.Catalog{Problem: "registry unreachable"}
		}
		return compatibility.Catalog{Package: p, Facts: facts}
	})
	clusters := func(names ...string) (out []compatibility.Cluster) {
		for _, name := range names {
			out = append(out, compatibility.Cluster{Name: name, Kubernetes: "v1.35.1"})
		}
		return out
	}
	want := compatibility.Report{Kubernetes: "1.37", Rows: []compatibility.Row{
		{Operator: "default/echo", Package: "echo", Version: "1.0.0", Bundle: "echo.v1.0.0",
			Verdict: compatibility.Breaks, Upgrade: "1.2.0", Clusters: clusters("a", "b"),
			Reason: "bundle echo.v1.0.0 is supported on Kubernetes 1.35 or older (bellwether.dev/support)"},
		{Operator: "default/lost", Package: "echo", Version: "1.0.0", Bundle: "echo.v1.0.0",
			Verdict: compatibility.Unknown, Reason: "registry unreachable", Clusters: clusters("d")},
		{Operator: "default/echo", Package: "echo", Version: "1.2.0", Bundle: "echo.v1.2.0",
			Verdict: compatibility.OK, Clusters: clusters("c"),
			Reason: "supported on Kubernetes 1.37 or older (bellwether.dev/support)"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || asked != 2 {
		t.Errorf("asked for %d catalogs, report (-want +got):\n%s", asked, diff)
	}
	if !got.Has(compatibility.Breaks) || !got.Has(compatibility.Unknown) {
		t.Error("the verdicts are not found")
	}
}

func TestCompareWithoutAnUpgrade(t *testing.T) {
	p, facts := fleet()
	for name, test := range map[string]struct{ version, channel, kubernetes, want string }{
		"none is OK": {"1.0.0", "", "1.39.0", "no newer version is known to be OK: bundle echo.v1.3.0 is supported on"},
		"the head":   {"1.3.0", "", "1.39.0", "there is no newer version in channel stable"},
		"no channel": {"1.0.0", "fast", "1.39.0", `no such channel "fast"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := compatibility.Compare(semver.MustParse(test.kubernetes), []compatibility.Install{{Cluster: "a",
				Operator: "default/echo", Channel: test.channel,
				Bundle: catalogs.Installed{Name: "echo.v" + test.version, Version: test.version}}},
				func(string) compatibility.Catalog { return compatibility.Catalog{Package: p, Facts: facts} })
			if row := got.Rows[0]; row.Upgrade != "" || !strings.Contains(row.UpgradeReason, test.want) {
				t.Errorf("upgrade %q: %s", row.Upgrade, row.UpgradeReason)
			}
		})
	}
}

// TestListInstalls has an install on a cluster that is not selected, one without a bundle, and one whose
// ManagedOperator was deleted.
func TestListInstalls(t *testing.T) {
	newInstall := func(cluster, operator, bundle string) v1alpha1.OperatorInstall {
		i := v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
			Operator: v1alpha1.OperatorReference{Namespace: "team", Name: operator}}}
		i.Status.Installed = &v1alpha1.InstalledVersion{Bundle: bundle, Version: "1.0.0"}
		return i
	}
	echo := v1alpha1.ManagedOperator{}
	echo.Spec.Package, echo.Spec.Channel = "echo-operator", "stable"
	got := compatibility.ListInstalls(map[string]string{"a": "v1.37.0"},
		map[string]v1alpha1.ManagedOperator{"team/echo": echo}, []v1alpha1.OperatorInstall{
			newInstall("a", "echo", "echo.v1.0.0"), newInstall("b", "echo", "echo.v1.0.0"), newInstall("a", "echo", ""),
			{Spec: v1alpha1.OperatorInstallSpec{Cluster: "a"}}, newInstall("a", "deleted", "db.v1.0.0")})
	want := []compatibility.Install{
		{Cluster: "a", Kubernetes: "v1.37.0", Operator: "team/echo", Package: "echo-operator", Channel: "stable",
			Bundle: catalogs.Installed{Name: "echo.v1.0.0", Version: "1.0.0"}},
		{Cluster: "a", Kubernetes: "v1.37.0", Operator: "team/deleted",
			Bundle: catalogs.Installed{Name: "db.v1.0.0", Version: "1.0.0"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("installs (-want +got):\n%s", diff)
	}
}
