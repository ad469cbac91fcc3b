// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/release/image"
)

// TestNotesSinceTheLastRelease creates two releases in a separate repository.
func TestNotesSinceTheLastRelease(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=@1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	subjects := func() (out []string) {
		t.Helper()
		commits, err := listCommits(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			out = append(out, c.Subject)
		}
		return out
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "Begin")
	git("commit", "--quiet", "--allow-empty", "-m", "Roll out in waves")
	git("tag", "v0.1.0")
	// The released commit has a tag itself. Its own tag is not the previous release.
	if diff := cmp.Diff([]string{"Roll out in waves", "Begin"}, subjects()); diff != "" {
		t.Errorf("first release (-want +got):\n%s", diff)
	}
	git("commit", "--quiet", "--allow-empty", "-m", "Stop a bad version for @everyone")
	git("tag", "v0.2.0")
	if diff := cmp.Diff([]string{"Stop a bad version for @everyone"}, subjects()); diff != "" {
		t.Errorf("second release (-want +got):\n%s", diff)
	}
	at, err := readCommitTime(t.Context(), dir)
	if err != nil || at.Unix() != 1700000000 {
		t.Errorf("the commit was made at %s, error %v", at, err)
	}
	commits, err := listCommits(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text := formatNotes(notesInput{Version: "0.2.0", Commits: commits, Images: []image.Published{
		{Name: "hub", Repository: "registry.example.com/bellwether/hub", Tag: "0.2.0", Digest: "sha256:aa"}}})
	for _, want := range []string{"# Bellwether 0.2.0", "registry.example.com/bellwether/hub:0.2.0@sha256:aa",
		"- Stop a bad version for &#64;everyone ("} {
		if !strings.Contains(text, want) {
			t.Errorf("the notes do not have %q:\n%s", want, text)
		}
	}
}

func TestUpgradeNotesAreThoseOfTheVersionsPage(t *testing.T) {
	tree := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			file := filepath.Join(dir, "docs", "releases", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const next = "# Next\n\nIntroduction.\n\n## Upgrade notes\n\nSee [limits](../reference/limits.md#probes), " +
		"[SemVer](https://semver.org) and [below](#more).\n"
	const source = "https://github.com/bellwether-dev/bellwether/blob/v1.2.0/docs/"
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"own page": {map[string]string{"v1.2.0.md": "# 1.2.0\n\n## Upgrade notes\n\nNone.\n", "unreleased.md": next},
			"## Upgrade notes\n\nNone."},
		"none yet": {map[string]string{"unreleased.md": next}, "## Upgrade notes\n\nSee [limits](" + source +
			"reference/limits.md#probes), [SemVer](https://semver.org) and [below](#more)."},
		"nothing to say": {map[string]string{"v1.2.0.md": "# 1.2.0\n\nNothing.\n"}, ""},
		"no pages":       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"1.2.0", "v1.2.0"} {
				got, err := readUpgradeNotes(tree(tt.files), version)
				if err != nil || got != tt.want {
					t.Errorf("upgrade notes of %s: error %v, got:\n%s\nwant:\n%s", version, err, got, tt.want)
				}
			}
		})
	}
	// The pages of this repository are read as they are.
	own, err := readUpgradeNotes("..", "0.0.0")
	if err != nil || !strings.HasPrefix(own, "## Upgrade notes\n") || strings.Contains(own, "](..") {
		t.Errorf("upgrade notes of this repository: error %v, got:\n%s", err, own)
	}
	text := formatNotes(notesInput{Version: "1.2.0", Upgrade: "## Upgrade notes\n\nNone."})
	if !strings.Contains(text, "\n\n## Upgrade notes\n\nNone.\n\n## Changes\n") {
		t.Errorf("notes:\n%s", text)
	}
}
