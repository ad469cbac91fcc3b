// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func isThere(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(repotest.Git(t, dir, args...))
}

func remoteHas(t testing.TB, dir, branch string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	cmd.Dir = dir
	return cmd.Run() == nil
}

// convention returns version VERSION of a convention.
const convention = `apiVersion: boilerplate.bellwether.dev/v1alpha1
kind: Convention
name: org
version: VERSION
description: For tests.
files:
- {path: owned.yml, template: files/owned.yml, kind: owned}
- {path: list.txt, template: files/list.txt, kind: merged}
`

// fixture is a fleet whose repositories have version 0.1.0 of a convention; the sources have 0.2.0.
type fixture struct {
	*Fleet
	t      testing.TB
	server *server
	// dir contains the bare repositories, and conventions contains the convention.
	dir, conventions string
	all              []Repository
}

func newFixture(t *testing.T, names ...string) *fixture {
	t.Helper()
	repotest.Isolate(t)
	f := &fixture{t: t, dir: t.TempDir(), conventions: t.TempDir()}
	f.Fleet = &Fleet{Work: t.TempDir(), Parallel: 4, Now: now, Done: func(any) {}}
	f.server, f.GitHub = startGitHub(t, f.dir)
	f.version("0.1.0", "one")
	for _, name := range names {
		f.add(name)
	}
	f.version("0.2.0", "two")
	return f
}

// version writes a version of the convention.
func (f *fixture) version(version, line string) {
	f.t.Helper()
	for name, text := range map[string]string{"convention.yaml": strings.Replace(convention, "VERSION", version, 1),
		"README.md": "# org\n", "files/owned.yml": "line: " + line + "\n", "files/list.txt": "a\n" + line + "\n"} {
		repotest.WriteFile(f.t, f.conventions, name, text)
	}
}

// remote returns the path of a repository.
func (f *fixture) remote(name string) string { return filepath.Join(f.dir, "acme", name+".git") }

// add creates a repository that subscribes to the current version of the convention.
func (f *fixture) add(name string) {
	f.t.Helper()
	bare := f.remote(name)
	if err := os.MkdirAll(bare, 0o750); err != nil {
		f.t.Fatal(err)
	}
	git(f.t, bare, "init", "--quiet", "--bare", "--initial-branch=main")
	f.all = append(f.all, Repository{Name: name, Source: "file://" + bare, Labels: []string{"team-a"}})
	f.commit(name, func(dir string) {
		repotest.WriteFile(f.t, dir, subscription.File,
			"apiVersion: boilerplate.bellwether.dev/v1alpha1\nkind: Subscription\n"+
				"conventions:\n  - {name: org, source: '"+f.conventions+"'}\n")
		git(f.t, dir, "add", "--all")
		git(f.t, dir, "commit", "--quiet", "--message=subscribe")
		r, err := run.Open(dir, source.Loader{})
		if err != nil {
			f.t.Fatal(err)
		}
		defer func() { _ = r.Tree.Close() }()
		p, err := r.Plan(f.t.Context(), run.Options{Now: now})
		if err == nil {
			_, err = r.Apply(f.t.Context(), p, true)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	})
}

// commit pushes a change of another user to main.
func (f *fixture) commit(name string, change func(dir string)) {
	f.t.Helper()
	f.commitTo(name, "main", change)
}

func (f *fixture) commitTo(name, branch string, change func(dir string)) {
	f.t.Helper()
	dir := f.t.TempDir()
	git(f.t, dir, "clone", "--quiet", f.remote(name), ".")
	if remoteHas(f.t, f.remote(name), branch) {
		git(f.t, dir, "checkout", "--quiet", branch)
	} else {
		git(f.t, dir, "checkout", "--quiet", "-b", branch)
	}
	change(dir)
	git(f.t, dir, "add", "--all")
	git(f.t, dir, "commit", "--quiet", "--allow-empty", "--message=by hand")
	git(f.t, dir, "push", "--quiet", "origin", "HEAD:"+branch)
}

func (f *fixture) update() []Update {
	f.t.Helper()
	return f.Update(f.t.Context(), f.all)
}

// expect updates one repository, and compares the outcome.
func (f *fixture) expect(outcome string) Update {
	f.t.Helper()
	u := f.update()[0]
	if u.Outcome != outcome {
		f.t.Fatalf("got %s, want %s", u, outcome)
	}
	return u
}

// branch returns the commit of the branch of an update, or of another branch; empty if there is none.
func (f *fixture) branch(name, branch string) string {
	f.t.Helper()
	if branch == "" {
		branch = "boilerplate/*"
	}
	return git(f.t, f.remote(name), "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

func (f *fixture) show(name, object string) string {
	f.t.Helper()
	return git(f.t, f.remote(name), "show", object)
}

// TestUpdate covers all states of a pull request.
func TestUpdate(t *testing.T) {
	f := newFixture(t, "echo")
	f.DryRun = true
	if u := f.expect(Planned); f.branch("echo", "") != "" || len(f.server.requests) > 0 || u.Head == "" {
		t.Error("a dry run writes")
	}
	f.DryRun = false
	u := f.expect(Opened)
	p := f.server.pulls[0]
	want := pull{Number: 1, State: "open", Title: "Update boilerplate: org 0.1.0 to 0.2.0", HTMLURL: u.PullRequest,
		Labels: []named{{"boilerplate"}, {"team-a"}}, Head: ref{Ref: "boilerplate/main"}, Base: ref{Ref: "main"},
		repo: "acme/echo", Body: p.Body}
	if diff := cmp.Diff(want, *p, cmp.AllowUnexported(pull{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{"- org 0.1.0 to 0.2.0\n", "- update owned.yml (owned, org)\n", "fleet update"} {
		if !strings.Contains(p.text(), line) {
			t.Errorf("no %q in:\n%s", line, p.Body)
		}
	}
	if got := f.show("echo", u.Head+":list.txt"); got != "a\ntwo" {
		t.Errorf("list.txt: %q", got)
	}
	first, writes := f.branch("echo", ""), f.server.writes
	f.expect(Unchanged)
	if f.branch("echo", "") != first || f.server.writes != writes {
		t.Error("a second update changes something")
	}
	f.commit("echo", func(dir string) { repotest.WriteFile(t, dir, "other", "mine\n") })
	f.expect(Refreshed)
	if got := git(t, f.remote("echo"), "rev-list", "--count", "main.."+u.Head); got != "1" {
		t.Errorf("the branch has %s commits", got)
	}
	p.Title, p.Labels = "Another title", nil
	f.expect(Refreshed)
	if p.Title != want.Title || len(p.Labels) != 2 {
		t.Errorf("got %+v", p)
	}
	f.expect(Unchanged)

	// Another user pushes to the branch.
	f.commitTo("echo", u.Head, func(dir string) { repotest.WriteFile(t, dir, "more", "mine\n") })
	pushed := f.branch("echo", "")
	if u := f.expect(LeftAlone); f.branch("echo", "") != pushed || u.PullRequest == "" || u.Detail == "" {
		t.Errorf("got %s", u)
	}
	git(t, f.remote("echo"), "update-ref", "refs/heads/"+u.Head, pushed+"~1")
	f.expect(Unchanged)
	p.State = "closed"
	if u := f.expect(LeftAlone); !strings.Contains(u.Detail, "closed") {
		t.Errorf("got %s", u)
	}
}

// TestNewerVersions checks that a newer version uses the branch and the pull request of the older version. After the
// pull request was closed or merged, a new one is opened.
func TestNewerVersions(t *testing.T) {
	f := newFixture(t, "echo")
	open := func() (out []*pull) {
		for _, p := range f.server.pulls {
			if p.State == "open" {
				out = append(out, p)
			}
		}
		return out
	}
	first := f.expect(Opened)
	f.version("0.3.0", "three")
	if u := f.expect(Refreshed); len(open()) != 1 || u.PullRequest != first.PullRequest || u.Head != first.Head ||
		f.show("echo", u.Head+":list.txt") != "a\nthree" {
		t.Errorf("got %s", u)
	}
	p := f.server.pulls[0]
	if !strings.HasSuffix(p.Title, "0.1.0 to 0.3.0") || strings.Contains(p.Body, "0.2.0") {
		t.Errorf("got %+v", p)
	}
	p.State = "closed"
	f.expect(LeftAlone)
	f.version("0.4.0", "four")
	if u := f.expect(Opened); len(open()) != 1 || u.PullRequest != f.server.pulls[1].HTMLURL || u.Head != first.Head {
		t.Errorf("got %s", u)
	}
	// The branch remains after the merge, with a commit of another user.
	f.commitTo("echo", first.Head, func(dir string) { repotest.WriteFile(t, dir, "more", "mine\n") })
	f.expect(LeftAlone)
	f.server.merge(open()[0])
	f.expect(UpToDate)
	f.version("0.5.0", "five")
	if u := f.expect(Opened); len(open()) != 1 || f.show("echo", u.Head+":more") != "mine" {
		t.Errorf("got %s", u)
	}
	f.server.merge(open()[0])
	// The commit is in no pull request.
	f.commitTo("echo", first.Head, func(dir string) { repotest.WriteFile(t, dir, "later", "mine\n") })
	f.version("0.6.0", "six")
	if u := f.expect(LeftAlone); f.show("echo", u.Head+":later") != "mine" {
		t.Errorf("got %s", u)
	}
	git(t, f.remote("echo"), "update-ref", "-d", "refs/heads/"+first.Head)
	f.expect(Opened)
	f.commit("echo", func(dir string) {
		if err := os.Remove(filepath.Join(dir, "owned.yml")); err != nil {
			t.Fatal(err)
		}
	})
	f.expect(Refreshed)
}

// TestKilled continues after a process was killed.
func TestKilled(t *testing.T) {
	f := newFixture(t, "echo")
	u := f.expect(Opened)
	// Killed between the push and the pull request.
	f.server.pulls = nil
	f.expect(Opened)
	// Killed while git was running: locks, a partial file, an unfinished update, a broken object.
	clone := filepath.Join(f.Work, u.Name, "clone")
	for _, name := range []string{".git/index.lock", ".git/HEAD.lock", ".git/shallow.lock", ".boilerplate/update.tmp",
		"owned.yml", ".boilerplate/update.yaml"} {
		repotest.WriteFile(t, clone, name, "half")
	}
	f.expect(Unchanged)
	repotest.WriteFile(t, clone, ".git/HEAD", "")
	f.expect(Unchanged)
	if err := os.RemoveAll(f.Work); err != nil {
		t.Fatal(err)
	}
	f.expect(Unchanged)
	if len(f.server.pulls) != 1 {
		t.Errorf("%d pull requests", len(f.server.pulls))
	}
}

// TestConflict has a pull request with conflict markers until a user resolves the conflict.
func TestConflict(t *testing.T) {
	f := newFixture(t, "echo")
	f.commit("echo", func(dir string) { repotest.WriteFile(t, dir, "list.txt", "a\nmine\n") })
	u := f.expect(Opened)
	p := f.server.pulls[0]
	if diff := cmp.Diff([]string{"list.txt"}, u.Conflicts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(p.Title, " (with conflicts)") || len(p.Labels) != 3 ||
		!strings.Contains(p.text(), "this branch.\n- list.txt\n") {
		t.Errorf("got %+v", p)
	}
	if got := f.show("echo", u.Head+":list.txt"); !strings.Contains(got, "<<<<<<< list.txt (yours)\nmine\n") {
		t.Errorf("list.txt:\n%s", got)
	}
	if got := f.show("echo", u.Head+":.boilerplate"); strings.Contains(got, "update") {
		t.Errorf("the branch has an update in progress:\n%s", got)
	}
	f.expect(Unchanged)
	f.commit("echo", func(dir string) { repotest.WriteFile(t, dir, "list.txt", "a\none\n") })
	if u := f.expect(Refreshed); len(u.Conflicts) > 0 || len(p.Labels) != 2 || strings.Contains(p.Body, "markers") ||
		strings.Contains(p.Title, "conflicts") {
		t.Errorf("got %s with %+v", u, p)
	}
}

// TestFailures has a repository for each reason why an update fails, and one repository that is updated.
func TestFailures(t *testing.T) {
	f := newFixture(t, "echo", "gone", "edited", "begun", "none")
	if err := os.RemoveAll(f.remote("gone")); err != nil {
		t.Fatal(err)
	}
	f.commit("edited", func(dir string) { repotest.WriteFile(t, dir, "owned.yml", "mine\n") })
	f.commit("begun", func(dir string) {
		repotest.WriteFile(t, dir, ".boilerplate/update.yaml", "kind: Update\nchanges: []\n")
	})
	f.commit("none", func(dir string) { git(t, dir, "rm", "--quiet", ".boilerplate.yaml") })
	f.all = append(f.all, Repository{Name: "branch", Source: "file://" + f.remote("echo"), Branch: "none"},
		Repository{Name: "folder", Source: filepath.Join(t.TempDir(), "none")})
	want := []struct{ outcome, detail string }{{Opened, ""}, {Failed, "does not"}, {Refused, "owned.yml: it was"},
		{Failed, "somebody has committed .boilerplate/update.yaml"}, {Failed, "subscribes to no conventions"},
		{Failed, "refs/heads/none"}, {Failed, "no such file"}}
	for i, u := range f.update() {
		if u.Outcome != want[i].outcome || !strings.Contains(u.Detail, want[i].detail) {
			t.Errorf("got %s, want %v", u, want[i])
		}
	}
	for i, s := range f.Status(t.Context(), f.all) {
		if i != 0 && i != 2 && i != 3 && s.Error == "" {
			t.Errorf("status: got %+v", s)
		}
	}
}

// TestTwoFleets updates the same repositories twice at the same time, with the same and with separate clones.
func TestTwoFleets(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	f := newFixture(t, names...)
	second, third := *f.Fleet, *f.Fleet
	third.Work = t.TempDir()
	var group sync.WaitGroup
	for _, fleet := range []*Fleet{f.Fleet, &second, &third} {
		group.Go(func() {
			for _, u := range fleet.Update(t.Context(), f.all) {
				if u.Outcome != Opened && u.Outcome != Unchanged && u.Outcome != Refreshed {
					t.Errorf("got %s", u)
				}
			}
		})
	}
	group.Wait()
	if len(f.server.pulls) != len(names) {
		t.Errorf("%d pull requests", len(f.server.pulls))
	}
}

// TestLocalClones updates the remote of a local clone, and does not change the clone. No program of a repository runs.
func TestLocalClones(t *testing.T) {
	f := newFixture(t, "echo")
	marker := filepath.Join(t.TempDir(), "ran")
	clone, other := filepath.Join(t.TempDir(), "echo"), filepath.Join(t.TempDir(), "acme", "other")
	git(t, f.dir, "clone", "--quiet", f.remote("echo"), clone)
	git(t, f.dir, "clone", "--quiet", f.remote("echo"), other) // from which it is pushed to a folder with a work tree
	git(t, other, "remote", "set-url", "origin", other)
	for _, dir := range []string{clone, other, f.remote("echo")} {
		hooks := filepath.Join(git(t, dir, "rev-parse", "--absolute-git-dir"), "hooks")
		for _, hook := range []string{"pre-push", "pre-commit", "post-checkout", "pre-receive", "update",
			"post-receive", "post-update", "reference-transaction", "commit-msg"} {
			repotest.WriteFile(t, hooks, hook, "#!/bin/sh\ntouch "+marker+"\n")
			if err := os.Chmod(filepath.Join(hooks, hook), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		git(t, dir, "config", "core.fsmonitor", "touch "+marker)
	}
	_ = os.Remove(marker)
	repotest.WriteFile(t, clone, "dirty", "mine\n")
	f.GitHub, f.Command = nil, "true"
	f.all = []Repository{{Name: "clone", Source: clone}, {Name: "other", Source: other}}
	for _, u := range f.update() {
		if u.Outcome != Opened {
			t.Errorf("got %s", u)
		}
	}
	for _, s := range f.Status(t.Context(), f.all) {
		if s.Error != "" || len(s.Conventions) != 1 || !s.Conventions[0].IsBehind() {
			t.Errorf("got %+v", s)
		}
	}
	if isThere(marker) {
		t.Error("something of a repository has run")
	}
	if f.branch("echo", "") == "" || git(t, clone, "branch", "--format=%(refname:short)") != "main" ||
		git(t, other, "branch", "--format=%(refname:short)", "--list", "boilerplate/*") == "" {
		t.Error("the branches are not where they should be")
	}
	if got := git(t, other, "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no"); got != "" {
		t.Errorf("the work tree has changed: %s", got)
	}
}

// TestCommand checks that the user's command runs once for each push, and again after it has failed.
func TestCommand(t *testing.T) {
	f := newFixture(t, "echo")
	log := filepath.Join(t.TempDir(), "log")
	f.GitHub, f.Command = nil, "false"
	if u := f.expect(Failed); !strings.Contains(u.Detail, "the command failed: exit status 1") {
		t.Errorf("got %s", u)
	}
	f.Command = `echo "$BOILERPLATE_OUTCOME $BOILERPLATE_BASE $BOILERPLATE_LABELS: $BOILERPLATE_TITLE" >> ` + log +
		`; grep -q "org 0.1.0 to 0.2.0" "$BOILERPLATE_BODY_FILE"; git rev-parse HEAD; echo https://forge.example.com/1`
	if u := f.expect(Unchanged); u.PullRequest != "https://forge.example.com/1" {
		t.Errorf("got %s", u)
	}
	f.expect(Unchanged)
	f.commit("echo", func(dir string) { repotest.WriteFile(t, dir, "other", "mine\n") })
	f.expect(Refreshed)
	head := git(t, f.remote("echo"), "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/boilerplate")
	f.commitTo("echo", head, func(dir string) { repotest.WriteFile(t, dir, "more", "mine\n") })
	f.expect(LeftAlone)
	got, err := os.ReadFile(log)
	want := "unchanged main boilerplate,team-a: Update boilerplate: org 0.1.0 to 0.2.0\n"
	want += strings.Replace(want, "unchanged", "refreshed", 1)
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestCRLF updates a repository whose files have CR LF line endings.
func TestCRLF(t *testing.T) {
	f := newFixture(t, "echo")
	f.commit("echo", func(dir string) {
		repotest.WriteFile(t, dir, "list.txt", "a\r\none\r\n")
		repotest.WriteFile(t, dir, "owned.yml", strings.ReplaceAll(f.show("echo", "main:owned.yml")+"\n", "\n", "\r\n"))
	})
	u := f.expect(Opened)
	if got := f.show("echo", u.Head+":list.txt"); got != "a\r\ntwo" {
		t.Errorf("list.txt: %q", got)
	}
	if got := f.show("echo", u.Head+":owned.yml"); !strings.HasSuffix(got, ".\r\nline: two") {
		t.Errorf("owned.yml: %q", got)
	}
	f.expect(Unchanged)
}

func TestRead(t *testing.T) {
	const start = "apiVersion: boilerplate.bellwether.dev/v1alpha1\nkind: Repositories\nrepositories:\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "repositories.yaml")
	repotest.WriteFile(t, dir, "repositories.yaml", start+"- source: https://github.com/acme/echo.git\n  labels: [a]\n"+
		"- {source: 'git@github.com:acme/cache.git', branch: main}\n- {source: ./clones/third, name: other}\n")
	got, err := Read(file)
	want := []Repository{{Name: "echo", Source: "https://github.com/acme/echo.git", Labels: []string{"a"}},
		{Name: "cache", Source: "git@github.com:acme/cache.git", Branch: "main"},
		{Name: "other", Source: filepath.Join(dir, "clones", "third")}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, text := range map[string]string{"another kind": strings.Replace(start, "Repositories", "Lock", 1),
		"an unknown field": start + "- {source: a, run: make}\n",
		"a name twice":     start + "- source: a/x\n- source: b/X.git\n",
		"a password":       start + "- source: https://anna:secret@github.com/acme/echo.git\n",
		"no source":        start + "- {name: a}\n", "a name that leads out": start + "- {source: a, name: ../b}\n"} {
		repotest.WriteFile(t, dir, "repositories.yaml", text)
		if _, err := Read(file); !errors.Is(err, subscription.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Read(file + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestStatus(t *testing.T) {
	f := newFixture(t, "echo")
	f.commit("echo", func(dir string) {
		text, err := os.ReadFile(filepath.Join(dir, subscription.File))
		if err != nil {
			t.Fatal(err)
		}
		exceptions := "exceptions:\n- {path: owned.yml, reason: ours, expires: 2026-11-30}\n"
		repotest.WriteFile(t, dir, subscription.File, string(text)+exceptions)
		repotest.WriteFile(t, dir, "owned.yml", "mine\n")
	})
	s := f.Status(t.Context(), f.all)[0]
	if s.Error != "" || s.Conventions[0].Version != "0.1.0" || s.Conventions[0].Newest != "0.2.0" || s.Findings != 0 ||
		s.Exceptions[0].DaysLeft != 2 {
		t.Errorf("got %+v, %+v", s, s.Status)
	}
	if got := fmt.Sprint(f.server.requests); got != "[]" {
		t.Errorf("asked GitHub: %s", got)
	}
}
