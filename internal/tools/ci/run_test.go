// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ci tests the scripts in .ci.
package ci

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// makefile has the same steps as the repository's Makefile. The steps check the folder that they run in.
const makefile = `
test:
	@test "$$(ls -A ..)" = bellwether || { echo "beside the tree: $$(ls -A ..)"; exit 1; }
	@test ! -e uncommitted
	@pwd
	@echo "7 passed, 0 failed"
check:
	@echo a finding; exit 1
verify:
	@test "$$(git ls-files)" = "$$(printf '.ci/run\nMakefile')"
test-changed:
	@printf '%s\n' $(RESULT)
	@echo "2 passed, $(or $(FAILED),0) failed"
	@exit $(or $(FAILED),0)
race:
	@echo race ran
vuln:
	@echo not checked: no database
`

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		shallow bool
		env     []string
		taken   func(t *testing.T) int // the process that has the folder
	}{
		"a clone":                     {},
		"a shallow clone":             {shallow: true},
		"another user's clone":        {env: []string{"GIT_TEST_ASSUME_DIFFERENT_OWNER=1"}},
		"beside another run":          {taken: func(*testing.T) int { return os.Getpid() }},
		"after a run that was killed": {taken: endedProcess},
	} {
		t.Run(name, func(t *testing.T) {
			workspace, cache, temp := newWorkspace(t, c.shallow), t.TempDir(), t.TempDir()
			folder := filepath.Join(cache, "bellwether", "ci", "run")
			if c.taken != nil {
				writeFile(t, filepath.Join(folder, "pid"), strconv.Itoa(c.taken(t)))
			}
			steps := []string{"test", "check", "race", "vuln"}
			if c.env == nil { // git would refuse to list the files of the clone, too
				steps = append(steps, "verify")
			}
			env := append(c.env, "XDG_CACHE_HOME="+cache, "TMPDIR="+temp, "CC=true")
			out, status := runScript(t, workspace, env, steps...)
			if status != 1 {
				t.Errorf("got status %d, want 1", status)
			}
			_, summary, _ := strings.Cut(out, "=== summary")
			for _, step := range steps {
				verdict := map[string]string{"check": "FAILED", "vuln": "NOT"}[step]
				if verdict == "" {
					verdict = "passed"
				}
				if !hasLine(summary, verdict, step) {
					t.Errorf("the summary does not say that %s %s", step, verdict)
				}
			}
			for _, want := range []string{"failed: check\n", "not committed", "=== why check failed\na finding\n",
				filepath.Join("clone", "bellwether") + "\n"} {
				if !strings.Contains(out, want) {
					t.Errorf("the output has no %q", want)
				}
			}
			beside := name == "beside another run"
			if usual := strings.Contains(out, " in "+folder+"/clone/"); usual == beside {
				t.Errorf("the usual folder, %s, is used: %t", folder, usual)
			}
			left, _ := filepath.Glob(filepath.Join(folder, "*"))
			more, _ := filepath.Glob(filepath.Join(temp, "*"))
			if left = append(left, more...); len(left) != 0 && !beside || len(left) != 1 && beside { // the other's pid
				t.Errorf("left over: %v", left)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// TestRunRecordsWhatPassed fails when a tree is recorded that was not tested as a whole.
func TestRunRecordsWhatPassed(t *testing.T) {
	for name, c := range map[string]struct {
		env      []string
		steps    []string
		status   int
		recorded bool
		last     string // what the output ends with
	}{
		"everything passed": {
			env: []string{"RESULT='ok a' 'FLAKY b TestB'"}, recorded: true, last: "\n9 passed, 0 failed\n",
		},
		"one step": {steps: []string{"test"}, last: "\n7 passed, 0 failed\n"},
		"something did not run": {
			env: []string{"RESULT='NOT RUN a'"}, last: "NOT RUN a\n9 passed, 0 failed\n",
		},
		"a test failed": {
			env: []string{"FAILED=1", "RESULT='long ago' '=== failures' 'a TestA' '    why'"}, status: 1,
			last: "failed: cluster\n9 passed, 1 failed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache, workspace := t.TempDir(), newWorkspace(t, false)
			mendCheck(t, workspace)
			out, status := runScript(t, workspace, append(c.env, "XDG_CACHE_HOME="+cache), c.steps...)
			if status != c.status {
				t.Errorf("got status %d, want %d", status, c.status)
			}
			want := ""
			if c.recorded {
				want = git(t, workspace, "rev-parse", "HEAD^{tree}")
			}
			if got, _ := os.ReadFile(filepath.Join(cache, "bellwether", "ci", "passed")); string(got) != want {
				t.Errorf("recorded %q, want %q", got, want)
			}
			if !strings.HasSuffix(out, c.last) {
				t.Errorf("the output does not end with %q", c.last)
			}
			if c.status != 0 && !strings.Contains(out, "=== why cluster failed\na TestA\n    why\n") {
				t.Error("the output does not say why")
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
	if out, status := runScript(t, newWorkspace(t, false), nil, "nothing"); status != 2 {
		t.Errorf("an unknown step: got status %d:\n%s", status, out)
	}
}

// mendCheck has the step "check" pass.
func mendCheck(t *testing.T, workspace string) {
	t.Helper()
	writeFile(t, filepath.Join(workspace, "Makefile"), strings.Replace(makefile, "@echo a finding; exit 1", "@true", 1))
	git(t, workspace, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "two",
		"Makefile")
}

// newWorkspace is a clone with the script, one commit, and a file that is not committed.
func newWorkspace(t *testing.T, shallow bool) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("..", "..", "..", ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "workspace")
	writeFile(t, filepath.Join(dir, ".ci", "run"), string(script))
	writeFile(t, filepath.Join(dir, "Makefile"), makefile)
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "--all")
	git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "one")
	if shallow {
		from := dir
		dir = filepath.Join(t.TempDir(), "shallow")
		git(t, from, "clone", "--quiet", "--depth", "1", "file://"+from, dir)
	}
	writeFile(t, filepath.Join(dir, "uncommitted"), "")
	writeFile(t, filepath.Join(filepath.Dir(dir), "beside"), "")
	return dir
}

func runScript(t *testing.T, workspace string, env []string, steps ...string) (out string, status int) {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(),
		"bash",
		append([]string{filepath.Join(workspace, ".ci", "run")}, steps...)...)
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir()), env...)
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// hasLine is whether some line begins with the first word and ends with the last.
func hasLine(text, first, last string) bool {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == first && words[len(words)-1] == last {
			return true
		}
	}
	return false
}

func endedProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
