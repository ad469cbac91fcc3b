// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Opening a named pipe blocks until a process writes to it.
func TestNamedPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, bundleFS(nil)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "metadata/properties.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bundles.Read(os.DirFS(dir)); !errors.Is(err, bundles.ErrNotBundle) ||
		!strings.Contains(err.Error(), "metadata/properties.yaml is not a regular file") {
		t.Errorf("got %v", err)
	}
}
