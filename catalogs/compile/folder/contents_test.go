// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// watchedImages has bundle folders as images, and counts the folders that are fetched and decoded.
type watchedImages struct {
	dir string

	mu               sync.Mutex
	fetched, decoded map[string]bool
}

func (i *watchedImages) Bundle(_ context.Context, image string, _ oci.Access) (fs.FS, string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetched[image] = true
	_, version, _ := strings.Cut(image, "/")
	return watched{FS: os.DirFS(filepath.Join(i.dir, version)), decoded: func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.decoded[image] = true
	}}, "", nil
}

func (i *watchedImages) counts() (fetched, decoded int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.fetched), len(i.decoded)
}

// watched reports when files are opened.
type watched struct {
	fs.FS

	decoded func()
}

func (w watched) Open(name string) (fs.File, error) {
	w.decoded()
	return w.FS.Open(name)
}

// A package of thousands of versions must never be in memory: only a few bundles are fetched ahead, and one
// is decoded.
func TestContentsReadsFewAhead(t *testing.T) {
	const versions, fetchedAhead, decodedAhead = 30, 4, 1
	dir := t.TempDir()
	l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: "p"}
	for j := range versions {
		v := catalogtest.Version(j)
		if err := catalogtest.WriteBundleDir(filepath.Join(dir, v), "p", v, 100); err != nil {
			t.Fatal(err)
		}
		// The order of the ladder does not matter.
		one := ladder.Bundle{Version: v, Image: "registry/" + v, Channel: "candidate"}
		if j%3 == 0 {
			l.Retired = append(l.Retired, ladder.Retired{Version: v, Image: one.Image})
		} else {
			l.Bundles = append([]ladder.Bundle{one}, l.Bundles...)
		}
	}
	registry := &watchedImages{dir: dir, fetched: map[string]bool{}, decoded: map[string]bool{}}
	read := folder.Bundles{Images: registry}
	contents, err := read.Contents(t.Context(), dir, l)
	if err != nil {
		t.Fatal(err)
	}
	defer contents.Close()
	for j := range versions {
		content, known, err := contents.Content(catalogtest.Version(j))
		if err != nil || !known || content.Bundle.Version.String() != catalogtest.Version(j) {
			t.Fatalf("version %s: known %t, %v", catalogtest.Version(j), known, err)
		}
		fetched, decoded := registry.counts()
		if fetched > j+1+fetchedAhead || decoded > j+1+decodedAhead {
			t.Fatalf("with %d requested, %d are fetched and %d decoded", j+1, fetched, decoded)
		}
	}
	if _, known, err := contents.Content(catalogtest.Version(0)); known || err != nil {
		t.Errorf("a version can be requested twice: %t, %v", known, err)
	}
}

// If a caller stops early, no read must wait forever.
func TestContentsCanBeClosedEarly(t *testing.T) {
	dir, _ := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: 8, SchemaBytes: 100})
	files, err := folder.LoadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	read, seen := folder.Bundles{}, 0
	stop := errors.New("stopped")
	err = read.VisitBundles(t.Context(), dir, files[0].Ladder, func(compile.Content) error {
		if seen++; seen == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 3 {
		t.Errorf("%d were taken, %v", seen, err)
	}
}

// The memory that is in use while a package is compiled must not grow with its versions. It is measured after a
// garbage collection, so that it does not depend on the machine.
func TestCompileKeepsLittle(t *testing.T) {
	const versions = 24
	crds := bundletest.NestedCRDs{Count: 2, Versions: 2, Bytes: 200 << 10, Seed: 1}
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 1, Versions: versions, CRDs: crds.Generate})
	o := options
	early, late := int64(math.MaxInt64), int64(math.MaxInt64)
	o.Progress = func(done, _ int) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		// The minimum of several measurements, because further versions are read at the same time.
		switch {
		case done >= 4 && done < 10:
			early = min(early, int64(m.HeapAlloc))
		case done >= versions-6:
			late = min(late, int64(m.HeapAlloc))
		}
	}
	mustCompile(t, dir, out, o)
	info, err := os.Stat(filepath.Join(out, catalogtest.PackageName(0), "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB are alive after a few versions, %d KiB after all %d, for %d KiB of catalog", early>>10, late>>10,
		versions, info.Size()>>10)
	// If bundles are kept, each version takes several times its part of the catalog.
	if growth := late - early; growth > info.Size() {
		t.Errorf("what is alive grows by %d KiB, for a catalog of %d KiB", growth>>10, info.Size()>>10)
	}
}

// Progress counts every version once, whether it is read or cached.
func TestProgressCountsVersions(t *testing.T) {
	dir, out := ladders(t, catalogtest.LadderFolder{Packages: 3, Versions: 4, SchemaBytes: 100})
	o := options
	o.Bundles.CacheDir = t.TempDir()
	var got, want []int
	o.Progress = func(done, total int) {
		if total != 12 {
			t.Errorf("%d versions in all, want 12", total)
		}
		got = append(got, done)
	}
	mustCompile(t, dir, out, o)
	for n := range 12 {
		want = append(want, n+1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("when bundles are read: %s", diff)
	}
	got = nil
	mustCompile(t, dir, out, o)
	if diff := cmp.Diff([]int{4, 8, 12}, got); diff != "" {
		t.Errorf("when they are cached: %s", diff)
	}
}
