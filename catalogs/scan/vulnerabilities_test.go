// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan_test

import (
	"os"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/scan"
)

var (
	first  = "registry.example.com/echo@sha256:" + strings.Repeat("a", 64)
	second = "registry.example.com/echo@sha256:" + strings.Repeat("b", 64)
	proxy  = "registry.example.com/proxy@sha256:" + strings.Repeat("c", 64)
)

func echo(version string, images ...string) *catalogs.Bundle {
	b := &catalogs.Bundle{Name: "echo.v" + version, Version: semver.MustParse(version),
		Image: "registry.example.com/bundle:" + version}
	for _, image := range append(images, b.Image) {
		b.RelatedImages = append(b.RelatedImages, catalogs.RelatedImage{Image: image})
	}
	return b
}

func sbom(t *testing.T, name string) scan.Contents {
	t.Helper()
	text, err := os.ReadFile("testdata/sboms/" + name)
	if err != nil {
		t.Fatalf("read SBOM: %v", err)
	}
	read, err := scan.ReadInventory(text)
	if err != nil {
		t.Fatalf("read SBOM: %v", err)
	}
	return scan.Contents{Inventories: []scan.Inventory{read}}
}

func compare(t *testing.T, contents map[string]scan.Contents, installed []catalogs.ClusterBundle,
	bundles ...*catalogs.Bundle) scan.Report {
	t.Helper()
	database, err := scan.ReadDatabase(os.DirFS("testdata/osv"), scan.Targets(contents))
	if err != nil {
		t.Fatalf("read database: %v", err)
	}
	p := &catalogs.Package{Name: "echo", Bundles: map[string]*catalogs.Bundle{}}
	for _, b := range bundles {
		p.Bundles[b.Name] = b
	}
	return scan.Compare(scan.Input{Packages: []*catalogs.Package{p}, Contents: contents,
		Database: database, Installed: installed})
}

func TestCompare(t *testing.T) {
	contents := map[string]scan.Contents{
		first: sbom(t, "echo-1.0.0.spdx.json"), second: sbom(t, "echo-1.1.0.cdx.json"),
		proxy: {Problem: "registry unreachable"},
	}
	got := compare(t, contents, []catalogs.ClusterBundle{
		{Package: "echo", Cluster: "b", Installed: catalogs.Installed{Name: "echo.v1.0.0", Version: "1.0.0"}},
		{Package: "echo", Cluster: "a", Installed: catalogs.Installed{Name: "echo.v1.0.0", Version: "1.0.0"}},
		{Package: "echo", Cluster: "c", Installed: catalogs.Installed{Name: "echo.v0.9.0", Version: "0.9.0"}},
	}, echo("1.0.0", first), echo("1.1.0", second), echo("1.2.0", second, proxy), echo("1.3.0"))
	want := []scan.Version{
		{Package: "echo", Version: "1.3.0", Bundle: "echo.v1.3.0", Images: []string{},
			Problem: "the catalog lists no images of the version"},
		{Package: "echo", Version: "1.2.0", Bundle: "echo.v1.2.0", Images: []string{second, proxy},
			Unknown: []string{proxy}},
		{Package: "echo", Version: "1.1.0", Bundle: "echo.v1.1.0", Images: []string{second}},
		{Package: "echo", Version: "1.0.0", Bundle: "echo.v1.0.0", Images: []string{first}, NotCompared: 1,
			Counts: map[scan.Severity]int{scan.High: 1, scan.Unknown: 1}, Clusters: []string{"a", "b"}},
		{Package: "echo", Version: "0.9.0", Bundle: "echo.v0.9.0", Images: []string{},
			Problem: "the version is not in the catalog", Clusters: []string{"c"}},
	}
	for i := range want {
		if want[i].Counts == nil {
			want[i].Counts = map[scan.Severity]int{}
		}
	}
	if diff := cmp.Diff(want, got.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	var unknown []bool
	for _, v := range got.Versions {
		unknown = append(unknown, v.IsUnknown())
	}
	if diff := cmp.Diff([]bool{true, true, false, true, true}, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	image := got.Images[0]
	if image.Packages != 3 || len(image.Vulnerabilities) != 2 || image.Vulnerabilities[1].Fixed != "3.0.11-1~deb12u3" {
		t.Errorf("image %+v", image)
	}
	if diff := cmp.Diff([]scan.NotCompared{{Reason: "not compared: the SBOM has no package URL",
		Packages: []string{"vendored-tool 2.1"}}}, image.NotCompared); diff != "" {
		t.Errorf("not compared (-want +got):\n%s", diff)
	}
	if got.Images[2].Unknown != "registry unreachable" {
		t.Errorf("image %+v", got.Images[2])
	}
}

func TestReaches(t *testing.T) {
	clean := compare(t, map[string]scan.Contents{second: sbom(t, "echo-1.1.0.cdx.json")}, nil,
		echo("1.1.0", second))
	if clean.HasSeverity(scan.Low) || clean.IsUnknown() {
		t.Errorf("nothing is wrong with %+v", clean.Versions)
	}
	bad := compare(t, map[string]scan.Contents{first: sbom(t, "echo-1.0.0.spdx.json")}, nil,
		echo("1.0.0", first))
	for severity, want := range map[scan.Severity]bool{scan.Critical: false, scan.High: true, scan.Low: true} {
		if bad.HasSeverity(severity) != want {
			t.Errorf("reaches %s: %t", severity, !want)
		}
	}
	// A vulnerability without a rating can be severe.
	unrated := scan.Report{Versions: []scan.Version{
		{Counts: map[scan.Severity]int{scan.Unknown: 1}}}}
	if !unrated.HasSeverity(scan.High) || unrated.HasSeverity(scan.Critical) {
		t.Error("a vulnerability that nobody has rated does not count as high")
	}
	empty := compare(t, map[string]scan.Contents{second: {Inventories: []scan.Inventory{{}}}}, nil,
		echo("1.1.0", second))
	if !empty.IsUnknown() {
		t.Error("an SBOM without packages makes an image clean")
	}
}
