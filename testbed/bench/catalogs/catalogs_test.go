// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bellwether-dev/bellwether/testbed/bench/catalogs"
)

func TestLargestBundle(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a/1.0.0": 10, "a/1.1.0": 30, "b/1.0.0": 20} {
		manifests := filepath.Join(dir, name, "manifests")
		if err := os.MkdirAll(manifests, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(manifests, "csv.yaml"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := catalogs.LargestBundle(dir); err != nil || got != filepath.Join(dir, "a", "1.1.0") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := catalogs.LargestBundle(filepath.Join(dir, "missing")); err == nil {
		t.Errorf("no folder: got %q, want an error", got)
	}
}
