// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

var options = folder.Options{Now: catalogtest.HistoryDay}

// ladders writes a folder of ladders and returns it, with a folder to compile into.
func ladders(t *testing.T, f catalogtest.LadderFolder) (dir, out string) {
	t.Helper()
	dir = t.TempDir()
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(t.TempDir(), "out")
}

func mustCompile(t *testing.T, dir, out string, o folder.Options) folder.Report {
	t.Helper()
	r, err := folder.Compile(t.Context(), dir, out, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// files returns the contents of a folder, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(text)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// Two packages that own one kind cannot be installed on one cluster.
func TestSharedKinds(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 3, Versions: 1, SchemaBytes: 100})
	one, other := catalogtest.PackageName(0), catalogtest.PackageName(1)
	for _, file := range []string{"csv.yaml", "crd.yaml"} {
		path := filepath.Join(dir, "bundles", other, catalogtest.Version(0), "manifests", file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.ReplaceAll(string(text), other+".example.com", one+".example.com"))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kind := "Thing." + one + ".example.com: OLM does not install both on one cluster"
	want := map[string]string{one: "package " + other + " also owns kind " + kind,
		other: "package " + one + " also owns kind " + kind, catalogtest.PackageName(2): ""}
	cached := options
	cached.Bundles.CacheDir = t.TempDir()
	for range 2 { // the second time, the bundles come from the cache
		if diff := cmp.Diff(want, notes(mustCompile(t, dir, out, cached))); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
	}
}

// notes returns the notes of each package.
func notes(r folder.Report) map[string]string {
	out := map[string]string{}
	for _, p := range r.Packages {
		out[p.Name] = strings.Join(p.Notes, "; ")
	}
	return out
}

// A bundle can need something that only another catalog provides.
func TestUnprovided(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 2, Versions: 2, SchemaBytes: 100})
	one, other := catalogtest.PackageName(0), catalogtest.PackageName(1)
	for i, needs := range []string{
		fmt.Sprintf("dependencies:\n- {type: olm.package, value: {packageName: %s, version: '>=1.0.0'}}\n", other),
		fmt.Sprintf("dependencies:\n- {type: olm.package, value: {packageName: %s, version: '>=2.0.0'}}\n"+
			"- {type: olm.gvk, value: {group: none.example.com, version: v1, kind: None}}\n", other),
	} {
		path := filepath.Join(dir, "bundles", one, catalogtest.Version(i), "metadata", "dependencies.yaml")
		if err := os.WriteFile(path, []byte(needs), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	needed := ", which 1.0.1 needs: OLM installs it only where another catalog does"
	const nobody = "no package of this catalog provides "
	want := map[string]string{other: "",
		one: nobody + "API None.v1.none.example.com" + needed + "; " +
			nobody + "package " + other + " in >=2.0.0" + needed}
	if diff := cmp.Diff(want, notes(mustCompile(t, dir, out, options))); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func edit(t *testing.T, dir, pkg string, change func(l *ladder.Ladder) error) {
	t.Helper()
	f, err := folder.Load(folder.Path(dir, pkg))
	if err != nil {
		t.Fatal(err)
	}
	if err := change(f.Ladder); err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(f); err != nil {
		t.Fatal(err)
	}
}

func TestCompile(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 3, Versions: 2})
	report := mustCompile(t, dir, out, options)
	for _, p := range report.Packages {
		if want := []folder.Channel{{Name: "stable", After: "1.0.1"}}; !p.Changed || p.Bundles != 2 ||
			!cmp.Equal(want, p.Channels) {
			t.Errorf("the first compile reports %+v", p)
		}
	}
	written := files(t, out)
	if len(report.Packages) != 3 || len(written) != 3 {
		t.Fatalf("it wrote %d files of %d packages, want 3: nothing else may be left", len(written),
			len(report.Packages))
	}
	if again := mustCompile(t, dir, out, options); again.Changed() {
		t.Errorf("compiling again reports a change: %+v", again)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	parallel := options
	parallel.Parallel = 1
	mustCompile(t, dir, elsewhere, parallel)
	if diff := cmp.Diff(written, files(t, elsewhere)); diff != "" {
		t.Errorf("one at a time it compiles differently:\n%s", diff)
	}
	edit(t, dir, "operator-001", func(l *ladder.Ladder) error {
		return l.Block(ladder.Block{Version: "1.0.1", Reason: "loses data"}, catalogtest.HistoryDay)
	})
	blocked := mustCompile(t, dir, out, options)
	want := []folder.Channel{{Name: "stable", Before: "1.0.1", After: "1.0.0"}}
	if p := blocked.Packages[1]; !p.Changed || !cmp.Equal(want, p.Channels) || len(p.Waiting) != 1 ||
		blocked.Packages[0].Changed {
		t.Errorf("after a block it reports %+v", blocked)
	}
}

func TestCheckWritesNothing(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: 2})
	check := options
	check.Check = true
	if r := mustCompile(t, dir, out, check); !r.Changed() {
		t.Error("an empty folder counts as current")
	}
	if got := files(t, out); len(got) > 0 {
		t.Errorf("it wrote %v", got)
	}
	mustCompile(t, dir, out, options)
	if r := mustCompile(t, dir, out, check); r.Changed() {
		t.Error("what was just compiled does not count as current")
	}
}

func TestFailureChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		is    error
		want  string
	}{
		"a lost version": {func(t *testing.T, dir string) {
			edit(t, dir, "operator-001", func(l *ladder.Ladder) error { l.Bundles = l.Bundles[1:]; return nil })
		}, compile.ErrContinuity, "operator-001.v1.0.0"},
		"a lost package": {func(t *testing.T, dir string) {
			if err := os.Remove(folder.Path(dir, "operator-001")); err != nil {
				t.Fatal(err)
			}
		}, compile.ErrContinuity, `package "operator-001" was offered and no longer has a ladder`},
		"a lost bundle": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "bundles", "operator-001", "1.0.1")); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist, "read version 1.0.1 of package \"operator-001\""},
		"a broken ladder": {func(t *testing.T, dir string) {
			if err := os.WriteFile(folder.Path(dir, "operator-001"), []byte("x: [\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ladder.ErrInvalid, "operator-001.yaml"},
		"a ladder under another name": {func(t *testing.T, dir string) {
			if err := os.Rename(folder.Path(dir, "operator-001"), folder.Path(dir, "other")); err != nil {
				t.Fatal(err)
			}
		}, ladder.ErrInvalid, "call it operator-001.yaml"},
		"two files of one package": {func(t *testing.T, dir string) {
			text, err := os.ReadFile(folder.Path(dir, "operator-001"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "operator-001.yml"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ladder.ErrInvalid, "are about the same package"},
		"a link out of the folder": {func(t *testing.T, dir string) {
			bundle := filepath.Join(dir, "bundles", "operator-001", "1.0.1")
			outside := filepath.Join(t.TempDir(), "bundle")
			if err := errors.Join(os.Rename(bundle, outside), os.Symlink(outside, bundle)); err != nil {
				t.Fatal(err)
			}
		}, nil, "read version 1.0.1"},
		"an icon that is none": {func(t *testing.T, dir string) {
			edit(t, dir, "operator-001", func(l *ladder.Ladder) error { l.Icon = "icon.exe"; return nil })
		}, ladder.ErrInvalid, "use svg, png, jpg or gif"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, out := ladders(t, catalogtest.LadderFolder{Packages: 2, Versions: 2})
			mustCompile(t, dir, out, options)
			before := files(t, out)
			edit(t, dir, "operator-000", func(l *ladder.Ladder) error {
				return l.Deprecate(ladder.Deprecation{Channel: "stable", Message: "changed"})
			})
			c.spoil(t, dir)
			_, err := folder.Compile(t.Context(), dir, out, options)
			if err == nil || (c.is != nil && !errors.Is(err, c.is)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v: %s", err, c.is, c.want)
			}
			if diff := cmp.Diff(before, files(t, out)); diff != "" {
				t.Errorf("the output has changed:\n%s", diff)
			}
		})
	}
}

// A failed compilation must leave nothing behind: no output folder, and no package that was written before
// the failure.
func TestFailureLeavesNothingBehind(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 2, Versions: 2})
	parent := t.TempDir()
	edit(t, dir, "operator-001", func(l *ladder.Ladder) error { l.Icon = "icon.exe"; return nil })
	if _, err := folder.Compile(t.Context(), dir, filepath.Join(parent, "new", "out"), options); err == nil {
		t.Fatal("it compiles with an icon that is none")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}

	edit(t, dir, "operator-001", func(l *ladder.Ladder) error { l.Icon = ""; return nil })
	mustCompile(t, dir, out, options)
	before := files(t, out)
	for _, name := range []string{"operator-000", "operator-001"} {
		edit(t, dir, name, func(l *ladder.Ladder) error {
			return l.Deprecate(ladder.Deprecation{Channel: "stable", Message: "changed"})
		})
	}
	blocked := options
	blocked.Parallel = 1
	blocked.Progress = func(done, total int) {
		second := filepath.Join(out, "operator-001", "catalog.json")
		if done == total {
			if err := errors.Join(os.Remove(second), os.MkdirAll(filepath.Join(second, "blocked"), 0o750)); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := folder.Compile(t.Context(), dir, out, blocked); err == nil {
		t.Fatal("a file took the place of a folder")
	}
	delete(before, filepath.Join("operator-001", "catalog.json"))
	if diff := cmp.Diff(before, files(t, out)); diff != "" {
		t.Errorf("operator-000 has changed, or something was left behind:\n%s", diff)
	}
}

// TestUndoRemovesOnlyWhatWasNotThere checks that the new file stays if the old file cannot be restored.
func TestUndoRemovesOnlyWhatWasNotThere(t *testing.T) {
	for name, test := range map[string]struct{ before, blocked, stays bool }{
		"there was none":        {},
		"there was one":         {before: true, stays: true},
		"it cannot be put back": {before: true, blocked: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			stage, out := t.TempDir(), t.TempDir()
			file := filepath.Join("echo", "catalog.json")
			target := filepath.Join(out, file)
			write := func(path string) error {
				return errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte("{}"), 0o600))
			}
			if err := write(filepath.Join(stage, file)); err != nil {
				t.Fatal(err)
			}
			if test.before {
				if err := write(target); err != nil {
					t.Fatal(err)
				}
			}
			undo, err := folder.PublishPackage(stage, out, folder.Package{Name: "echo", File: file, Changed: true})
			if err != nil {
				t.Fatal(err)
			}
			if test.blocked { // no file can take the place of a folder
				if err := errors.Join(os.Remove(target), os.Mkdir(target, 0o750)); err != nil {
					t.Fatal(err)
				}
			}
			undo()
			if _, err := os.Stat(target); (err == nil) != test.stays {
				t.Errorf("after it was undone: %v, want that it stays: %v", err, test.stays)
			}
		})
	}
}

func TestDeprecatedPackageCanBeRemoved(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 2, Versions: 1})
	edit(t, dir, "operator-001", func(l *ladder.Ladder) error {
		return l.Deprecate(ladder.Deprecation{Package: "operator-001", Message: "use another one"})
	})
	mustCompile(t, dir, out, options)
	if err := os.Remove(folder.Path(dir, "operator-001")); err != nil {
		t.Fatal(err)
	}
	r := mustCompile(t, dir, out, options)
	if len(r.Packages) != 2 || !r.Packages[1].Removed {
		t.Errorf("it reports %+v", r)
	}
	if got := files(t, out); len(got) != 1 {
		t.Errorf("it left %d files", len(got))
	}
}

func TestComparesWithPublishedCatalog(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: 2})
	f, err := folder.Load(folder.Path(dir, "operator-000"))
	if err != nil {
		t.Fatal(err)
	}
	f.Ladder.Bundles = append(f.Ladder.Bundles, ladder.Bundle{Version: "1.5.0", Path: "x", Channel: "stable"})
	published, err := compile.Graph(f.Ladder)
	if err != nil {
		t.Fatal(err)
	}
	o := options
	o.Published = []*catalogs.Package{published}
	if _, err := folder.Compile(t.Context(), dir, out, o); !errors.Is(err, compile.ErrContinuity) {
		t.Errorf("got %v, want broken continuity: the published catalog has 1.5.0", err)
	}
}

// images is a registry with one bundle.
type images struct {
	dir   string
	reads int
}

func (r *images) Bundle(_ context.Context, image string, _ oci.Access) (fs.FS, string, error) {
	r.reads++
	if r.dir == "" {
		return nil, "", fmt.Errorf("read %s: %w", image, oci.ErrUnreachable)
	}
	return os.DirFS(r.dir), ladder.Digest(image), nil
}

func TestImagesAreReadOnce(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: 1})
	registry := &images{dir: filepath.Join(dir, "bundles", "operator-000", "1.0.0")}
	edit(t, dir, "operator-000", func(l *ladder.Ladder) error {
		l.Bundles[0].Path, l.Bundles[0].Image = "", catalogtest.HistoryImage("1.0.0")
		return nil
	})
	o := options
	o.Bundles = folder.Bundles{Images: registry, CacheDir: t.TempDir()}
	mustCompile(t, dir, out, o)
	first := files(t, out)
	registry.dir = "" // the registry goes down
	if r := mustCompile(t, dir, out, o); r.Changed() || registry.reads != 1 {
		t.Errorf("the second compile changed something (%v), or read the registry again (%d reads)", r.Changed(),
			registry.reads)
	}
	if !strings.Contains(first["operator-000/catalog.json"], catalogtest.HistoryImage("1.0.0")) {
		t.Error("the catalog does not name the image")
	}
	o.Bundles.CacheDir = t.TempDir()
	if _, err := folder.Compile(t.Context(), dir, out, o); !errors.Is(err, oci.ErrUnreachable) {
		t.Errorf("without a cache got %v, want an unreachable registry", err)
	}
}

func TestCacheDetectsEveryChange(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: 2})
	o := options
	o.Bundles.CacheDir = t.TempDir()
	mustCompile(t, dir, out, o)
	for name, change := range map[string]func(){
		"nothing": func() {},
		"the ladder": func() {
			edit(t, dir, "operator-000", func(l *ladder.Ladder) error {
				return l.Block(ladder.Block{Version: "1.0.0", Reason: "loses data"}, catalogtest.HistoryDay)
			})
		},
		"a bundle": func() {
			path := filepath.Join(dir, "bundles", "operator-000", "1.0.1", "manifests", "csv.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "Runs things.", "Runs other things.")),
				0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			change()
			r := mustCompile(t, dir, out, o)
			if want := name != "nothing"; r.Changed() != want {
				t.Errorf("changed: %v, want %v", r.Changed(), want)
			}
			uncached := filepath.Join(t.TempDir(), "uncached")
			mustCompile(t, dir, uncached, options)
			if diff := cmp.Diff(files(t, uncached), files(t, out)); diff != "" {
				t.Errorf("without (-) and with the cache (+):\n%s", diff)
			}
		})
	}
}

func TestLoadAllWithoutLadders(t *testing.T) {
	if _, err := folder.LoadAll(t.TempDir()); !errors.Is(err, folder.ErrNoLadders) {
		t.Errorf("got %v", err)
	}
}

func TestSaveKeepsTheMode(t *testing.T) {
	dir, _ := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: 2})
	path := folder.Path(dir, "operator-000")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "operator-000", func(l *ladder.Ladder) error { return l.Retire("1.0.0", "") })
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v now", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("something is left beside the ladder: %v", entries)
	}
}

func TestFind(t *testing.T) {
	none, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{folder.Path(one, "a"), folder.Path(two, "a"), folder.Path(two, "b")} {
		pkg := strings.TrimSuffix(filepath.Base(path), ".yaml")
		text := "apiVersion: bellwether.dev/v1alpha1\nkind: CatalogLadder\npackage: " + pkg + "\nchannels: [stable]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		find func() (*ladder.File, error)
		want string
		err  error
	}{
		"a file": {find: func() (*ladder.File, error) { return folder.LoadOnly(folder.Path(two, "b")) }, want: "b"},
		"no file": {find: func() (*ladder.File, error) { return folder.LoadOnly(folder.Path(one, "b")) },
			err: fs.ErrNotExist},
		"the only one": {find: func() (*ladder.File, error) { return folder.LoadOnly(one) }, want: "a"},
		"one of two": {find: func() (*ladder.File, error) { return folder.LoadOnly(two) },
			err: folder.ErrSeveralLadders},
		"of none":    {find: func() (*ladder.File, error) { return folder.LoadOnly(none) }, err: folder.ErrNoLadders},
		"by package": {find: func() (*ladder.File, error) { return folder.FindPackage(two, "b") }, want: "b"},
		"not there": {find: func() (*ladder.File, error) { return folder.FindPackage(one, "b") },
			err: folder.ErrNoLadder},
		"another file": {find: func() (*ladder.File, error) { return folder.FindPackage(folder.Path(one, "a"), "b") },
			err: folder.ErrOtherPackage},
		"the same file": {find: func() (*ladder.File, error) { return folder.FindPackage(folder.Path(one, "a"), "a") },
			want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := test.find()
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && f.Ladder.Package != test.want {
				t.Errorf("found the ladder of %q, want %q", f.Ladder.Package, test.want)
			}
		})
	}
	if folder.HasLadders(none) || !folder.HasLadders(one) {
		t.Error("a folder of ladder files is not told from one without")
	}
}
