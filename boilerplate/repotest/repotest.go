// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repotest has what tests need of a repository: its files, its git, and an environment for its make.
package repotest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Isolate gives git an identity, and no settings of whoever runs the test.
func Isolate(t testing.TB) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "Anna")
		t.Setenv("GIT_"+who+"_EMAIL", "anna@example.com")
	}
}

// Git runs git in a folder, and returns what it prints. An error ends the test.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...) //nolint:gosec // they are the test's
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Put writes a file below a folder, and makes the folders on the way.
func Put(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// MakeEnvironment is the environment of a make that no other make has started: variables of the one that runs the test
// are none of the one under test.
func MakeEnvironment(more ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "BIN=") || strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	}), more...)
}
