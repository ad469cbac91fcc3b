// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/preflight"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// csv is the ClusterServiceVersion of a version.
func csv(version string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": {"name": "echo.v%s"}, "spec": {"version": %q, "minKubeVersion": "1.30.0"}}`, version, version)
}

// crd returns a definition that stores objects as the first of its versions.
func crd(scope string, versions ...string) []byte {
	var list []string
	for i, v := range versions {
		list = append(list, fmt.Sprintf(`{"name": %q, "served": true, "storage": %t,
			"schema": {"openAPIV3Schema": {"type": "object"}}}`, v, i == 0))
	}
	return fmt.Appendf(nil, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "echoes.example.com"}, "spec": {"group": "example.com", "scope": %q,
		"names": {"kind": "Echo", "plural": "echoes"}, "versions": [%s]}}`, scope, strings.Join(list, ","))
}

const budget = `{"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "echo"}}`

// ladder returns a package whose versions upgrade one after the other.
func ladder(bundles ...*catalogs.Bundle) *catalogs.Package {
	channel := &catalogs.Channel{Name: "stable"}
	pkg := &catalogs.Package{Name: "echo", DefaultChannel: "stable", Bundles: map[string]*catalogs.Bundle{},
		Channels: map[string]*catalogs.Channel{"stable": channel}}
	before := ""
	for _, b := range bundles {
		channel.Entries = append(channel.Entries, catalogs.Entry{Name: b.Name, Replaces: before})
		pkg.Bundles[b.Name], before = b, b.Name
	}
	return pkg
}

func bundle(version string, objects ...[]byte) *catalogs.Bundle {
	return &catalogs.Bundle{Name: "echo.v" + version, Version: semver.MustParse(version),
		Objects: append([][]byte{csv(version)}, objects...)}
}

// supporting adds the support information to a bundle.
func supporting(b *catalogs.Bundle, value string) *catalogs.Bundle {
	b.Properties = append(b.Properties, bundles.Property{Type: bundles.PropertySupport, Value: []byte(value)})
	return b
}

const (
	role = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [{` +
		`"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}`
	binding = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r"}, ` +
		`"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "echo"}]}`
)

func TestRequirements(t *testing.T) {
	large := []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"text": "` +
		strings.Repeat("x", 1<<20) + `"}}`)
	unread := &catalogs.Bundle{Name: "echo.v1.2.0", Version: semver.MustParse("1.2.0"), Image: "example.com/echo:1",
		Properties: []bundles.Property{{Type: bundles.PropertyCSVMetadata,
			Value: []byte(`{"minKubeVersion": "1.31.0"}`)}}}
	namespaced := crd("Namespaced", "v1")
	tests := map[string]struct {
		bundles []*catalogs.Bundle
		want    v1alpha1.ReleaseRequirements
	}{
		"nothing but a version of Kubernetes": {
			bundles: []*catalogs.Bundle{bundle("1.0.0", namespaced), bundle("1.1.0", namespaced),
				bundle("1.2.0", namespaced)},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0"},
		},
		"what the catalog supports": {
			bundles: []*catalogs.Bundle{supporting(bundle("1.2.0"),
				`{"endOfSupport": "2027-06-30", "kubernetes": {"min": "1.30", "max": "1.37"}}`)},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", EndOfSupport: "2027-06-30",
				SupportedKubernetes: &v1alpha1.KubernetesRange{Min: "1.30", Max: "1.37"}},
		},
		"an end of support that is no day": {
			bundles: []*catalogs.Bundle{supporting(bundle("1.2.0"), `{"endOfSupport": "2027"}`)},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", NotRead: "bundle echo.v1.2.0: invalid " +
				`bellwether.dev/support: endOfSupport "2027" is no day such as 2027-06-30`},
		},
		"a removed API": {
			bundles: []*catalogs.Bundle{bundle("1.2.0", []byte(budget))},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", RemovedAPIs: []v1alpha1.RemovedAPI{{
				APIVersion: "policy/v1beta1", Kind: "PodDisruptionBudget", Name: "echo", RemovedIn: "1.25"}}},
		},
		"another scope": {
			bundles: []*catalogs.Bundle{bundle("1.0.0", namespaced), bundle("1.1.0", namespaced),
				bundle("1.2.0", crd("Cluster", "v1"))},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", RefusedUpgrades: []v1alpha1.RefusedUpgrade{
				{From: "echo.v1.0.0", Reason: "from echo.v1.1.0 to echo.v1.2.0, in echoes.example.com, the scope " +
					"changes from Namespaced to Cluster"},
				{From: "echo.v1.1.0", Reason: "from echo.v1.1.0 to echo.v1.2.0, in echoes.example.com, the scope " +
					"changes from Namespaced to Cluster"}}},
		},
		"the storage version is gone, from one version only": {
			bundles: []*catalogs.Bundle{bundle("1.0.0", crd("Namespaced", "v1alpha1")),
				bundle("1.1.0", crd("Namespaced", "v1")), bundle("1.2.0", namespaced)},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", RefusedUpgrades: []v1alpha1.RefusedUpgrade{
				{From: "echo.v1.0.0", Reason: "from echo.v1.0.0 to echo.v1.1.0, in echoes.example.com, version " +
					"v1alpha1, which objects may be stored as, was removed"}}},
		},
		"the storage moves on the way, and its version goes later": {
			bundles: []*catalogs.Bundle{bundle("1.0.0", crd("Namespaced", "v1alpha1")),
				bundle("1.1.0", crd("Namespaced", "v1", "v1alpha1")), bundle("1.2.0", namespaced)},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0"},
		},
		"new permissions": {
			bundles: []*catalogs.Bundle{bundle("1.0.0", []byte(role), []byte(binding)), bundle("1.1.0"),
				bundle("1.2.0", []byte(role), []byte(binding))},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", AddedPermissions: []v1alpha1.AddedPermissions{{
				From: "echo.v1.1.0", Rights: []string{"get pods (service account echo, in its namespaces)"}}}},
		},
		"manifests that cannot be read": {
			bundles: []*catalogs.Bundle{unread},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.31.0", NotRead: "the manifests of bundle " +
				"echo.v1.2.0 are not in the catalog, and image example.com/echo:1 could not be read"},
		},
		"too large": {
			bundles: []*catalogs.Bundle{bundle("1.2.0", large)},
			want: v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0", TooLarge: "bundle too large: bundle " +
				`"echo.v1.2.0" takes 1025 KiB of an InstallPlan, all bundles of this step take 1025 KiB, at most ` +
				"1024 KiB fit: publish it with a bundle image, then OLM unpacks that instead"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pkg := ladder(test.bundles...)
			release := v1alpha1.Release{Package: "echo", Channel: "stable", Bundle: "echo.v1.2.0"}
			installed := []catalogs.Installed{{}, {Name: "echo.v1.1.0", Version: "1.1.0"},
				{Name: "echo.v1.0.0", Version: "1.0.0"}, {Name: "echo.v1.1.0", Version: "1.1.0"}}
			got := preflight.Requirements(pkg, release, preflight.Upgrades(pkg, release, installed))
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBundlesToRead(t *testing.T) {
	pkg := ladder(bundle("1.0.0"), bundle("1.1.0"), bundle("1.2.0"), bundle("1.3.0"))
	release := v1alpha1.Release{Channel: "stable", Bundle: "echo.v1.2.0"}
	upgrades := preflight.Upgrades(pkg, release, []catalogs.Installed{{Name: "echo.v1.0.0", Version: "1.0.0"},
		{Name: "echo.v1.3.0", Version: "1.3.0"}, {Name: "echo.v1.2.0", Version: "1.2.0"}})
	want := []string{"echo.v1.2.0", "echo.v1.0.0", "echo.v1.1.0"}
	if diff := cmp.Diff(want, preflight.BundlesToRead(release, upgrades)); diff != "" {
		t.Errorf("bundles (-want +got):\n%s", diff)
	}
}

// TestRequirementsKeepTwoBundles has upgrade paths over many bundles with large definitions, each of which takes 10
// MiB after it is decoded.
func TestRequirementsKeepTwoBundles(t *testing.T) {
	pkg := &catalogs.Package{Name: "echo", Bundles: map[string]*catalogs.Bundle{}}
	var path []string
	for i := range 10 {
		version := fmt.Sprintf("1.%d.0", i)
		name := "echo.v" + version
		schemas := strings.Repeat("{},", 20_000-1) + "{}"
		definition := strings.Replace(string(crd("Namespaced", "v1")), `{"type": "object"}`, `{"allOf":[`+schemas+`]}`, 1)
		pkg.Bundles[name] = &catalogs.Bundle{Name: name, Objects: [][]byte{csv(version), []byte(definition)}}
		path = append(path, name)
	}
	release := v1alpha1.Release{Bundle: path[len(path)-1]}
	paths := [][]string{path, path[3:], {path[0], path[5], path[9]}}
	untrustedtest.BoundPeak(t, 60<<20, func() {
		if got := preflight.Requirements(pkg, release, paths); got.NotRead != "" || len(got.RefusedUpgrades) > 0 {
			t.Errorf("got %+v", got)
		}
	})
}
