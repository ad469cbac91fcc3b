// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
)

// TestNamedPipeAmongManifests hangs if the linter opens what is not a regular file.
func TestNamedPipeAmongManifests(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, baseFiles(t)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "manifests/pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := os.DirFS(dir)
	b, err := bundles.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	report := Run(Input{Bundle: b, Files: files}, Options{Now: today, FailOn: Info})
	if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
		return f.File == "manifests/pipe.yaml" && f.Message == "not a regular file"
	}) {
		t.Errorf("the pipe is not reported: %+v", report.Findings)
	}
}
