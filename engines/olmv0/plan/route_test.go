// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

func TestFindRoute(t *testing.T) {
	const ladder = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.2.0"
	echo := func(version string) catalogs.Installed {
		return catalogs.Installed{Name: "echo.v" + version, Version: version}
	}
	tests := map[string]struct {
		installed catalogs.Installed
		hop       string // replaces what is installed
		target    string
		blocked   []string
		path      []string
		next      string
		message   string
	}{
		"no block": {installed: echo("1.0.0"), target: "1.2.0",
			path: []string{"echo.v1.1.0", "echo.v1.2.0"}, next: "echo.v1.1.0"},
		"around a blocked version": {installed: echo("1.0.0"), target: "1.2.0",
			blocked: []string{"1.1.0"}, path: []string{"echo.v1.2.0"}, next: "echo.v1.2.0"},
		"around two": {installed: echo("1.0.0"), target: "1.3.0",
			blocked: []string{"1.1.0", "1.2.0"}, path: []string{"echo.v1.3.0"}, next: "echo.v1.3.0"},
		"away from a blocked one": {installed: echo("1.1.0"), target: "1.2.0",
			blocked: []string{"1.1.0"}, path: []string{"echo.v1.2.0"}, next: "echo.v1.2.0"},
		"a fresh install": {target: "1.3.0", blocked: []string{"1.1.0"},
			path: []string{"echo.v1.3.0"}, next: "echo.v1.3.0"},
		"to a blocked one": {installed: echo("1.0.0"), target: "1.1.0",
			blocked: []string{"1.1.0"}, message: "The admitted version 1.1.0 is blocked: it is bad"},
		"to a blocked head": {installed: echo("1.0.0"), target: "1.3.0",
			blocked: []string{"1.3.0"}, message: "The admitted version 1.3.0 is blocked"},
		"a fresh install of a blocked one": {target: "1.3.0", blocked: []string{"1.3.0"},
			message: "The admitted version 1.3.0 is blocked"},
		"it is installed already": {installed: echo("1.3.0"), target: "1.3.0",
			blocked: []string{"1.3.0"}, message: "It stays installed until another version is admitted"},
		"from a blocked head back to the good one": {installed: echo("1.3.0"), target: "1.2.0",
			blocked: []string{"1.3.0"},
			message: "The installed version 1.3.0 is blocked: it is bad. There is no upgrade path from it to 1.2.0"},
		"everything is blocked": {installed: echo("1.0.0"), target: "1.3.0",
			blocked: []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}, message: "leave nothing to install"},
		"a hop under way is finished, and another follows": {installed: echo("1.0.0"), hop: "1.1.0",
			target: "1.2.0", blocked: []string{"1.1.0"}, path: []string{"echo.v1.1.0", "echo.v1.2.0"},
			next: "echo.v1.1.0"},
		"a hop under way is finished, and none follows": {installed: echo("1.0.0"), hop: "1.1.0",
			target: "1.1.0", blocked: []string{"1.1.0"}, path: []string{"echo.v1.1.0"}, next: "echo.v1.1.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pkg, err := catalogs.ReadPackage(catalogs.SingleFile("test",
				strings.NewReader(catalogtest.Graph("echo", ladder))), "echo")
			if err != nil {
				t.Fatal(err)
			}
			r := Request{Installed: test.installed, CanAdvance: true, Release: v1alpha1.Release{
				Package: "echo", Channel: "stable", Version: test.target, Bundle: "echo.v" + test.target,
			}}
			for _, v := range test.blocked {
				r.Blocks = append(r.Blocks, v1alpha1.VersionBlock{Package: "echo", Version: v, Reason: "it is bad."})
			}
			if test.hop != "" {
				r.Installed, r.CanAdvance = echo(test.hop), false
				r.Hop = &Hop{From: test.installed, To: "echo.v" + test.hop}
			}
			found, err := FindRoute(pkg, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.path, found.Path); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if found.Next != test.next || !strings.Contains(found.Blocked, test.message) ||
				(found.Blocked == "") != (test.message == "") {
				t.Errorf("next %q, blocked %q; want %q, %q", found.Next, found.Blocked, test.next, test.message)
			}
		})
	}
}

// An offer is kept for as long as its request is the same, so everything that an
// offer depends on is part of the request.
func TestRequestsDiffer(t *testing.T) {
	identities := map[string]string{}
	for name, change := range map[string]func(*v1alpha1.OperatorInstall){
		"plain":          func(*v1alpha1.OperatorInstall) {},
		"another digest": func(oi *v1alpha1.OperatorInstall) { oi.Spec.Admission.Release.Catalog.Digest = "sha256:1" },
		"a key":          func(oi *v1alpha1.OperatorInstall) { oi.Spec.Admission.Release.Catalog.PublicKeys = []string{"key"} },
		"a block": func(oi *v1alpha1.OperatorInstall) {
			oi.Spec.Blocks = []v1alpha1.VersionBlock{{Package: "echo", Version: "1.0.0", Reason: "bad"}}
		},
		"going back": func(oi *v1alpha1.OperatorInstall) {
			oi.Spec.Admission.Rollback = &v1alpha1.AdmissionRollback{}
		},
		"going back by force": func(oi *v1alpha1.OperatorInstall) {
			oi.Spec.Admission.Rollback = &v1alpha1.AdmissionRollback{Force: true}
		},
		"another reason": func(oi *v1alpha1.OperatorInstall) {
			oi.Spec.Blocks = []v1alpha1.VersionBlock{{Package: "echo", Version: "1.0.0", Reason: "worse"}}
		},
	} {
		oi := &v1alpha1.OperatorInstall{}
		oi.Spec.Admission = &v1alpha1.Admission{Release: v1alpha1.Release{Package: "echo"}}
		change(oi)
		identity := RequestFor(oi, Cluster{}, nil, now).Identity()
		if other, same := identities[identity]; same {
			t.Errorf("%s is the same request as %s", name, other)
		}
		identities[identity] = name
	}
}

// TestBundlesAreReadOnlyToBeJudged: a cluster whose registry only OLM reaches installs what has to be unpacked.
func TestBundlesAreReadOnlyToBeJudged(t *testing.T) {
	for name, test := range map[string]struct {
		policy *localpolicy.Policy
		want   bool
	}{
		"no policy":                 {policy: nil},
		"no ConfigMap":              {policy: &localpolicy.Policy{OwnNamespace: "echo", Absent: true}},
		"a policy about namespaces": {policy: &localpolicy.Policy{Spec: localpolicy.Spec{DeniedNamespaces: []string{"a"}}}},
		"one about registries": {want: true,
			policy: &localpolicy.Policy{Spec: localpolicy.Spec{AllowedRegistries: []string{"registry.example.com"}}}},
		"one about another namespace than the agent's": {policy: &localpolicy.Policy{OwnNamespace: "b"}},
		"one that permits the agent's": {want: true, policy: &localpolicy.Policy{OwnNamespace: "echo",
			Spec: localpolicy.Spec{DeniedNamespaces: []string{"a"}}}},
		"one about permissions": {want: true, policy: &localpolicy.Policy{Spec: localpolicy.Spec{
			Permissions: localpolicy.Permissions{DenyClusterWildcards: true}}}},
	} {
		r := Request{Policy: test.policy, Release: v1alpha1.Release{Package: "echo"}}
		if got := r.NewBundleCheck(nil) != nil; got != test.want {
			t.Errorf("%s: bundles are judged: %t, want %t", name, got, test.want)
		}
	}
}
