// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

func TestBundleInit(t *testing.T) {
	h, dir := clitest.NewHub(), filepath.Join(t.TempDir(), "snack-operator")
	init := []string{"bundle", "init", dir, "--group", "snacks.example.com", "--kind", "Snack",
		"--provider", "Snacks Inc."}
	if r := h.Run(t, init...); r.Code != exit.OK || !strings.Contains(r.Out, "Wrote snack-operator.v0.1.0") {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if r := h.Run(t, "bundle", "lint", dir); r.Code != exit.OK {
		t.Errorf("lint: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	again := filepath.Join(t.TempDir(), "built")
	if r := h.Run(t, "bundle", "build", dir, "--output-dir", again); r.Code != exit.OK {
		t.Errorf("build: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	csv, err := os.ReadFile(filepath.Join(dir, "manifests", "snack-operator.clusterserviceversion.yaml"))
	if err != nil || !strings.Contains(string(csv), "name: Snacks Inc.") {
		t.Errorf("the provider is not there (%v):\n%s", err, csv)
	}
	if r := h.Run(t, init...); r.Code != exit.Error || !strings.Contains(r.Err, "is not empty") {
		t.Errorf("again: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if r := h.Run(t, "bundle", "init", filepath.Join(t.TempDir(), "x"), "--kind", "snack"); r.Code != exit.Error ||
		!strings.Contains(r.Err, "does not begin with a capital letter") {
		t.Errorf("a wrong kind: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
}
