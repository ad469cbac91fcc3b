// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestChangesFit applies each change to the version of the module that its group compiles.
func TestChangesFit(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for group, c := range changes {
		t.Run(group, func(t *testing.T) {
			module := filepath.Join(root, "testbed", "components", group)
			if _, err := c.apply(t.Context(), module, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEditOfAnotherVersion(t *testing.T) {
	dir := source(t, "")
	e := edit{file: "main.go", from: "func other()", to: "func mine()"}
	if err := e.apply(dir); !errors.Is(err, errOtherSource) {
		t.Errorf("got %v, want %v", err, errOtherSource)
	}
}

func TestChangesDecideTheKey(t *testing.T) {
	dir := source(t, "")
	before, err := groupKey(dir, group{name: "olm"})
	if err != nil {
		t.Fatal(err)
	}
	original := changes["olm"]
	t.Cleanup(func() { changes["olm"] = original })
	changed := original
	changed.edits = append(changed.edits[:1:1], edit{file: "rest/config.go"})
	changes["olm"] = changed
	if after, err := groupKey(dir, group{name: "olm"}); err != nil || after == before {
		t.Errorf("keys %q and %q, error %v", before, after, err)
	}
}
