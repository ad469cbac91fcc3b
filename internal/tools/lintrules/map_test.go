// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestMap compares the map in docs/architecture.md with the tree: each folder with Go code, or a parent of it, has a
// line, and each line is a folder.
func TestMap(t *testing.T) {
	for _, problem := range wrongMap(t, architecture(t), os.DirFS(root(t))) {
		t.Error(problem)
	}
}

func TestWrongMap(t *testing.T) {
	text := "## The map\n\n| folder | job |\n|---|---|\n| `a/b`, `c` | see `d` |\n| `e` | gone |\n\n" +
		"## Next\n\n| `f` | |\n"
	tree := fstest.MapFS{}
	for _, file := range []string{"a/b/x.go", "a/b/deep/x.go", "a/x.go", "c/x_test.go", "d/testdata/x.go"} {
		tree[file] = fileImporting("fmt")
	}
	want := []string{"the map in docs/architecture.md has no line for a",
		"the map in docs/architecture.md names e, which has no Go code"}
	if diff := cmp.Diff(want, wrongMap(t, text, tree)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func wrongMap(t *testing.T, text string, tree fs.FS) []string {
	t.Helper()
	mapped := foldersOfMap(text)
	problems, used := map[string]bool{}, map[string]bool{}
	walkSources(t, tree, func(file string, _ []byte) {
		if path.Ext(file) != ".go" || strings.Contains(file, "testdata/") {
			return
		}
		covered := false
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
			if slices.Contains(mapped, folder) {
				covered, used[folder] = true, true
			}
		}
		if !covered {
			problems["the map in docs/architecture.md has no line for "+path.Dir(file)] = true
		}
	})
	for _, folder := range mapped {
		if !used[folder] {
			problems["the map in docs/architecture.md names "+folder+", which has no Go code"] = true
		}
	}
	return slices.Sorted(maps.Keys(problems))
}

var folderName = regexp.MustCompile("`([^`]+)`")

// foldersOfMap returns the folders in the first column of the map's table.
func foldersOfMap(text string) []string {
	_, text, _ = strings.Cut(text, "## The map\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var folders []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range folderName.FindAllStringSubmatch(cells[1], -1) {
			folders = append(folders, m[1])
		}
	}
	return folders
}

var box = regexp.MustCompile(`L\d+\["([^"]+)"\]`)

// TestPicture compares the picture of imports in docs/architecture.md with layers.
func TestPicture(t *testing.T) {
	_, text, _ := strings.Cut(architecture(t), "\n## Which way dependencies point\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var drawn [][]string
	for _, m := range box.FindAllStringSubmatch(text, -1) {
		drawn = append(drawn, strings.Split(m[1], ", "))
	}
	if diff := cmp.Diff(layers, drawn); diff != "" {
		t.Errorf("the picture of imports (-layers +docs/architecture.md):\n%s", diff)
	}
}

func architecture(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
