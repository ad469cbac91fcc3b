// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

func installOn(cluster, pkg, bundle, version string) v1alpha1.OperatorInstall {
	i := v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
		Admission: &v1alpha1.Admission{Release: v1alpha1.Release{Package: pkg}}}}
	i.Status.Installed = &v1alpha1.InstalledVersion{Bundle: bundle, Version: version}
	return i
}

func TestListInstalled(t *testing.T) {
	notAdmitted := installOn("c", "p", "p.v1.0.0", "1.0.0")
	notAdmitted.Spec.Admission = nil
	notReported := installOn("d", "p", "p.v1.0.0", "1.0.0")
	notReported.Status.Installed = nil
	list := catalogs.ListInstalled([]v1alpha1.OperatorInstall{installOn("b", "p", "p.v1.1.0", "1.1.0"),
		installOn("a", "p", "p.v1.0.0", "1.0.0"), notAdmitted, notReported, installOn("e", "p", "", ""),
		installOn("f", "p", "p.v1.1.0", "1.1.0"), installOn("g", "q", "q.v2.0.0", "2.0.0")})
	first := catalogs.Installed{Name: "p.v1.0.0", Version: "1.0.0"}
	second := catalogs.Installed{Name: "p.v1.1.0", Version: "1.1.0"}
	other := catalogs.Installed{Name: "q.v2.0.0", Version: "2.0.0"}
	if diff := cmp.Diff([]catalogs.ClusterBundle{{Package: "p", Installed: second, Cluster: "b"},
		{Package: "p", Installed: first, Cluster: "a"}, {Package: "p", Installed: second, Cluster: "f"},
		{Package: "q", Installed: other, Cluster: "g"}}, list); diff != "" {
		t.Errorf("installed bundles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]catalogs.Installed{"p": {second, first}, "q": {other}},
		catalogs.GroupInstalled(list)); diff != "" {
		t.Errorf("by package (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]catalogs.InstalledCount{{Installed: first, Clusters: 1}, {Installed: second, Clusters: 2}},
		catalogs.CountInstalled(list, []*catalogs.Package{load(t, ladder)})); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestParseInstalledCounts(t *testing.T) {
	p := load(t, ladder)
	got, err := catalogs.ParseInstalledCounts([]byte("p.v1.1.0: 2\n1.1.0: 3\n0.9.0: 1\nother.v1: 4\n"),
		[]*catalogs.Package{p})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]catalogs.InstalledCount{
		{Installed: catalogs.Installed{Name: "other.v1"}, Clusters: 4},
		{Installed: catalogs.Installed{Name: "p.v0.9.0", Version: "0.9.0"}, Clusters: 1},
		{Installed: catalogs.Installed{Name: "p.v1.1.0", Version: "1.1.0"}, Clusters: 5}}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if _, err := catalogs.ParseInstalledCounts([]byte("- 1.1.0"), []*catalogs.Package{p}); !errors.Is(err,
		catalogs.ErrNotCounts) {
		t.Errorf("a list: %v", err)
	}
	if _, err := catalogs.ParseInstalledCounts([]byte("1.1.0: -1"), []*catalogs.Package{p}); err == nil ||
		errors.Is(err, catalogs.ErrNotCounts) {
		t.Errorf("a negative number: %v", err)
	}
}
