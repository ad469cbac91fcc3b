// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// newRepository is an empty repository with one commit.
func newRepository(t *testing.T) string {
	t.Helper()
	repotest.Isolate(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	repotest.Git(t, dir, "init", "--quiet", "--initial-branch=main")
	repotest.WriteFile(t, dir, "go.mod", "module example.org/echo\n")
	repotest.Git(t, dir, "add", "--all")
	repotest.Git(t, dir, "commit", "--quiet", "--message=first")
	return dir
}

const org = `apiVersion: boilerplate.bellwether.dev/v1alpha1
kind: Convention
name: org
version: VERSION
description: What our organisation does.
parameters: [{name: team, type: string, description: The team that owns the repository.}]
files:
- {path: team.yml, template: files/team.yml.tmpl, kind: owned}
- {path: Makefile, template: files/Makefile.tmpl, kind: shared}
- {path: list.txt, template: files/list.txt, kind: merged}
`

// putOrg writes a version of a convention.
func putOrg(t *testing.T, dir, version, line string) {
	t.Helper()
	for name, text := range map[string]string{"convention.yaml": strings.Replace(org, "VERSION", version, 1),
		"README.md": "# org\n", "files/team.yml.tmpl": "team: [[ .team ]]\nversion: " + version + "\n",
		"files/Makefile.tmpl": "# boilerplate:begin org\nteam:\n\t@echo [[ .team ]] " + line +
			"\n# boilerplate:end org\n",
		"files/list.txt": "a\n" + line + "\n"} {
		repotest.WriteFile(t, dir, name, text)
	}
}

// story runs commands, and notes what they print.
type story struct {
	t   *testing.T
	hub *clitest.Hub
	dir string
	// replace are texts that differ from run to run.
	replace *strings.Replacer
	text    strings.Builder
}

var (
	commit = regexp.MustCompile(`(Committed )[0-9a-f]{7,}`)
	// gap is what is between columns, which are as wide as the names of temporary folders.
	gap = regexp.MustCompile(`   +`)
)

func (s *story) run(want int, args ...string) string {
	s.t.Helper()
	full := append([]string{"boilerplate"}, args...)
	if !slices.Contains([]string{"list", "push", "fleet"}, args[0]) {
		full = append(full, "--dir", s.dir)
	}
	r := s.hub.Run(s.t, full...)
	if r.Code != want {
		s.t.Errorf("%v: exit %d, want %d\n%s%s", args, r.Code, want, r.Out, r.Err)
	}
	out := commit.ReplaceAllString(s.replace.Replace(r.Out+r.Err), "${1}COMMIT")
	out = gap.ReplaceAllString(out, "   ")
	s.text.WriteString("$ bellwether boilerplate " + s.replace.Replace(strings.Join(args, " ")) + "\n" + out)
	s.text.WriteString("# exit " + string(rune('0'+r.Code)) + "\n\n")
	return r.Out
}

func (s *story) say(text string) { s.text.WriteString("# " + text + "\n\n") }

// TestStory runs the commands of a repository's life, from init to eject. Their output is in a golden file.
func TestStory(t *testing.T) {
	dir, conventions := newRepository(t), t.TempDir()
	s := &story{t: t, hub: clitest.NewHub(), dir: dir, replace: strings.NewReplacer(dir, "DIR", conventions, "ORG")}
	putOrg(t, conventions, "0.1.0", "one")
	s.run(exit.Error, "update", "--yes")
	s.run(2, "check")
	s.run(exit.OK, "list", "--source", "org="+conventions)
	s.run(exit.OK, "list", "org", "--source", "org="+conventions)
	s.run(exit.Error, "init", "--convention", "org="+conventions)
	s.run(exit.Error, "init", "--convention", "none", "--yes")
	s.run(exit.OK, "init", "--convention", "org="+conventions, "--set", "team=sre", "--dry-run")
	s.run(exit.Error, "init", "--convention", "org="+conventions, "--set", "team=sre")
	s.run(exit.OK, "init", "--convention", "org="+conventions, "--set", "team=sre", "--yes")
	s.run(exit.Error, "init", "--convention", "go")
	s.run(exit.OK, "check")
	s.run(exit.OK, "update", "--yes")
	s.run(exit.OK, "status")
	s.say("An owned file and a region are edited.")
	repotest.WriteFile(t, dir, "team.yml", "team: mine\n")
	repotest.WriteFile(t, dir, "Makefile", "# boilerplate:begin org\nteam:\n\t@echo mine\n# boilerplate:end org\n")
	s.run(1, "check")
	s.run(1, "check", "-o", "github")
	s.run(exit.Error, "update", "--yes")
	repotest.Git(t, dir, "checkout", "--", ".")
	s.say("A new version, and a line of the user at the same place.")
	putOrg(t, conventions, "0.2.0", "two")
	repotest.WriteFile(t, dir, "list.txt", "a\nmine\n")
	s.run(exit.Error, "update", "--yes")
	repotest.Git(t, dir, "commit", "--quiet", "--all", "--message=mine")
	s.run(exit.OK, "status")
	s.run(exit.Failed, "update", "--yes")
	s.run(1, "check")
	s.run(exit.Error, "update", "--yes")
	s.run(exit.Error, "update", "--continue")
	s.run(exit.OK, "update", "--abort")
	s.run(exit.Failed, "update", "--yes")
	repotest.WriteFile(t, dir, "list.txt", "a\nmine\ntwo\n")
	s.run(exit.OK, "update", "--continue")
	s.run(exit.OK, "check")
	s.run(exit.Error, "update", "--continue")
	s.run(exit.OK, "eject", "org", "--yes")
	s.run(2, "check")
	s.compare("story.txt")
}

// compare compares all that was printed with a golden file.
func (s *story) compare(name string) {
	s.t.Helper()
	golden := filepath.Join("testdata", name)
	if *fixture.Update {
		if err := os.WriteFile(golden, []byte(s.text.String()), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), s.text.String()); diff != "" || err != nil {
		s.t.Errorf("%v (-want +got; write it with -update):\n%s", err, diff)
	}
}

// TestOutputs reads the output for programs.
func TestOutputs(t *testing.T) {
	dir := newRepository(t)
	s := &story{t: t, hub: clitest.NewHub(), dir: dir, replace: strings.NewReplacer()}
	s.run(exit.OK, "init", "--convention", "go", "--convention", "docs", "--convention", "ci-github", "--yes",
		"--set", "module=example.org/echo", "--set", "project=Echo", "--set", "approvers=anna")
	s.run(exit.OK, "check")
	repotest.WriteFile(t, dir, ".golangci.yml", "version: '2'\n")
	for format, read := range map[string]func(string) (int, error){
		"json": func(text string) (int, error) {
			var out struct{ Findings []map[string]any }
			err := json.Unmarshal([]byte(text), &out)
			return len(out.Findings), err
		},
		"sarif": func(text string) (int, error) {
			out, err := sarif.FromString(text)
			if err != nil {
				return 0, err
			}
			return len(out.Runs[0].Results), nil
		},
	} {
		if n, err := read(s.run(1, "check", "-o", format)); n != 1 || err != nil {
			t.Errorf("%s: %d findings, %v", format, n, err)
		}
	}
	var status struct{ Conventions []map[string]any }
	if err := json.Unmarshal([]byte(s.run(exit.OK, "status", "-o", "json")), &status); err != nil ||
		len(status.Conventions) != 3 {
		t.Errorf("status: %v, %v", status, err)
	}
	s.run(2, "check", "-o", "xml")
}

// TestRegistry subscribes to a pushed convention, and updates without the registry.
func TestRegistry(t *testing.T) {
	dir, conventions, registry := newRepository(t), t.TempDir(), clitest.StartLocalRegistry(t)
	s := &story{t: t, hub: clitest.NewHub(), dir: dir, replace: strings.NewReplacer()}
	putOrg(t, conventions, "0.1.0", "one")
	digest := strings.TrimSpace(s.run(exit.OK, "push", conventions, registry+"/org:0.1.0"))
	from := "oci://" + registry + "/org:0.1.0"
	s.run(exit.OK, "init", "--convention", "org="+from, "--set", "team=sre", "--yes")
	text, err := os.ReadFile(filepath.Join(dir, ".boilerplate.yaml"))
	if err != nil || !strings.Contains(string(text), digest) {
		t.Errorf("%v: no digest in\n%s", err, text)
	}
	putOrg(t, conventions, "0.2.0", "two")
	s.run(exit.OK, "push", conventions, registry+"/org:0.2.0")
	s.run(exit.OK, "status", "--remote")
	s.run(exit.OK, "update", "--yes", "--to", "0.2.0")
	s.run(exit.OK, "check")
	repotest.WriteFile(t, dir, ".boilerplate.yaml",
		strings.Replace(string(text), "conventions:", "keys: [cosign.pub]\nconventions:", 1))
	s.run(exit.Error, "update", "--yes") // there is no key
}
