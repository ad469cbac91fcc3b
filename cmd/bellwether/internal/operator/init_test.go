// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// TestInit writes an operator, and checks the errors for invalid flags.
func TestInit(t *testing.T) {
	h, dir := clitest.NewHub(), filepath.Join(t.TempDir(), "snacks")
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o750); err != nil {
		t.Fatal(err)
	}
	r := h.Run(t, "operator", "init", "snack-operator", "--dir", dir, "--team", "acme/snacks")
	for _, want := range []string{"Wrote the operator snack-operator to " + dir, "make generate", "make test lint",
		"make bundle"} {
		if r.Code != exit.OK || !strings.Contains(r.Out, want) {
			t.Errorf("exit %d, no %q in\n%s%s", r.Code, want, r.Out, r.Err)
		}
	}
	for name, want := range map[string]string{"api/v1alpha1/snack_types.go": "type Snack struct",
		"OWNERS": "acme/snacks", ".boilerplate.yaml": "operator: snack-operator"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, no %q in\n%s", name, err, want, text)
		}
	}
	if got := h.Run(t, "boilerplate", "check", "--dir", dir); got.Code != exit.OK {
		t.Errorf("check: exit %d\n%s%s", got.Code, got.Out, got.Err)
	}
	types := t.TempDir()
	if err := os.WriteFile(filepath.Join(types, "types.go"), []byte("package v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"snack-operator --dir " + dir:           "not empty",
		"Snack":                                 "small letters",
		"snacks --scope everywhere":             "not namespaced or cluster",
		"snacks --kind snack":                   "does not begin with a capital letter",
		"snacks --api-from " + types:            "has TypeMeta and ObjectMeta",
		"snacks --api-from ./none":              "no Go files",
		"snacks --api-from ./none --group a.b":  "api-from and --group exclude each other",
		"snacks --example " + types + "/a.yaml": "read example",
	} {
		got := h.Run(t, append([]string{"operator", "init"}, strings.Fields(args)...)...)
		if got.Code != exit.Error || !strings.Contains(got.Err, want) {
			t.Errorf("%s: exit %d, no %q in\n%s%s", args, got.Code, want, got.Out, got.Err)
		}
	}
}
