// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/bellwether-dev/bellwether"

// layers are the top-level folders with Go code. A folder may import those of the layers below its own, and none of its
// own layer; so there is no cycle.
var layers = [][]string{
	{"testbed"},
	{"cmd", "release"},
	{"controllers"},
	{"explain"},
	{"boilerplate", "engines", "rollouts", "dashboards"},
	{"backups", "catalogs"},
	{"bundles"},
	{"alerts"},
	{"apis", "charts", "docs", "internal", "outbound", "phrase", "untrusted"},
	{"version"},
}

// folderOf returns the folder that has a layer, for a path in this module.
func folderOf(file string) string {
	folder, _, _ := strings.Cut(file, "/")
	return folder
}

// TestImportDirection holds the order of the top-level folders. Tests may import what they like.
func TestImportDirection(t *testing.T) {
	for _, problem := range wrongImports(t, os.DirFS(root(t))) {
		t.Error(problem)
	}
}

// fileImporting is a file that imports one package.
func fileImporting(imported string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package x\n\nimport _ \"" + imported + "\"\n")}
}

func TestWrongImports(t *testing.T) {
	tree := fstest.MapFS{
		"catalogs/a.go":        fileImporting(module + "/bundles/lint"),
		"bundles/lint/a.go":    fileImporting(module + "/catalogs"),
		"bundles/a_test.go":    fileImporting(module + "/catalogs"),
		"rollouts/a.go":        fileImporting(module + "/engines/olmv0"),
		"engines/olmv0/a.go":   fileImporting(module + "/catalogs"),
		"engines/olmv0/b.go":   fileImporting(module + "/apis/remedy"),
		"engines/olmv0/c.go":   fileImporting(module + "/explain"),
		"engines/plan/d.go":    fileImporting(module + "/explain/olmv0"),
		"explain/a.go":         fileImporting(module + "/controllers/kit"),
		"controllers/kit/a.go": fileImporting(module + "/explain"),
		"novel/a.go":           fileImporting("fmt"),
		"testbed/bed.go":       fileImporting(module + "/cmd/hub"),
	}
	want := []string{
		"bundles imports catalogs (bundles/lint/a.go): only folders further down in layers may be imported",
		"engines imports explain (engines/olmv0/c.go): only folders further down in layers may be imported",
		"engines imports explain (engines/plan/d.go): only folders further down in layers may be imported",
		"explain imports controllers (explain/a.go): only folders further down in layers may be imported",
		"novel is in none of the layers",
		"rollouts imports engines (rollouts/a.go): only folders further down in layers may be imported",
	}
	if diff := cmp.Diff(want, wrongImports(t, tree)); diff != "" {
		t.Errorf("wrong imports (-want +got):\n%s", diff)
	}
}

// wrongImports lists the imports between top-level folders that go up or sideways in layers.
func wrongImports(t *testing.T, tree fs.FS) []string {
	t.Helper()
	found := map[string]bool{}
	walkSources(t, tree, func(file string, text []byte) {
		from := folderOf(file)
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return
		}
		if layerOf(from) < 0 {
			found[from+" is in none of the layers"] = true
			return
		}
		for _, to := range importedFolders(t, file, text) {
			if to != from && layerOf(to) <= layerOf(from) {
				found[fmt.Sprintf("%s imports %s (%s): only folders further down in layers may be imported", from, to,
					file)] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(found))
}

func layerOf(folder string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, folder) })
}

// importedFolders are the top-level folders of this module that a file imports from.
func importedFolders(t *testing.T, name string, text []byte) []string {
	t.Helper()
	var folders []string
	for _, imported := range importsOf(t, name, text) {
		folders = append(folders, folderOf(imported))
	}
	return folders
}

// importsOf are the packages of this module that a file imports, by their folders.
func importsOf(t *testing.T, name string, text []byte) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, i := range file.Imports {
		if imported, err := strconv.Unquote(i.Path.Value); err == nil {
			if below, ok := strings.CutPrefix(imported, module+"/"); ok {
				found = append(found, below)
			}
		}
	}
	return found
}

// TestControllersMeetOnlyInObjects fails for a controller that imports another one. The kit is for all of them, and
// imports none.
func TestControllersMeetOnlyInObjects(t *testing.T) {
	for _, problem := range meetings(t, os.DirFS(root(t))) {
		t.Error(problem)
	}
}

func TestMeetings(t *testing.T) {
	tree := fstest.MapFS{}
	for file, imported := range map[string]string{
		"controllers/fleet/a.go":          "controllers/kit/conditions",
		"controllers/fleet/plan/a.go":     "controllers/fleet",
		"controllers/fleet/b.go":          "rollouts",
		"controllers/fleet/plan/b.go":     "controllers/operator/plan",
		"controllers/fleet/b_test.go":     "controllers/probe",
		"controllers/kit/a.go":            "controllers/fleet",
		"controllers/kit/conditions/a.go": "controllers/kit",
		"controllers/all.go":              "controllers/fleet",
		"cmd/hub/a.go":                    "controllers/fleet",
	} {
		tree[file] = fileImporting(module + "/" + imported)
	}
	want := []string{
		"controllers/fleet/b_test.go imports controllers/probe: only kit is for all controllers",
		"controllers/fleet/plan/b.go imports controllers/operator/plan: only kit is for all controllers",
		"controllers/kit/a.go imports controllers/fleet: only kit is for all controllers",
	}
	if diff := cmp.Diff(want, meetings(t, tree)); diff != "" {
		t.Errorf("meetings (-want +got):\n%s", diff)
	}
}

// meetings lists the imports between folders of controllers.
func meetings(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var found []string
	walkSources(t, tree, func(file string, text []byte) {
		from := controllerOf(path.Dir(file))
		if path.Ext(file) != ".go" || from == "" {
			return
		}
		for _, imported := range importsOf(t, file, text) {
			if to := controllerOf(imported); to != "" && to != "kit" && to != from {
				found = append(found, fmt.Sprintf("%s imports %s: only kit is for all controllers", file, imported))
			}
		}
	})
	return found
}

// controllerOf is the name of the folder of a controller that a folder is in; empty if it is in none.
func controllerOf(folder string) string {
	below, ok := strings.CutPrefix(folder, "controllers/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}
