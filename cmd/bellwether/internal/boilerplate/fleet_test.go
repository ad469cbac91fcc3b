// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// TestFleet runs the commands for two repositories. Their output is in a golden file.
func TestFleet(t *testing.T) {
	first, conventions, work := newRepository(t), t.TempDir(), t.TempDir()
	t.Setenv("GITHUB_TOKEN", "")
	s := &story{t: t, hub: clitest.NewHub(), dir: first}
	putOrg(t, conventions, "0.1.0", "one")
	s.replace = strings.NewReplacer()
	s.run(exit.OK, "init", "--convention", "org="+conventions, "--set", "team=sre", "--yes")
	second := filepath.Join(t.TempDir(), "second")
	repotest.Git(t, first, "clone", "--quiet", "--bare", ".", first+".git")
	t.Cleanup(func() { _ = os.RemoveAll(first + ".git") })
	repotest.Git(t, first, "remote", "add", "origin", first+".git")
	repotest.Git(t, first, "clone", "--quiet", "--bare", ".", second+".git")
	repotest.Git(t, first, "clone", "--quiet", second+".git", second)
	repotest.WriteFile(t, second, "list.txt", "a\nmine\n")
	repotest.Git(t, second, "commit", "--quiet", "--all", "--message=mine")
	repotest.Git(t, second, "push", "--quiet")
	repos := filepath.Join(work, "repositories.yaml")
	repotest.WriteFile(t, work, "repositories.yaml",
		"apiVersion: boilerplate.bellwether.dev/v1alpha1\nkind: Repositories\n"+
			"repositories:\n- {name: first, source: '"+first+"'}\n- {name: second, source: 'file://"+second+".git'}\n"+
			"- {name: third, source: ./none}\n")
	putOrg(t, conventions, "0.2.0", "two")
	s.text.Reset()
	s.replace = strings.NewReplacer(first, "FIRST", second, "SECOND", conventions, "ORG", work, "WORK")
	fleet := func(want int, args ...string) string {
		t.Helper()
		return s.run(want, append([]string{"fleet", args[0], "--repos", repos, "--work", work, "--parallel", "1"},
			args[1:]...)...)
	}
	fleet(exit.Error, "status", "-o", "wide")
	fleet(exit.Error, "status", "-o", "markdown")
	fleet(exit.Error, "update", "--dry-run", "-o", "wide")
	fleet(exit.Error, "update", "--yes") // there is no token
	fleet(exit.Error, "update", "--open-with", "true")
	fleet(exit.Error, "update", "-o", "wide", "--yes", "--open-with",
		"echo https://forge.example.com/$BOILERPLATE_OUTCOME")
	repotest.WriteFile(t, work, "repositories.yaml",
		strings.Replace(read(t, repos), "- {name: third, source: ./none}\n", "", 1))
	fleet(exit.OK, "status")
	fleet(exit.Failed, "update", "--yes", "--open-with", "false")
	var out struct {
		Repositories []struct{ Name, Outcome, Head string }
	}
	text := fleet(exit.Failed, "update", "--yes", "--open-with", "false", "-o", "json")
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.Repositories) != 2 ||
		out.Repositories[0].Head == "" {
		t.Errorf("%v: %+v", err, out)
	}
	s.compare("fleet.txt")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
