// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// TestSummaryOf: the hub lists heads of all packages, and versions only of packages that a ManagedOperator uses. A
// version that exists only on clusters is not a version of the catalog.
func TestSummaryOf(t *testing.T) {
	t.Parallel()
	c := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main"}}
	channels := []v1alpha1.CatalogChannel{{Name: "stable", Head: "1.1.0", Versions: 2}}
	c.Status.Packages = []v1alpha1.CatalogPackage{
		{Name: "echo", Channels: channels, Versions: []v1alpha1.CatalogVersion{{Bundle: "echo.v1.1.0", Version: "1.1.0",
			Blocked: "it loses data"}, {Bundle: "echo.v0.9.0", Version: "0.9.0", Absent: true}}},
		{Name: "large", Channels: channels, OmittedVersions: 7,
			Versions: []v1alpha1.CatalogVersion{{Bundle: "large.v1.1.0", Version: "1.1.0"}}},
		{Name: "unused", Channels: channels},
	}
	stable := []adoption.Channel{{Name: "stable", Head: "1.1.0"}}
	want := []adoption.Package{
		{Catalog: "team/main", Name: "echo", Channels: stable, Complete: true,
			Bundles: []adoption.Bundle{{Name: "echo.v1.1.0", Version: "1.1.0", Blocked: "it loses data"}}},
		{Catalog: "team/main", Name: "large", Channels: stable,
			Bundles: []adoption.Bundle{{Name: "large.v1.1.0", Version: "1.1.0"}}},
		{Catalog: "team/main", Name: "unused", Channels: stable},
	}
	if diff := cmp.Diff(want, adoption.SummarizeCatalog(c)); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

func TestHasCompleteSummary(t *testing.T) {
	t.Parallel()
	c := &v1alpha1.OperatorCatalog{}
	c.Status.PackageCount = 2
	c.Status.Packages = []v1alpha1.CatalogPackage{
		{Name: "echo", Versions: []v1alpha1.CatalogVersion{{Bundle: "echo.v1.1.0", Version: "1.1.0"}}},
		{Name: "unused"}}
	for name, want := range map[string]bool{"echo": true, "unused": false, "of another catalog": true} {
		if got := adoption.HasCompleteSummary(c, []string{name}); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
	c.Status.PackageCount = 3
	if adoption.HasCompleteSummary(c, []string{"echo"}) || !adoption.HasCompleteSummary(c, nil) {
		t.Error("a package that the hub does not list might be among the names, but not among none")
	}
}

// TestOf checks that a blocked version that leaves its channel is still known.
func TestOf(t *testing.T) {
	t.Parallel()
	const fbc = `{"schema": "olm.package", "name": "echo", "defaultChannel": "stable"}
		{"schema": "olm.channel", "package": "echo", "name": "stable", "entries": [{"name": "echo.v1.0.0"},
			{"name": "echo.v1.1.0", "replaces": "echo.v1.0.0"}]}
		{"schema": "olm.bundle", "package": "echo", "name": "echo.v1.0.0", "image": "example.com/echo@sha256:a",
			"properties": [{"type": "olm.package", "value": {"packageName": "echo", "version": "1.0.0"}}]}
		{"schema": "olm.bundle", "package": "echo", "name": "echo.v1.1.0", "image": "example.com/echo@sha256:b",
			"properties": [{"type": "olm.package", "value": {"packageName": "echo", "version": "1.1.0"}}]}`
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", strings.NewReader(fbc)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := packages[0].WithBlocked(catalogs.Block{Version: "1.1.0", Reason: "it loses data"})
	if err != nil {
		t.Fatal(err)
	}
	want := adoption.Package{Catalog: "team/main", Name: "echo", Complete: true,
		Channels: []adoption.Channel{{Name: "stable", Head: "1.0.0"}}, Bundles: []adoption.Bundle{
			{Name: "echo.v1.0.0", Version: "1.0.0"}, {Name: "echo.v1.1.0", Version: "1.1.0", Blocked: "it loses data"}}}
	if diff := cmp.Diff(want, adoption.Summarize("team/main", p)); diff != "" {
		t.Errorf("package (-want +got):\n%s", diff)
	}
}
