// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// git runs git in a folder in the same way as the package: without hooks, and with the index of the folder.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := newCommand(t.Context(), dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// newRepository creates a repository that has one commit with files.
func newRepository(t *testing.T, files map[string]string) (string, *Tree, *Git) {
	t.Helper()
	repotest.Isolate(t)
	dir := t.TempDir()
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	for name, text := range files {
		repotest.WriteFile(t, dir, name, text)
	}
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=first")
	tree, err := OpenTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	g, err := OpenGit(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, tree, g
}

// files returns all files of a folder except those of git.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// planned returns changes of four files: one is new, one is changed, one is executable, one is removed.
func planned(t *testing.T, tree *Tree) []update.Change {
	t.Helper()
	current, err := tree.ReadAll([]string{"old/gone", "changed", "run"})
	if err != nil {
		t.Fatal(err)
	}
	locked := []subscription.LockedFile{{Path: "new/file", Kind: convention.Merged}}
	plan := &update.Plan{Lock: &subscription.Lock{Files: locked},
		Base: map[string]string{"new/file": "new\n"}, Changes: []update.Change{
			{Path: "changed", Before: current["changed"], After: &update.File{Text: "after\r\n"}},
			{Path: "new/file", After: &update.File{Text: "new\n"}},
			{Path: "old/gone", Before: current["old/gone"]},
			{Path: "run", Before: current["run"], After: &update.File{Text: "#!/bin/sh\n", Executable: true}},
		}}
	changes, err := tree.ListChanges(plan, []byte("subscription\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

var before = map[string]string{"changed": "before\r\n", "old/gone": "gone\n", "run": "#!/bin/sh\n", "mine": "mine\n"}

// TestKilledAnywhere stops an update after each of its writes, and then continues or aborts it.
func TestKilledAnywhere(t *testing.T) {
	dir, tree, _ := newRepository(t, before)
	want := map[string]string{}
	for step := 0; ; step++ {
		for _, abort := range []bool{true, false} {
			git(t, dir, "reset", "--quiet", "--hard")
			git(t, dir, "clean", "--quiet", "-d", "--force")
			begun, err := tree.Begin(planned(t, tree), "message")
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range begun.Changes[:min(step, len(begun.Changes))] {
				if err := tree.replaceFile(c.Path, c.Before, c.After); err != nil {
					t.Fatal(err)
				}
			}
			repotest.WriteFile(t, dir, temporaryFile, "half a fi") // as a killed process leaves it
			j, err := tree.ReadJournal()
			if diff := cmp.Diff(begun, j); diff != "" || err != nil {
				t.Fatalf("%v; (-want +got):\n%s", err, diff)
			}
			if abort {
				if err := tree.Abort(j); err != nil {
					t.Fatalf("abort after %d files: %v", step, err)
				}
				if diff := cmp.Diff(before, files(t, dir)); diff != "" {
					t.Fatalf("aborted after %d files (-want +got):\n%s", step, diff)
				}
				continue
			}
			if err := errors.Join(tree.Apply(j), tree.Finish()); err != nil {
				t.Fatalf("go on after %d files: %v", step, err)
			}
			got := files(t, dir)
			if step == 0 {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" || got["changed"] != "after\r\n" || got["old/gone"] != "" {
				t.Fatalf("after %d files (-want +got):\n%s", step, diff)
			}
			if step == len(begun.Changes) {
				return
			}
		}
	}
}

// TestJournalKeepsEachByte records texts that YAML must quote, and reads them again.
func TestJournalKeepsEachByte(t *testing.T) {
	_, tree, _ := newRepository(t, before)
	var changes []update.Change
	for i, text := range []string{"", "\n", " a\n  b\n", "\n\n a", "a\r\nb\r", "\xff\xfe\x00\x01",
		"a: \t# b\n---\n...\n", "\u0085\u2028\ufeff", strings.Repeat("long ", 500), "no end", "'\"\\ {[&*!|>%@`",
		"!!binary aGk=\n", "~", "null\n"} {
		changes = append(changes, update.Change{Path: fmt.Sprint("f", i), Before: &update.File{Text: text},
			After: &update.File{Text: "x" + text, Executable: true}, Conflict: i == 1})
	}
	begun, err := tree.Begin(changes, "a message\n\n- with lines\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.ReadJournal()
	if diff := cmp.Diff(begun, got); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
}

// TestChangedMeanwhile checks that edits of a user during an interrupted update are kept.
func TestChangedMeanwhile(t *testing.T) {
	dir, tree, _ := newRepository(t, before)
	j, err := tree.Begin(planned(t, tree), "")
	if err != nil {
		t.Fatal(err)
	}
	repotest.WriteFile(t, dir, "changed", "mine\n")
	if err := tree.Apply(j); !errors.Is(err, ErrChanged) {
		t.Errorf("apply: got %v", err)
	}
	if err := tree.Abort(j); !errors.Is(err, ErrChanged) {
		t.Errorf("abort: got %v", err)
	}
	if got := files(t, dir)["changed"]; got != "mine\n" {
		t.Errorf("got %q", got)
	}
}

// TestCommit checks that only the given paths are committed, that no hook runs, and that an error does not change
// the index.
func TestCommit(t *testing.T) {
	dir, tree, g := newRepository(t, before)
	repotest.WriteFile(t, dir, ".gitignore", "new\n")
	git(t, dir, "add", ".gitignore")
	git(t, dir, "commit", "--quiet", "--message=ignore")
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit"} {
		name := filepath.Join(dir, ".git", "hooks", hook)
		repotest.WriteFile(t, dir, ".git/hooks/"+hook, "#!/bin/sh\ntouch "+filepath.Join(dir, "hook-ran")+"\nexit 1\n")
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	repotest.WriteFile(t, dir, "mine", "changed by hand\n")
	repotest.WriteFile(t, dir, "untracked", "untracked\n")
	j, err := tree.Begin(planned(t, tree), "")
	if err = errors.Join(err, tree.Apply(j), tree.Finish()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_INDEX_FILE", filepath.Join(t.TempDir(), "another")) // as in a hook
	name, err := g.Commit(t.Context(), "Update boilerplate\n\n# a line", update.ChangedPaths(j.Changes))
	if err != nil || name == "" {
		t.Fatalf("got %q, %v", name, err)
	}
	got := git(t, dir, "show", "--format=%B", "--name-status", "--no-renames", "HEAD")
	want := "Update boilerplate\n\n# a line\n\n\nA\t.boilerplate.yaml\nA\t.boilerplate/base/new/file\n" +
		"A\t.boilerplate/lock.yaml\nM\tchanged\nA\tnew/file\nD\told/gone\nM\trun\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := git(t, dir, "status", "--porcelain"); got != " M mine\n?? untracked\n" {
		t.Errorf("after the commit: %q", got)
	}
	if again, err := g.Commit(t.Context(), "again", update.ChangedPaths(j.Changes)); again != "" || err != nil {
		t.Errorf("a second commit: %q, %v", again, err)
	}
	repotest.WriteFile(t, dir, "changed", "2\n")
	t.Setenv("GIT_AUTHOR_EMAIL", "")
	t.Setenv("GIT_AUTHOR_NAME", "")
	if _, err := g.Commit(t.Context(), "no identity", update.ChangedPaths(j.Changes)); err == nil {
		t.Error("a commit without an identity is no error")
	}
	if got := git(t, dir, "diff", "--cached", "--name-only"); got != "" {
		t.Errorf("the index has %q", got)
	}
}

// TestFirstCommit commits in a repository without commits, and in a folder of it.
func TestFirstCommit(t *testing.T) {
	repotest.Isolate(t)
	top := t.TempDir()
	git(t, top, "init", "--quiet")
	repotest.WriteFile(t, top, "sub/a", "a\n")
	repotest.WriteFile(t, top, "b", "b\n")
	g, err := OpenGit(t.Context(), filepath.Join(top, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.CheckClean(t.Context(), []string{"a"}); !errors.Is(err, ErrDirty) ||
		!strings.HasSuffix(err.Error(), ": a is untracked") {
		t.Errorf("got %v", err)
	}
	if _, err := g.Commit(t.Context(), "one", []string{"a", "not-there"}); err != nil {
		t.Fatal(err)
	}
	if got := git(t, top, "ls-files"); got != "sub/a\n" {
		t.Errorf("committed %q", got)
	}
}

func TestCheckClean(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"clean":        {func(*testing.T, string) {}, ""},
		"another file": {func(t *testing.T, dir string) { t.Helper(); repotest.WriteFile(t, dir, "mine", "2\n") }, ""},
		"modified": {func(t *testing.T, dir string) { t.Helper(); repotest.WriteFile(t, dir, "changed", "2\n") },
			"changed is modified"},
		"untracked": {func(t *testing.T, dir string) { t.Helper(); repotest.WriteFile(t, dir, "new/file", "2\n") },
			"new/file is untracked"},
		"ignored": {func(t *testing.T, dir string) {
			t.Helper()
			repotest.WriteFile(t, dir, ".git/info/exclude", "new\n")
			repotest.WriteFile(t, dir, "new/file", "2\n")
		}, "new/file is ignored"},
		"staged": {func(t *testing.T, dir string) {
			t.Helper()
			repotest.WriteFile(t, dir, "mine", "2\n")
			git(t, dir, "add", "mine")
		}, "mine is staged"},
		"a merge": {func(t *testing.T, dir string) {
			t.Helper()
			git(t, dir, "checkout", "--quiet", "-b", "other")
			git(t, dir, "commit", "--quiet", "--allow-empty", "--message=other")
			git(t, dir, "checkout", "--quiet", "main")
			git(t, dir, "merge", "--quiet", "--no-ff", "--no-commit", "other")
		}, "merge is not finished"},
		"a submodule": {func(t *testing.T, dir string) {
			t.Helper()
			other := t.TempDir()
			git(t, other, "init", "--quiet")
			git(t, other, "commit", "--quiet", "--allow-empty", "--message=first")
			git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "new")
			git(t, dir, "commit", "--quiet", "--message=submodule")
			git(t, dir, "submodule", "--quiet", "deinit", "--force", "new") // an empty folder
		}, "new/file is in the submodule new"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, g := newRepository(t, before)
			c.change(t, dir)
			err := g.CheckClean(t.Context(), []string{"changed", "new/file"})
			isRight := errors.Is(err, ErrDirty) && strings.Contains(err.Error(), c.want)
			if c.want == "" && err != nil || c.want != "" && !isRight {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestObstacles(t *testing.T) {
	dir, tree, _ := newRepository(t, before)
	outside := t.TempDir()
	repotest.WriteFile(t, outside, "secret", "secret\n")
	for name, target := range map[string]string{"link": "changed", "outside": outside, "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	repotest.WriteFile(t, dir, "module/.git", "gitdir: elsewhere\n")
	for name, want := range map[string]string{
		"link": "a symbolic link", "outside/secret": "a symbolic link, outside,", "dangling": "a symbolic link",
		"old": "a folder", "changed/below": "a file, changed,", "module/file": "a submodule, module,",
		"module": "a submodule",
	} {
		f, err := tree.Read(name)
		if err != nil || f == nil || f.Obstacle != want {
			t.Errorf("%s: got %+v, %v, want %q", name, f, err, want)
		}
		if err := tree.writeFile(name, update.File{Text: "x"}); err == nil {
			t.Errorf("%s is written", name)
		}
	}
	if f, err := tree.Read("none/at/all"); f != nil || err != nil {
		t.Errorf("a missing file: %v, %v", f, err)
	}
	if _, err := tree.Read("../" + filepath.Base(outside) + "/secret"); err == nil {
		t.Error("a path out of the repository is read")
	}
	if got, err := os.ReadDir(outside); err != nil || len(got) != 1 {
		t.Errorf("outside: %v, %v", got, err)
	}
}

// TestReadOnly checks that an update fails before it changes any file.
func TestReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may write everywhere: a file takes the place of the program's folder instead")
	}
	dir, tree, _ := newRepository(t, before)
	changes := planned(t, tree)
	if os.Getuid() == 0 {
		repotest.WriteFile(t, dir, subscription.Folder, "")
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := tree.Begin(changes, ""); err == nil {
		t.Fatal("an update begins")
	}
	got := files(t, dir)
	delete(got, subscription.Folder)
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotARepository(t *testing.T) {
	repotest.Isolate(t)
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if _, err := OpenGit(t.Context(), dir); !errors.Is(err, ErrNotRepository) ||
		!strings.Contains(err.Error(), "not a git") {
		t.Errorf("got %v", err)
	}
	if _, err := OpenGit(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, ErrNotRepository) {
		t.Errorf("a missing folder: %v", err)
	}
	t.Setenv("PATH", dir)
	if _, err := OpenGit(t.Context(), dir); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without git: %v", err)
	}
}

func TestMergeFile(t *testing.T) {
	merge := MergeFile(context.Background())
	lines := func(first, last string) string { return first + "\n1\n2\n3\n4\n5\n" + last + "\n" }
	got, conflict, err := merge("a", lines("mine", "z"), lines("a", "z"), lines("a", "theirs"))
	if err != nil || conflict || got != lines("mine", "theirs") {
		t.Errorf("got %q, %t, %v", got, conflict, err)
	}
	got, conflict, err = merge("dir/a", "mine\n", "base\n", "theirs\n")
	want := "<<<<<<< dir/a (yours)\nmine\n||||||| dir/a (as rendered last)\nbase\n=======\ntheirs\n" +
		">>>>>>> dir/a (convention)\n"
	if diff := cmp.Diff(want, got); diff != "" || !conflict || err != nil || update.FindConflictLine(got) == 0 {
		t.Errorf("%t, %v (-want +got):\n%s", conflict, err, diff)
	}
	var mine, theirs, base strings.Builder
	for i := range 300 { // more conflicts than an exit status can count
		fmt.Fprintf(&base, "%d\n=\n=\n=\n", i)
		fmt.Fprintf(&mine, "mine %d\n=\n=\n=\n", i)
		fmt.Fprintf(&theirs, "theirs %d\n=\n=\n=\n", i)
	}
	if got, conflict, err := merge("a", mine.String(), base.String(), theirs.String()); !conflict || err != nil ||
		!strings.Contains(got, "mine 299") {
		t.Errorf("300 conflicts: %t, %v", conflict, err)
	}
}
