// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackageNames refuses package names that say nothing about the content.
func TestPackageNames(t *testing.T) {
	dumps := []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "types", "misc"}
	err := filepath.WalkDir(root(t), func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir():
			return err
		case strings.HasPrefix(entry.Name(), ".") && name != root(t), entry.Name() == "testdata", entry.Name() == "bin",
			// Folders of other repositories.
			strings.HasSuffix(name, filepath.Join("boilerplate", "scaffold", "templates")):
			return filepath.SkipDir
		case slices.Contains(dumps, entry.Name()):
			t.Errorf("%s: name a package for what it does", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
