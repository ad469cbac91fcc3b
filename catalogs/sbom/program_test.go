// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom_test

import (
	"bytes"
	"runtime/debug"
	"slices"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/internal/version"
)

func TestOfProgram(t *testing.T) {
	build := &debug.BuildInfo{GoVersion: "go1.26.3", Path: version.Module + "/cmd/hub",
		Main: debug.Module{Path: version.Module}, Deps: []*debug.Module{
			{Path: "k8s.io/api", Version: "v0.37.0"},
			{Path: "example.com/old", Version: "v1.0.0",
				Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0"}},
		}}
	info := version.Info{Version: "0.2.0", Revision: "0123"}
	text, err := sbom.NewProgramSBOM("registry.example.com/bellwether/hub", digest("a"), build, info)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sbom.NewProgramSBOM("registry.example.com/bellwether/hub", digest("a"), build, info)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the same program gives another list, error %v", err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.PackageURL)
	}
	want := []string{"pkg:golang/example.com/new@v2.0.0", "pkg:golang/github.com/bellwether-dev/bellwether@0.2.0",
		"pkg:golang/k8s.io/api@v0.37.0", "pkg:golang/std@1.26.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if len(*bom.Dependencies) != 2 || !slices.Contains(*(*bom.Dependencies)[1].Dependencies, want[3]) {
		t.Errorf("the program does not consist of Go: %+v", *bom.Dependencies)
	}
}
