// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestEveryControllerHasARule fails when a controller is added to the tree and
// not to the rules.
func TestEveryControllerHasARule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]any `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root(t), "controllers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && config.Linters.Settings.Depguard.Rules["controller-"+name] == nil {
			t.Errorf("controllers/%s has no rule controller-%s in .golangci.yml", name, name)
		}
	}
}

// TestPackageNames refuses the names under which anything may be dumped.
func TestPackageNames(t *testing.T) {
	dumps := []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "types", "misc"}
	err := filepath.WalkDir(root(t), func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir():
			return err
		case strings.HasPrefix(entry.Name(), ".") && name != root(t), entry.Name() == "testdata", entry.Name() == "bin":
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
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
