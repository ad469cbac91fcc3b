// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build lint

package conventions

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTools has the tools check their configuration and the workflow; the Makefile says where they are.
func TestTools(t *testing.T) {
	for name, more := range map[string]map[string]any{"defaults": nil, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			dir, _ := write(t, more)
			for _, args := range [][]string{
				{os.Getenv("ACTIONLINT"), filepath.Join(".github", "workflows", "ci.yaml")},
				{os.Getenv("GOLANGCI_LINT"), "linters", "--config", ".golangci.yml"},
				{os.Getenv("GOLANGCI_LINT"), "config", "verify", "--config", ".golangci.yml"},
			} {
				cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %v\n%s", args, err, out)
				}
			}
		})
	}
}
