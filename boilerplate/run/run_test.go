// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/repository"
	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// first is version 0.1.0 of a convention.
const first = `-- convention.yaml --
apiVersion: boilerplate.bellwether.dev/v1alpha1
kind: Convention
name: org
version: 0.1.0
description: For tests.
parameters: [{name: name, type: string, description: The name.}]
files:
- {path: owned.yml, template: files/owned.yml.tmpl, kind: owned}
- {path: Makefile, template: files/Makefile, kind: shared}
- {path: merged.txt, template: files/merged, kind: merged}
- {path: once.txt, template: files/once, kind: once}
-- README.md --
# org
-- files/owned.yml.tmpl --
name: [[ .name ]]
-- files/Makefile --
# boilerplate:begin org
all: one
# boilerplate:end org
-- files/merged --
a
b
c
d
e
-- files/once --
once
`

// second is version 0.2.0, in which a file and a parameter have new names, and the texts differ.
var second = strings.NewReplacer("version: 0.1.0", "version: 0.2.0", "path: owned.yml", "path: conf/owned.yml",
	"name: name,", "name: title,", ".name ]]", ".title ]]", "all: one", "all: two", "c\nd\ne",
	"c\nd\nE").Replace(first) + `-- migrations.yaml --
migrations:
- to: 0.2.0
  notes: [The name is the title.]
  rename: {owned.yml: conf/owned.yml}
  renameParameters: {name: title}
`

func putArchive(t *testing.T, dir, archive string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		repotest.WriteFile(t, dir, f.Name, string(f.Data))
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// bench contains a repository and the folder of its convention.
type bench struct {
	t                *testing.T
	dir, conventions string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	repotest.Isolate(t)
	b := &bench{t, t.TempDir(), t.TempDir()}
	repotest.Git(t, b.dir, "init", "--quiet")
	repotest.WriteFile(t, b.dir, "Makefile", "mine:\n")
	b.commit()
	putArchive(t, b.conventions, first)
	return b
}

func (b *bench) commit() {
	b.t.Helper()
	repotest.Git(b.t, b.dir, "add", "--all")
	repotest.Git(b.t, b.dir, "commit", "--quiet", "--allow-empty", "--message=by hand")
}

// subscribed returns a bench with the first version.
func subscribed(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	repotest.WriteFile(t, b.dir, subscription.File,
		"# Ours.\napiVersion: boilerplate.bellwether.dev/v1alpha1\nkind: Subscription\n"+
			"conventions:\n  - {name: org, source: "+b.conventions+"}\nparameters:\n  name: echo\n")
	if result := b.must(Options{}); result.Commit == "" {
		t.Fatal("no commit")
	}
	return b
}

func (b *bench) open() *Repository {
	b.t.Helper()
	r, err := Open(b.dir, source.Loader{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = r.Tree.Close() })
	return r
}

func (b *bench) plan(o Options) (*Repository, *Proposal, error) {
	b.t.Helper()
	r := b.open()
	o.Now = now
	p, err := r.Plan(b.t.Context(), o)
	return r, p, err
}

func (b *bench) update(o Options) (Result, error) {
	b.t.Helper()
	r, p, err := b.plan(o)
	if err != nil {
		return Result{}, err
	}
	if len(p.Plan.Refusals) > 0 || len(p.Changes) == 0 {
		return Result{}, nil
	}
	return r.Apply(b.t.Context(), p, true)
}

func (b *bench) must(o Options) Result {
	b.t.Helper()
	result, err := b.update(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *bench) clean() {
	b.t.Helper()
	if got := repotest.Git(b.t, b.dir, "status", "--porcelain"); got != "" {
		b.t.Errorf("not clean: %s", got)
	}
	findings, err := b.open().Check(now)
	if err != nil || len(findings) > 0 {
		b.t.Errorf("check: %v, %v", findings, err)
	}
}

// TestUpdate applies the second version to a repository with permitted edits.
func TestUpdate(t *testing.T) {
	b := subscribed(t)
	b.clean()
	if got := read(t, b.dir, "Makefile"); got != "mine:\n\n# boilerplate:begin org\nall: one\n# boilerplate:end org\n" {
		t.Errorf("Makefile: %q", got)
	}
	if result := b.must(Options{}); result.Commit != "" {
		t.Error("a second update makes a commit")
	}
	repotest.WriteFile(t, b.dir, "Makefile", "more:\n"+read(t, b.dir, "Makefile"))
	repotest.WriteFile(t, b.dir, "merged.txt", "A\nb\nc\nd\ne\n")
	repotest.WriteFile(t, b.dir, "once.txt", "mine\n")
	b.commit()
	b.clean()
	putArchive(t, b.conventions, second)
	b.must(Options{})
	b.clean()
	for name, want := range map[string]string{
		"owned.yml": "", "merged.txt": "A\nb\nc\nd\nE\n", "once.txt": "mine\n",
		"conf/owned.yml": "# Code generated by bellwether boilerplate from convention org 0.2.0. DO NOT EDIT.\n" +
			"name: echo\n",
		"Makefile": "more:\nmine:\n\n# boilerplate:begin org\nall: two\n# boilerplate:end org\n",
	} {
		if got := read(t, b.dir, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if text := read(t, b.dir, subscription.File); !strings.HasPrefix(text, "# Ours.\n") ||
		!strings.Contains(text, "version: 0.2.0") || !strings.Contains(text, "title: echo") {
		t.Errorf("subscription:\n%s", text)
	}
	want := "Update boilerplate: org 0.1.0 to 0.2.0\n\nConventions:\n- org 0.1.0 to 0.2.0\n\nWhat is new:\n" +
		"- org 0.2.0: The name is the title.\n\nChanges:\n- update Makefile (shared, org)\n" +
		"- create conf/owned.yml (owned, org; renamed from owned.yml)\n- update merged.txt (merged, org)\n" +
		"- remove owned.yml (owned, org; renamed to conf/owned.yml)\n\n"
	if diff := cmp.Diff(want, repotest.Git(t, b.dir, "log", "-1", "--format=%B")); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	b.must(Options{Set: map[string]string{"title": "other"}})
	if got := read(t, b.dir, "conf/owned.yml"); !strings.HasSuffix(got, "name: other\n") {
		t.Errorf("another parameter: %q", got)
	}
	b.clean()
}

// TestMigrations checks that renames refer to the names before a version, independent of the order.
func TestMigrations(t *testing.T) {
	for range 20 { // the order of a map is random
		p := &planner{renames: map[string]string{}}
		p.next.Parameters = map[string]any{"a": 1, "b": 2}
		for _, m := range []convention.Migration{
			{Rename: map[string]string{"a": "b", "b": "c", "c": "a"},
				RenameParameters: map[string]string{"a": "b", "b": "a"}},
			{Rename: map[string]string{"b": "d", "new": "e"}, RenameParameters: map[string]string{"a": "c"}},
		} {
			p.applyMigration(m)
		}
		want := map[string]string{"a": "d", "b": "c", "c": "a", "new": "e"}
		if diff := cmp.Diff(want, p.renames); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]any{"b": 1, "c": 2}, p.next.Parameters); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// TestConflict resolves one conflict, and aborts another update with a conflict.
func TestConflict(t *testing.T) {
	b := subscribed(t)
	repotest.WriteFile(t, b.dir, "merged.txt", "a\nb\nc\nd\nmine\n")
	b.commit()
	putArchive(t, b.conventions, second)
	head := repotest.Git(t, b.dir, "rev-parse", "HEAD")
	for _, abort := range []bool{true, false} {
		result := b.must(Options{})
		if diff := cmp.Diff([]string{"merged.txt"}, result.Conflicts); diff != "" || result.Commit != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if repotest.Git(t, b.dir, "rev-parse", "HEAD") != head ||
			repotest.Git(t, b.dir, "diff", "--cached", "--name-only") != "" {
			t.Error("something is committed or staged")
		}
		if findings, err := b.open().Check(now); err != nil || len(findings) == 0 {
			t.Errorf("check: %v, %v", findings, err)
		}
		r := b.open()
		if _, err := r.Continue(t.Context()); !errors.Is(err, ErrConflicts) {
			t.Errorf("continue: %v", err)
		}
		if abort {
			if err := r.Tree.Abort(r.Journal); err != nil {
				t.Fatal(err)
			}
			b.clean()
			continue
		}
		repotest.WriteFile(t, b.dir, "merged.txt", "a\nb\nc\nd\nmine\nE\n")
		if result, err := r.Continue(t.Context()); err != nil || result.Commit == "" {
			t.Fatal(result, err)
		}
		b.clean()
		if result := b.must(Options{}); result.Commit != "" || len(result.Conflicts) > 0 {
			t.Errorf("the next update: %+v", result)
		}
	}
}

// TestInterrupted continues after a process was killed between writing and committing.
func TestInterrupted(t *testing.T) {
	b := subscribed(t)
	putArchive(t, b.conventions, second)
	r, p, err := b.plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tree.Begin(p.Changes, p.Message); err != nil {
		t.Fatal(err)
	}
	next := b.open()
	if result, err := next.Continue(t.Context()); err != nil || result.Commit == "" {
		t.Fatal(result, err)
	}
	b.clean()
	if got := repotest.Git(t, b.dir, "log", "-1", "--format=%s"); got != "Update boilerplate: org 0.1.0 to 0.2.0\n" {
		t.Errorf("got %q", got)
	}
}

// TestRefused checks that refused updates change no file.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench)
		want   error
	}{
		"an untracked file in the way": {func(b *bench) {
			repotest.WriteFile(t, b.dir, "conf/owned.yml", "mine\n")
		}, nil},
		"a modified file": {func(b *bench) { repotest.WriteFile(t, b.dir, "merged.txt", "a\nb\nc\nd\ne\nmine\n") },
			repository.ErrDirty},
		"something staged": {func(b *bench) {
			repotest.WriteFile(t, b.dir, "other", "mine\n")
			repotest.Git(t, b.dir, "add", "other")
		}, repository.ErrDirty},
		"no repository": {func(b *bench) {
			t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(b.dir))
			if err := os.RemoveAll(filepath.Join(b.dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, repository.ErrNotRepository},
		"a lower version": {func(b *bench) {
			text := read(t, b.conventions, convention.ManifestName)
			repotest.WriteFile(t, b.conventions, convention.ManifestName, strings.Replace(text, "0.2.0", "0.0.1", 1))
			repotest.WriteFile(t, b.conventions, convention.MigrationsName, "migrations: []\n")
		}, ErrNotNewer},
		"a value without a parameter": {func(b *bench) {
			text := strings.Replace(read(t, b.dir, subscription.File), "name: echo", "name: echo\n  other: 1", 1)
			repotest.WriteFile(t, b.dir, subscription.File, text)
		}, convention.ErrInvalid},
		"a link": {func(b *bench) {
			if err := errors.Join(os.Remove(filepath.Join(b.dir, "Makefile")), os.Symlink("once.txt",
				filepath.Join(b.dir, "Makefile"))); err != nil {
				t.Fatal(err)
			}
			b.commit()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := subscribed(t)
			putArchive(t, b.conventions, second)
			c.change(b)
			before := read(t, b.dir, "owned.yml") + read(t, b.dir, subscription.LockFile)
			result, err := b.update(Options{})
			if c.want == nil && (err != nil || result.Commit != "") || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %+v, %v, want %v", result, err, c.want)
			}
			if after := read(t, b.dir, "owned.yml") + read(t, b.dir, subscription.LockFile); after != before {
				t.Error("something was changed")
			}
			if _, err := b.open().Check(now); err != nil {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestEject(t *testing.T) {
	b := subscribed(t)
	r := b.open()
	if _, err := r.Eject("none"); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	p, err := r.Eject("org")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), p, true); err != nil {
		t.Fatal(err)
	}
	want := "Makefile\nmerged.txt\nonce.txt\nowned.yml\n"
	if got := repotest.Git(t, b.dir, "ls-files"); got != want || repotest.Git(t, b.dir, "status", "--porcelain") != "" {
		t.Errorf("files: %s", got)
	}
	if got := read(t, b.dir, "Makefile") + read(t, b.dir, "owned.yml"); got != "mine:\n\nall: one\nname: echo\n" {
		t.Errorf("got %q", got)
	}
	if _, err := Open(b.dir, source.Loader{}); !errors.Is(err, ErrNotSubscribed) {
		t.Errorf("got %v", err)
	}
}
