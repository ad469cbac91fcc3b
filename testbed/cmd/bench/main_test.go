// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

func TestCommandLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"none":               {want: "make bench"},
		"only where it goes": {args: []string{"-o", "f.md"}, want: "make bench"},
		"what changes a figure": {args: []string{"-o", "f.md", "--only", "view,memory"},
			want: "make bench ARGS='--only view,memory'"},
		"several, in their order": {args: []string{"--settle=1s", "--output=f.md", "--runs", "5"},
			want: "make bench ARGS='--settle=1s --runs 5'"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, commandLine(tc.args)); diff != "" {
				t.Errorf("command line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownBenchmarkIsRefused(t *testing.T) {
	c := command()
	c.SetArgs([]string{"--only", "speed"})
	c.SetErr(&bytes.Buffer{})
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `"speed"`) {
		t.Errorf("unknown benchmark: %v", err)
	}
}

// TestDocumentHasAPlaceForEverySection keeps a long run from failing at its end.
func TestDocumentHasAPlaceForEverySection(t *testing.T) {
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys() {
		section := figure.Section{Key: key, Title: "Title of " + key}
		if err := record(path, section, figure.Origin{Command: "make bench", At: time.Unix(0, 0)}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys() {
		if !strings.Contains(string(written), "## Title of "+key) {
			t.Errorf("%s was not written", key)
		}
	}
}
