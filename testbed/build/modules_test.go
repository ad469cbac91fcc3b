// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
)

// others are modules of which a component needs another version than the testbed, by the component's folder.
var others = map[string][]string{
	// The client of OpenShift that OLM uses fits no newer one.
	"testbed/components/olm": {"github.com/openshift/api"},
	// promtool fits no newer client.
	"testbed/components/prometheus": {
		"github.com/prometheus/client_golang", "github.com/prometheus/client_golang/exp",
	},
}

// TestModulesShareVersions holds the product and the components to the versions of the testbed's module. Go compiles a
// package once for all programs only if everything it imports is the same too: with versions of their own, a first
// `make test` compiles twice as much.
func TestModulesShareVersions(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	testbed := required(t, filepath.Join(root, "testbed"))
	folders := []string{"."}
	for _, g := range groups {
		if g.name != "sources" { // its modules are not compiled
			folders = append(folders, "testbed/components/"+g.name)
		}
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			var edits []string
			for path, version := range required(t, filepath.Join(root, filepath.FromSlash(folder))) {
				if wanted, ok := testbed[path]; ok && wanted != version && !slices.Contains(others[folder], path) {
					edits = append(edits, "\n\tgo mod edit -require="+path+"@"+wanted)
				}
			}
			slices.Sort(edits)
			if len(edits) > 0 {
				t.Errorf("%s requires other versions than testbed. Raise the lower ones. To take those of testbed, "+
					"run this and `go mod tidy` there:%s", folder, edits)
			}
		})
	}
}

// required returns the versions of what the module in dir is compiled from, by the modules' paths.
func required(t *testing.T, dir string) map[string]string {
	t.Helper()
	path := filepath.Join(dir, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := make(map[string]string, len(file.Require))
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range file.Replace {
		if r.New.Version != "" {
			versions[r.Old.Path] = r.New.Version
		} else {
			delete(versions, r.Old.Path) // a folder of this repository
		}
	}
	return versions
}
