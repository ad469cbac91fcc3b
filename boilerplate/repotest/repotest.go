// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repotest contains helpers for tests with repositories: their files, git, and an environment for make.
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

// Isolate gives git an identity, and hides the settings of the user who runs the test.
func Isolate(t testing.TB) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "Anna")
		t.Setenv("GIT_"+role+"_EMAIL", "anna@example.com")
	}
}

// Git runs git in a folder and returns its output. An error ends the test.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...) //nolint:gosec // the arguments come from the test
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// WriteFile writes a file below a folder and creates its parent folders.
func WriteFile(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// MakeEnvironment returns an environment for make without the variables of another make that runs the test. The given
// variables are added.
func MakeEnvironment(variables ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "BIN=") || strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	}), variables...)
}
