// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
)

// A link can lead out of the bundle. Images contain no links, so the published content would differ.
func TestLinksAreRefused(t *testing.T) {
	for _, name := range []string{"metadata", "metadata/annotations.yaml", "metadata/dependencies.yaml", "manifests"} {
		dir := filepath.Join(t.TempDir(), "bundle")
		if err := os.CopyFS(dir, bundleFS(nil)); err != nil {
			t.Fatal(err)
		}
		outside := filepath.Join(filepath.Dir(dir), "outside")
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.Rename(at, outside), os.Symlink(outside, at)); err != nil {
			t.Fatal(err)
		}
		if _, err := bundles.Read(os.DirFS(dir)); !errors.Is(err, bundles.ErrNotBundle) ||
			!strings.Contains(err.Error(), name+" is a link") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
