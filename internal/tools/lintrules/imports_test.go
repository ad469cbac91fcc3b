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

// layers are the top-level folders with Go code. A folder may import folders of lower layers, and no other folder of
// its own layer, so there is no cycle.
var layers = [][]string{
	{"testbed"},
	{"cmd", "release"},
	{"console", "controllers"},
	{"explain", "fleet", "inventory"},
	{"boilerplate", "dashboards", "rollouts"},
	{"engines"},
	{"backups", "catalogs"},
	{"bundles"},
	{"alerts"},
	{"apis", "charts", "docs"},
	{"internal"},
}

// folderOf returns the top-level folder, which has a layer, of a path in this module.
func folderOf(file string) string {
	folder, _, _ := strings.Cut(file, "/")
	return folder
}

// TestImportDirection fails for imports against the order of the top-level folders. Tests may import any package.
func TestImportDirection(t *testing.T) {
	for _, problem := range wrongImports(t, os.DirFS(root(t))) {
		t.Error(problem)
	}
}

// fileImporting returns a file that imports one package.
func fileImporting(imported string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package x\n\nimport _ \"" + imported + "\"\n")}
}

func TestWrongImports(t *testing.T) {
	tree := fstest.MapFS{
		"catalogs/a.go":        fileImporting(module + "/bundles/lint"),
		"bundles/lint/a.go":    fileImporting(module + "/catalogs"),
		"bundles/a_test.go":    fileImporting(module + "/catalogs"),
		"engines/a.go":         fileImporting(module + "/rollouts"),
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
		"engines imports rollouts (engines/a.go): only folders further down in layers may be imported",
		"explain imports controllers (explain/a.go): only folders further down in layers may be imported",
		"novel is in none of the layers",
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

// importedFolders returns the top-level folders of this module from which a file imports.
func importedFolders(t *testing.T, name string, text []byte) []string {
	t.Helper()
	var folders []string
	for _, imported := range importsOf(t, name, text) {
		folders = append(folders, folderOf(imported))
	}
	return folders
}

// importsOf returns the folders of the packages of this module that a file imports.
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

// TestOnlyTheWiringKnowsAnEngine fails for a controller that imports an engine. The files directly in the folder
// controllers/agent, which put the agent together, pass the engine to the controller.
func TestOnlyTheWiringKnowsAnEngine(t *testing.T) {
	wirings := 0
	walkSources(t, os.DirFS(root(t)), func(file string, text []byte) {
		if folderOf(file) != "controllers" || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return
		}
		isKnowing := slices.ContainsFunc(importsOf(t, file, text), func(imported string) bool {
			return strings.HasPrefix(imported+"/", "engines/olmv0/")
		})
		switch {
		case isKnowing && path.Dir(file) == "controllers/agent":
			wirings++
		case isKnowing:
			t.Errorf("%s imports an engine: have controllers/agent/agent.go hand over what it needs", file)
		}
	})
	if wirings == 0 {
		t.Error("nothing puts the agent together")
	}
}

// TestControllersMeetOnlyInObjects fails for a controller that imports another controller. All controllers may import
// the kit, which imports no controller. What puts a program together imports no controller of the other one, because
// the program would carry all that the controller needs.
func TestControllersMeetOnlyInObjects(t *testing.T) {
	for _, problem := range meetings(t, os.DirFS(root(t))) {
		t.Error(problem)
	}
}

func TestMeetings(t *testing.T) {
	tree := fstest.MapFS{}
	for file, imported := range map[string]string{
		"controllers/hub/fleet/a.go":      "controllers/kit/conditions",
		"controllers/hub/fleet/sub/a.go":  "controllers/hub/fleet",
		"controllers/hub/fleet/b.go":      "rollouts",
		"controllers/hub/fleet/sub/b.go":  "controllers/hub/operator",
		"controllers/hub/fleet/b_test.go": "controllers/probe",
		"controllers/agent/job/a.go":      "controllers/agent/scan",
		"controllers/kit/a.go":            "controllers/hub/fleet",
		"controllers/kit/conditions/a.go": "controllers/kit",
		"controllers/hub/hub.go":          "controllers/hub/fleet",
		"controllers/hub/probes.go":       "controllers/probe",
		"controllers/hub/jobs.go":         "controllers/agent/job",
		"cmd/hub/a.go":                    "controllers/hub/fleet",
	} {
		tree[file] = fileImporting(module + "/" + imported)
	}
	want := []string{
		"controllers/agent/job/a.go imports controllers/agent/scan: only kit is for all controllers",
		"controllers/hub/fleet/b_test.go imports controllers/probe: only kit is for all controllers",
		"controllers/hub/fleet/sub/b.go imports controllers/hub/operator: only kit is for all controllers",
		"controllers/hub/jobs.go imports controllers/agent/job: it does not run on the hub",
		"controllers/kit/a.go imports controllers/hub/fleet: only kit is for all controllers",
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
		program, isWiring := strings.CutSuffix(from, "/")
		for _, imported := range importsOf(t, file, text) {
			to := controllerOf(imported)
			switch {
			case to == "" || to == "kit" || to == from:
			case !isWiring:
				found = append(found, fmt.Sprintf("%s imports %s: only kit is for all controllers", file, imported))
			case strings.Contains(to, "/") && !strings.HasPrefix(to, from):
				found = append(found, fmt.Sprintf("%s imports %s: it does not run on the %s", file, imported, program))
			}
		}
	})
	return found
}

// controllerOf returns the name of the controller that a folder belongs to: "hub/" and "agent/" for the folders that
// put the programs together, and "" if there is none.
func controllerOf(folder string) string {
	below, ok := strings.CutPrefix(folder, "controllers/")
	if !ok {
		return ""
	}
	name, below, _ := strings.Cut(below, "/")
	if name == "hub" || name == "agent" {
		noun, _, _ := strings.Cut(below, "/")
		return name + "/" + noun
	}
	return name
}
