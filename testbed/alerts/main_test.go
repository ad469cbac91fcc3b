// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/testbed/build"
)

// binary is the path of a component, which is built if need be.
func binary(t *testing.T, name string) string {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), name)
	if err != nil {
		t.Fatal(err)
	}
	return paths[name]
}

// golden is the folder with the rules and tests that package slo generates.
func golden(t *testing.T) string {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "alerts", "slo", "testdata")
}

// write writes files into a folder of the test's own.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// playFile plays the tests of a file whose names match, or all if names is empty. It does so with the program that
// takes less processor time than promtool, which TestTesters compares with promtool.
func playFile(t *testing.T, path, names string) error {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary(t, build.RuleTester), "-run", names, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("test rules: %w\n%.4000s", err, out)
	}
	return nil
}

// promtoolCommand prepares a run of promtool. Its heap is small, so it collects garbage less often than by default,
// which takes up to a quarter of its processor time.
func promtoolCommand(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "GOGC=400")
	return cmd
}

// promtool runs it. The error has what it said.
func promtool(ctx context.Context, path string, args ...string) error {
	out, err := promtoolCommand(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("promtool %s: %w\n%.4000s", strings.Join(args, " "), err, out)
	}
	return nil
}
