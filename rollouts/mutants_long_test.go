// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package rollouts_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMutants plants one fault at a time in the planner and expects a test to
// find it. A fault that survives is a check that is missing.
func TestMutants(t *testing.T) {
	found := regexp.MustCompile(`seed \d+: [^\n]{0,150}|panic: [^\n]*|--- FAIL: Test\S*|test timed out`)
	for name, m := range mutantsOf {
		t.Run(name, func(t *testing.T) {
			out, err := runMutant(t, m)
			if err == nil {
				t.Fatal("survived: " + name)
			}
			what := found.FindString(out)
			if what == "" {
				t.Fatalf("did not compile or failed otherwise:\n%s", out)
			}
			t.Log(name + ": " + what)
		})
	}
}

func runMutant(t *testing.T, m mutant) (string, error) {
	t.Helper()
	path, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		mutated: strings.Replace(string(source), m.old, m.new, 1), overlay: string(text),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", overlay, "-timeout", "5m", "-run",
		cmp.Or(m.test, "^TestSimulator$"), ".", "-args", "-seeds", strconv.Itoa(*seeds))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
