// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/scan"
)

func TestAssignDocuments(t *testing.T) {
	about := func(image string) scan.Inventory { return scan.Inventory{Names: []string{image}} }
	documents := []scan.Document{
		{File: "a.json", Inventory: about("echo:1")},
		{File: "b.json", Inventory: about("other:1")},
		{File: "c.json", Image: "echo:2", Inventory: about("echo:1")}, // the person knows better than the SBOM
		{File: "d.json", Image: "echo:1", Inventory: about("proxy:1")},
		{File: "e.json", Image: "none:1", Inventory: about("echo:1")},
	}
	assigned, unused := scan.AssignDocuments([]string{"echo:1", "echo:2", "proxy:1"}, documents)
	if diff := cmp.Diff(map[string]scan.Contents{
		"echo:1": {Inventories: []scan.Inventory{about("echo:1"), about("proxy:1")}},
		"echo:2": {Inventories: []scan.Inventory{about("echo:1")}}}, assigned); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]scan.Document{documents[1], documents[4]}, unused); diff != "" {
		t.Errorf("unused documents (-want +got):\n%s", diff)
	}
}

func TestReadContents(t *testing.T) {
	text, err := os.ReadFile("testdata/sboms/echo-1.0.0.spdx.json")
	if err != nil {
		t.Fatal(err)
	}
	got := scan.ReadContents([][]byte{[]byte("no SBOM"), text, []byte("{}")})
	if diff := cmp.Diff(sbom(t, "echo-1.0.0.spdx.json"), got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
}

func TestListImages(t *testing.T) {
	one, two := echo("1.0.0", second, first), echo("1.1.0", proxy, first)
	got := scan.ListImages([]*catalogs.Package{{Name: "a", Bundles: map[string]*catalogs.Bundle{one.Name: one}},
		{Name: "b", Bundles: map[string]*catalogs.Bundle{two.Name: two}}})
	if diff := cmp.Diff([]string{first, second, proxy}, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}
