// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package notes_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/release/notes"
)

// TestNotesSinceTheLastRelease plays two releases in a repository of its own.
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
		commits, err := notes.Since(t.Context(), dir)
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
	// What is released is the tagged commit itself: its own tag is not the one before.
	if diff := cmp.Diff([]string{"Roll out in waves", "Begin"}, subjects()); diff != "" {
		t.Errorf("first release (-want +got):\n%s", diff)
	}
	git("commit", "--quiet", "--allow-empty", "-m", "Stop a bad version for @everyone")
	git("tag", "v0.2.0")
	if diff := cmp.Diff([]string{"Stop a bad version for @everyone"}, subjects()); diff != "" {
		t.Errorf("second release (-want +got):\n%s", diff)
	}
	at, err := notes.CommitTime(t.Context(), dir)
	if err != nil || at.Unix() != 1700000000 {
		t.Errorf("the commit was made at %s, error %v", at, err)
	}
	commits, err := notes.Since(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text := notes.Markdown(notes.Release{Version: "0.2.0", Commits: commits, Images: []image.Published{
		{Name: "hub", Repository: "registry.example.com/bellwether/hub", Tag: "0.2.0", Digest: "sha256:aa"}}})
	for _, want := range []string{"# Bellwether 0.2.0", "registry.example.com/bellwether/hub:0.2.0@sha256:aa",
		"- Stop a bad version for &#64;everyone ("} {
		if !strings.Contains(text, want) {
			t.Errorf("the notes do not have %q:\n%s", want, text)
		}
	}
}
