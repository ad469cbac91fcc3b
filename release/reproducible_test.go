// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/release/image"
)

// TestTwoBuildsOfTheProductGiveTheSameDigest builds hub, agent and command line for both architectures in two copies of
// the tree. It compiles everything for arm64, which takes minutes.
func TestTwoBuildsOfTheProductGiveTheSameDigest(t *testing.T) {
	first, second := digests(t), digests(t)
	for _, name := range image.Names {
		if first[name] == "" || first[name] != second[name] {
			t.Errorf("%s: one build gives %q, another one %q", name, first[name], second[name])
		}
	}
}

func digests(t *testing.T) map[string]string {
	t.Helper()
	tree := copyTree(t)
	programs := map[string][]image.Program{}
	for _, platform := range image.Platforms {
		built, err := image.Compile(t.Context(), image.Compilation{Root: tree, Names: image.Names, Platform: platform,
			Release: "1.2.3"}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range built {
			programs[p.Name] = append(programs[p.Name], p)
		}
	}
	out := map[string]string{}
	for name, all := range programs {
		s, err := image.NewSet(all, func(v1.Platform) (v1.Image, error) { return image.DefaultBase() })
		if err != nil {
			t.Fatal(err)
		}
		digest, err := s.Index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = fmt.Sprint(digest)
	}
	return out
}

// copyTree copies the files of the tree that git tracks to a folder with another name.
func copyTree(t *testing.T) string {
	t.Helper()
	root, to := "..", t.TempDir()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(string(bytes.TrimRight(names, "\x00")), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted, or a folder
		}
		file := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
