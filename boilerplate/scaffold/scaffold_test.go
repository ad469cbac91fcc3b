// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"flag"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
)

var updateGolden = flag.Bool("update", false, "write golden files")

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// given are existing types.
func given(t *testing.T) *Types {
	t.Helper()
	types, err := ReadTypes(writeTypes(t, goodTypes), "")
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// kinds are options of the kinds of operators.
func kinds(t *testing.T) map[string]Options {
	t.Helper()
	imported := given(t)
	imported.Files, imported.Import = nil, "example.org/apis/tenancy/v1"
	imported.Module, imported.ModuleVersion = "example.org/apis", "v1.2.3"
	return map[string]Options{
		"namespaced": {Name: "echo-operator"},
		"cluster, webhook": {Name: "tenants", Kind: "Tenant", Cluster: true, Webhook: true,
			Module: "example.org/acme/t"},
		"given types":    {Name: "tenancy-operator", Types: given(t), Webhook: true},
		"imported types": {Name: "tenancy--operator", Types: imported},
		"names that clash": {Name: "backup-operator", Version: "v1", Group: "apps.example.org",
			Module: "example.org/Acme/b"},
	}
}

func create(t *testing.T, o Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new")
	if err := Create(t.Context(), dir, o, now); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns the files below a folder.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, relErr := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = string(text)
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCreate writes each kind of operator and checks the files. Tests on the testbed check that the operators work.
func TestCreate(t *testing.T) {
	for name, o := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			dir := create(t, o)
			files := read(t, dir)
			if diff := cmp.Diff(files, read(t, create(t, o))); diff != "" {
				t.Errorf("the same options give other files:\n%s", diff)
			}
			for path, text := range files {
				checkFile(t, path, text)
			}
			checkNames(t, name, files)
			r, err := run.Open(dir, source.Loader{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Tree.Close() }()
			if findings, err := r.Check(now); len(findings) > 0 || err != nil {
				t.Errorf("boilerplate check: %v, %v", findings, err)
			}
		})
	}
}

func checkFile(t *testing.T, path, text string) {
	t.Helper()
	if strings.HasPrefix(path, ".boilerplate") {
		return
	}
	for _, leftover := range []string{"[[ ", " ]]", "<no value>", "bellwether-dev/bellwether/boilerplate"} {
		if strings.Contains(text, leftover) {
			t.Errorf("%s has %q", path, leftover)
		}
	}
	switch filepath.Ext(path) {
	case ".go":
		formatted, err := format.Source([]byte(text))
		if err != nil || string(formatted) != text {
			t.Errorf("%s is not formatted: %v", path, err)
		}
		for line := range strings.Lines(text) {
			width := len(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))
			if width > 120 && !strings.Contains(line, "+kubebuilder") && !strings.HasPrefix(line, "//go:generate") {
				t.Errorf("%s: a line has %d columns: %s", path, width, line)
			}
		}
	case ".yaml", ".yml":
		for document := range strings.SplitSeq(text, "\n---\n") {
			if err := yaml.Unmarshal([]byte(document), &map[string]any{}); err != nil {
				t.Errorf("%s: %v\n%s", path, err, document)
			}
		}
	}
}

// checkNames compares the names of all files with those of a golden file.
func checkNames(t *testing.T, name string, files map[string]string) {
	t.Helper()
	var names []string
	for path := range files {
		if !strings.HasPrefix(path, ".boilerplate/base") {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	golden := filepath.Join("testdata", strings.NewReplacer(",", "", " ", "-").Replace(name)+".txt")
	got := strings.Join(names, "\n") + "\n"
	if *updateGolden {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got; write it with -update):\n%s", err, diff)
	}
}

// TestRefused checks that refused options leave no files.
func TestRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		dir  string
		o    Options
		want error
	}{
		"a folder that is not empty": {full, Options{Name: "echo"}, ErrNotEmpty},
		"a file":                     {filepath.Join(full, "mine.txt"), Options{Name: "echo"}, ErrNotEmpty},
		"no name":                    {"", Options{}, ErrOptions},
		"a name with a capital":      {"", Options{Name: "Echo"}, ErrOptions},
		"a name that is long":        {"", Options{Name: strings.Repeat("a", 41)}, ErrOptions},
		"a module":                   {"", Options{Name: "echo", Module: "no module"}, ErrOptions},
		"a group without a domain":   {"", Options{Name: "echo", Group: "echo"}, ErrOptions},
		"a version":                  {"", Options{Name: "echo", Version: "1"}, ErrOptions},
		"a kind":                     {"", Options{Name: "echo", Kind: "echo"}, ErrOptions},
		"a plural":                   {"", Options{Name: "echo", Plural: "No Plural"}, ErrOptions},
		"an image with a tag":        {"", Options{Name: "echo", Image: "example.com/echo:1"}, ErrOptions},
		"another example":            {"", Options{Name: "echo", Example: "apiVersion: v1\nkind: Echo\n"}, ErrOptions},
		"a team":                     {"", Options{Name: "echo", Team: "@sre"}, ErrOptions},
	} {
		t.Run(name, func(t *testing.T) {
			dir := test.dir
			if dir == "" {
				dir = filepath.Join(t.TempDir(), "new")
			}
			if err := Create(t.Context(), dir, test.o, now); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if _, err := os.Stat(dir); test.dir == "" && !errors.Is(err, fs.ErrNotExist) {
				t.Error("something is left behind")
			}
		})
	}
	if files := read(t, full); len(files) != 1 {
		t.Errorf("the folder has %v", files)
	}
}

// TestFailureLeavesNothing fails after the first files were written, and checks that they are removed.
func TestFailureLeavesNothing(t *testing.T) {
	for name, existed := range map[string]bool{"a new folder": false, "a folder with a git repository": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			if existed {
				if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			o := Options{Name: "tenancy-operator", Types: given(t)}
			o.Types.Files = map[string][]byte{"a/../../../../internal": nil} // a folder is there
			if err := Create(t.Context(), dir, o, now); err == nil {
				t.Fatal("no error")
			}
			entries, err := os.ReadDir(dir)
			if existed != (err == nil) || existed && (len(entries) != 1 || entries[0].Name() != ".git") {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestRequires compares the modules of new operators with the modules of this program.
func TestRequires(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, r := range f.Require {
		own[r.Mod.Path+" "+r.Mod.Version] = true
	}
	for _, r := range requiredModules {
		if !own[r] {
			t.Errorf("%s is not what go.mod has", r)
		}
	}
}
