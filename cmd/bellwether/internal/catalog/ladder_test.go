// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/catalog"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// inLadders runs the commands in a folder with the bundles 1.0.0, 1.1.0 and 1.2.0 of the echo operator and no ladder,
// so that paths in what they print are short. BELLWETHER_CACHE is set, so that no cache of the user's is touched.
func inLadders(t *testing.T) *clitest.Hub {
	t.Helper()
	dir := t.TempDir()
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		path := filepath.Join(dir, "ladders", "bundles", version)
		if err := catalogtest.WriteBundleDir(path, "echo-operator", version, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("BELLWETHER_CACHE", filepath.Join(dir, "cache"))
	return clitest.NewHub()
}

// withVersions has 1.0.0 in stable, and 1.1.0 and 1.2.0 in candidate.
func withVersions(t *testing.T) *clitest.Hub {
	t.Helper()
	h := inLadders(t)
	h.MustRun(t, "catalog", "init", "ladders", "--package", "echo-operator")
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		h.MustRun(t, "catalog", "add", "ladders", "ladders/bundles/"+version, "--no-lint")
	}
	h.MustRun(t, "catalog", "promote", "ladders", "1.0.0", "--to", "stable")
	return h
}

func TestLadderCommandsSayWhatChanges(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "ladder.txt"))
	if err != nil {
		t.Fatal(err)
	}
	h := inLadders(t)
	var text strings.Builder
	for _, line := range []string{
		"catalog init ladders --package echo-operator",
		"catalog init ladders --package echo-operator",
		"catalog add ladders ladders/bundles/1.0.0 --no-lint",
		"catalog add ladders ladders/bundles/1.0.0 --no-lint",
		"catalog promote ladders 1.0.0 --to stable",
		"catalog add ladders/echo-operator.yaml ladders/bundles/1.1.0 --no-lint",
		"catalog promote ladders 1.1.0 --dry-run",
		"catalog promote ladders 1.1.0 --to stabel",
		"catalog promote ladders 1.1.0 --to stable",
		"catalog promote ladders 1.3.0",
		"catalog block ladders 1.1.0",
		"catalog block ladders 1.1.0 --reason leaks --expires 2026-11-01",
		"catalog block ladders 1.1.0 --reason leaks --expires 2026-12-31 --instead 1.0.0",
		"catalog compile ladders out",
		"catalog compile ladders out --check",
		"catalog retire ladders 1.0.0",
		"catalog add ladders ladders/bundles/1.2.0 --no-lint --channel stable",
		"catalog compile ladders out --check",
		"catalog compile ladders out",
		"catalog unblock ladders 1.1.0",
		"catalog unblock ladders 1.1.0",
		"catalog deprecate ladders --version 1.0.0 --message old",
		"catalog deprecate ladders --channel fast",
		"catalog retire ladders 1.0.0 --reason old",
		"catalog compile ladders out",
		"catalog compile out out2",
		"catalog compile nowhere out",
	} {
		r := h.Run(t, strings.Fields(line)...)
		text.WriteString("$ bellwether " + line + "\n" + r.Out + r.Err)
		if r.Code != exit.OK {
			text.WriteString("[exit " + string(rune('0'+r.Code)) + "]\n")
		}
		text.WriteString("\n")
	}
	ladderText, err := os.ReadFile("ladders/echo-operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := text.String() + "$ cat ladders/echo-operator.yaml\n" + string(ladderText)
	if *fixture.Update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	h := withVersions(t)
	before, err := os.ReadFile("ladders/echo-operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"promote ladders 1.1.0", "block ladders 1.1.0 --reason x", "retire ladders 1.1.0",
		"deprecate ladders --package --message x"} {
		r := h.MustRun(t, append([]string{"catalog"}, strings.Fields(line+" --dry-run")...)...)
		if !strings.HasPrefix(r.Out, "Dry run: ladders/echo-operator.yaml would not be written.") {
			t.Errorf("%s says\n%s", line, r.Out)
		}
	}
	after, err := os.ReadFile("ladders/echo-operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Error(diff)
	}
}

func TestLadderCommandsInJSON(t *testing.T) {
	h := withVersions(t)
	var change catalog.LadderChange
	r := h.MustRun(t, "catalog", "block", "ladders", "1.2.0", "--reason", "leaks", "-o", "json")
	if err := json.Unmarshal([]byte(r.Out), &change); err != nil {
		t.Fatal(err)
	}
	if change.File != "ladders/echo-operator.yaml" || len(change.Changes.Channels) != 1 || len(change.Waiting) != 1 {
		t.Errorf("it printed %s", r.Out)
	}
	var report folder.Report
	r = h.MustRun(t, "catalog", "compile", "ladders", "out", "-o", "json")
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Changed() || len(report.Packages[0].Channels) != 3 {
		t.Errorf("it printed %s", r.Out)
	}
}

func TestCompileAsksTheHub(t *testing.T) {
	withVersions(t)
	h := clitest.NewHub(runs("a", "echo-operator", "0.5.0"), runs("b", "echo-operator", "7.0.0"),
		runs("c", "other", "9.0.0"))
	r := h.MustRun(t, "catalog", "compile", "ladders", "out", "--hub")
	if !strings.Contains(r.Out, "from 7.0.0 (echo-operator.v7.0.0): it is higher than the head 1.0.0") ||
		strings.Contains(r.Out, "0.5.0") || strings.Contains(r.Out, "9.0.0") {
		t.Errorf("it says of what is installed\n%s", r.Out)
	}
}

func TestCompileComparesWithWhatIsPublished(t *testing.T) {
	h := withVersions(t)
	h.MustRun(t, "catalog", "compile", "ladders", "published")
	text, err := os.ReadFile("ladders/echo-operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Somebody deletes a version by hand.
	lost := strings.Replace(string(text), "- version: 1.1.0\n  path: bundles/1.1.0\n  channel: candidate\n", "", 1)
	if lost == string(text) {
		t.Fatalf("1.1.0 is not in\n%s", text)
	}
	if err := os.WriteFile("ladders/echo-operator.yaml", []byte(lost), 0o600); err != nil {
		t.Fatal(err)
	}
	r := h.Run(t, "catalog", "compile", "ladders", "out", "--previous", "published")
	if r.Code != catalog.ExitTrouble || !strings.Contains(r.Err,
		"bundle echo-operator.v1.1.0, version 1.1.0, was offered and is no longer in the ladder") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if entries, err := os.ReadDir("out"); err == nil && len(entries) > 0 {
		t.Errorf("it has written %v", entries)
	}
}

func TestAddLintsFirst(t *testing.T) {
	h := inLadders(t)
	h.MustRun(t, "catalog", "init", "ladders", "--package", "echo-operator")
	if err := os.Remove("ladders/bundles/1.0.0/manifests/crd.yaml"); err != nil {
		t.Fatal(err)
	}
	r := h.Run(t, "catalog", "add", "ladders", "ladders/bundles/1.0.0")
	if r.Code == exit.OK || !strings.Contains(r.Err, "version 1.0.0 is not added: the bundle has ") ||
		!strings.Contains(r.Err, "--no-lint") {
		t.Errorf("a bundle with errors: %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if f, err := folder.Load("ladders/echo-operator.yaml"); err != nil || len(f.Ladder.Bundles) > 0 {
		t.Errorf("it was added (%v)", err)
	}
}

func TestAddRefuses(t *testing.T) {
	h := withVersions(t)
	for name, c := range map[string]struct{ prepare, line, want string }{
		"another package's bundle": {"other/bundles/1.0.0", "add ladders/echo-operator.yaml other/bundles/1.0.0",
			`package "other" in the bundle`},
		"no ladder": {"ladders/bundles/x", "add ladders ladders/bundles/x",
			`no ladder file for package "other" in ladders`},
		"a folder elsewhere": {"", "add ladders elsewhere --no-lint",
			"is not below ladders, the folder of the ladder file"},
		"no bundle":        {"", "add ladders ladders", "not a registry+v1 bundle"},
		"no such registry": {"", "add ladders 127.0.0.1:1/bundle:1.0.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.prepare != "" {
				if err := catalogtest.WriteBundleDir(c.prepare, "other", "1.0.0", 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := catalogtest.WriteBundleDir("elsewhere", "echo-operator", "1.3.0", 0); err != nil {
				t.Fatal(err)
			}
			r := h.Run(t, append([]string{"catalog"}, strings.Fields(c.line)...)...)
			if r.Code != exit.Error || !strings.Contains(r.Err, c.want) || !strings.Contains(r.Err, "Hint:") {
				t.Errorf("exit %d\n%s%s\nwant %s, with a hint", r.Code, r.Out, r.Err, c.want)
			}
		})
	}
}

func TestTheLaddersOfAFolderAreNotMixedUp(t *testing.T) {
	h := withVersions(t)
	h.MustRun(t, "catalog", "init", "ladders", "--package", "other")
	r := h.Run(t, "catalog", "promote", "ladders", "1.1.0")
	if r.Code != exit.Error || !strings.Contains(r.Err, "several ladder files in ladders") ||
		!strings.Contains(r.Err, "echo-operator.yaml") {
		t.Errorf("exit %d: %s", r.Code, r.Err)
	}
	h.MustRun(t, "catalog", "promote", "ladders/echo-operator.yaml", "1.1.0")
}

func TestInitFromACatalog(t *testing.T) {
	h := clitest.NewHub()
	catalog := clitest.WriteCatalog(t)
	t.Chdir(t.TempDir())
	r := h.Run(t, "catalog", "init", "ladders", "--package", "echo-operator", "--from", catalog)
	if r.Code != exit.Error || !strings.Contains(r.Err, "has no digest") {
		t.Errorf("bundles by tag: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if _, err := os.Stat("ladders"); err == nil {
		t.Error("it has written something all the same")
	}
}

// A package that cannot be imported does not keep the others from it.
func TestInitAll(t *testing.T) {
	h := clitest.NewHub()
	t.Chdir(t.TempDir())
	pkg := func(name, version, image string) string {
		return fmt.Sprintf(`{"schema":"olm.package","name":%[1]q,"defaultChannel":"stable"}
{"schema":"olm.channel","package":%[1]q,"name":"stable","entries":[{"name":"%[1]s.v%[2]s"}]}
{"schema":"olm.bundle","package":%[1]q,"name":"%[1]s.v%[2]s","image":%[3]q,"properties":[{"type":"olm.package",`+
			`"value":{"packageName":%[1]q,"version":%[2]q}}]}
`, name, version, image)
	}
	if err := os.Mkdir("catalog", 0o750); err != nil {
		t.Fatal(err)
	}
	text := pkg("one", "1.0.0", catalogtest.HistoryImage("1.0.0")) +
		pkg("two", "2.0.0-rc.1", catalogtest.HistoryImage("2.0.0")) +
		pkg("tagged", "1.0.0", "registry.example.com/tagged:1.0.0") + `{"schema":"olm.package","name":"empty"}`
	if err := os.WriteFile("catalog/catalog.json", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	init := []string{"catalog", "init", "ladders", "--all", "--from", "catalog"}
	r := h.Run(t, init...)
	for _, want := range []string{"empty: not imported", "tagged: not imported", "has no digest",
		"2 of 4 packages were not imported", "Hint:"} {
		if r.Code != exit.Error || !strings.Contains(r.Err, want) {
			t.Errorf("exit %d, want %q:\n%s%s", r.Code, want, r.Out, r.Err)
		}
	}
	if !strings.Contains(r.Out, "Wrote 2 ladder files to ladders.") {
		t.Error(r.Out)
	}
	two, err := os.ReadFile("ladders/two.yaml")
	if err != nil || !strings.Contains(string(two), "version: 2.0.0-rc.1") {
		t.Errorf("the pre-release is not there: %v\n%s", err, two)
	}
	if r = h.Run(t, init...); !strings.Contains(r.Err, "one: ladders/one.yaml exists and is kept") ||
		!strings.Contains(r.Out, "Wrote 0 ladder files") {
		t.Errorf("again:\n%s%s", r.Out, r.Err)
	}
	for _, inside := range []string{"catalog", "./catalog/", "catalog/ladders"} {
		r := h.Run(t, "catalog", "init", inside, "--all", "--from", "catalog")
		if r.Code != exit.Error || !strings.Contains(r.Err, "would make the catalog of --from unreadable") {
			t.Errorf("%s: exit %d:\n%s%s", inside, r.Code, r.Out, r.Err)
		}
	}
	for _, wrong := range [][]string{{"--all"}, {"--all", "--from", "catalog", "--package", "one"}} {
		if r := h.Run(t, append([]string{"catalog", "init", "ladders"}, wrong...)...); r.Code != exit.Error {
			t.Errorf("%v: exit %d", wrong, r.Code)
		}
	}
}

func TestLadderCompletions(t *testing.T) {
	h := withVersions(t)
	h.MustRun(t, "catalog", "block", "ladders", "1.2.0", "--reason", "leaks")
	for line, want := range map[string]string{
		"catalog promote ladders ":               "1.1.0\n",
		"catalog unblock ladders ":               "1.2.0\n",
		"catalog block ladders ":                 "1.0.0\n1.1.0\n1.2.0\n",
		"catalog block ladders 1.2.0 --instead ": "1.0.0\n1.1.0\n",
		"catalog promote ladders 1.1.0 --to ":    "candidate\nfast\nstable\n",
	} {
		r := h.Run(t, append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
		if got, _, _ := strings.Cut(r.Out, ":"); got != want {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
}
