// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// Opening a named pipe waits forever for another process that writes to it.
func TestNamedPipesAreRefused(t *testing.T) {
	dir := catalogDir(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), oci.Source{Directory: dir}); !errors.Is(err,
		oci.ErrBadSource) {
		t.Errorf("got %v", err)
	}
}
