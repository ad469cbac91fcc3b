// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// labels are the labels of a bundle image and of a catalog image together.
var labels = map[string]string{
	"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
	"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
	"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
	"operators.operatorframework.io.bundle.package.v1":   "p",
	oci.ConfigsLabel: "/manifests",
}

// rawImage returns an image with one layer whose content is not checked.
func rawImage(t testing.TB, layer []byte) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer, types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.Config(img, v1.Config{Labels: labels}); err != nil {
		t.Fatal(err)
	}
	return img
}

func archive(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func zipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHostileImages(t *testing.T) {
	good := &tar.Header{Name: "metadata/annotations.yaml"}
	many := make([]*tar.Header, 0, 50_100)
	for i := range cap(many) {
		many = append(many, &tar.Header{Name: fmt.Sprintf("manifests/%06d", i)})
	}
	tests := map[string]struct {
		layer []byte
		// bundle and catalog are the errors of reading the image as a bundle and as a catalog.
		bundle, catalog error
	}{
		"a way out": {archive(t, good, &tar.Header{Name: "manifests/../../etc/cron.d/x"}), oci.ErrNotBundle,
			catalogs.ErrNotCatalog},
		"a symbolic link": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Typeflag: tar.TypeSymlink,
			Linkname: "/etc/shadow"}), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a hard link": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Typeflag: tar.TypeLink,
			Linkname: "metadata/annotations.yaml"}), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a device": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Typeflag: tar.TypeBlock,
			Devmajor: 8}), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a pipe": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Typeflag: tar.TypeFifo}),
			oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a file twice": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Size: 1},
			&tar.Header{Name: "manifests/x.yaml", Size: 2}), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a file twice, written in two ways": {archive(t, good, &tar.Header{Name: "./manifests/x.yaml", Size: 1},
			&tar.Header{Name: "manifests/x.yaml", Size: 2}), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a file and a folder of one name": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Size: 1},
			&tar.Header{Name: "manifests/x.yaml/y.yaml", Size: 2}), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a folder and a file of one name": {archive(t, good, &tar.Header{Name: "manifests/x.yaml/",
			Typeflag: tar.TypeDir}, &tar.Header{Name: "manifests/x.yaml", Size: 2}), oci.ErrNotBundle,
			catalogs.ErrNotCatalog},
		"no archive": {[]byte(strings.Repeat("rubbish ", 200)), oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"a broken archive": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Size: 5000})[:2000],
			oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"broken gzip": {zipped(t, archive(t, good))[:40], oci.ErrNotBundle, catalogs.ErrNotCatalog},
		"70 MB": {archive(t, good, &tar.Header{Name: "manifests/x.yaml", Size: 70 << 20}), oci.ErrTooLarge,
			oci.ErrTooLarge},
		"70 MB elsewhere": {archive(t, good, &tar.Header{Name: "tests/x.yaml", Size: 70 << 20}), oci.ErrTooLarge,
			oci.ErrTooLarge},
		"a gzip bomb": {zipped(t, archive(t, good, &tar.Header{Name: "manifests/x.yaml", Size: 70 << 20})),
			oci.ErrTooLarge, oci.ErrTooLarge},
		"a sparse file":     {sparse(t), oci.ErrTooLarge, oci.ErrTooLarge},
		"many many entries": {zipped(t, archive(t, many...)), oci.ErrTooLarge, oci.ErrTooLarge},
	}
	r := newRegistry(t)
	c := oci.NewClient(oci.Options{MaxBytes: 64 << 20, CacheDir: t.TempDir()})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			digest := write(t, r.image("x"), rawImage(t, tc.layer))
			image := r.host + "/team/catalog@" + digest
			if _, _, err := c.Bundle(t.Context(), image, oci.Access{}); !errors.Is(err, tc.bundle) {
				t.Errorf("as a bundle: %v, want %v", err, tc.bundle)
			}
			if _, err := c.BundleObjects(t.Context(), image, oci.Access{}); err == nil {
				t.Error("its manifests were read")
			}
			if _, err := summary(t.Context(), c, oci.Source{Image: image}, digest); !errors.Is(err, tc.catalog) {
				t.Errorf("as a catalog: %v, want %v", err, tc.catalog)
			}
		})
	}
}

// TestLargeConfigurations checks that a configuration is not read if it is larger than the limit.
func TestLargeConfigurations(t *testing.T) {
	img, err := mutate.Config(rawImage(t, archive(t, &tar.Header{Name: "metadata/annotations.yaml"})), v1.Config{
		Labels: map[string]string{"x": strings.Repeat("x", 5<<20), oci.ConfigsLabel: "/configs"}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t)
	digest := write(t, r.image("x"), img)
	image := r.host + "/team/catalog@" + digest
	c := oci.NewClient(oci.Options{CacheDir: t.TempDir()})
	_, _, asBundle := c.Bundle(t.Context(), image, oci.Access{})
	_, asCatalog := summary(t.Context(), c, oci.Source{Image: image}, digest)
	for what, err := range map[string]error{"a bundle": asBundle, "a catalog": asCatalog,
		"an image": c.CheckComplete(t.Context(), image, false, oci.Access{})} {
		if !errors.Is(err, oci.ErrTooLarge) || !strings.Contains(err.Error(), "configuration of the image") {
			t.Errorf("as %s: %v", what, err)
		}
	}
}

// sparse returns an archive of a few blocks with a file whose size is a terabyte. It has the oldest GNU format, which
// the standard library can read but not write.
func sparse(t *testing.T) []byte {
	t.Helper()
	block := archive(t, &tar.Header{Name: "manifests/x.yaml", Format: tar.FormatGNU, Size: 0})[:512]
	block[156] = 'S'
	copy(block[386:], fmt.Sprintf("%011o\x00%011o\x00", 1<<30, 0)) // one hole, up to the end
	copy(block[483:], fmt.Sprintf("%011o\x00", 1<<30))
	sum := 0
	copy(block[148:156], "        ")
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(block, make([]byte, 1024)...)
}

// Programs that write layers repeat folders, which has no effect, and files of a lower layer, which replaces
// these files.
func TestRepeatedFolders(t *testing.T) {
	folder := func() *tar.Header { return &tar.Header{Name: "manifests/", Typeflag: tar.TypeDir} }
	lower := archive(t, folder(), &tar.Header{Name: "metadata/annotations.yaml"}, folder(),
		&tar.Header{Name: "./manifests/x.yaml", Size: 1})
	img, err := mutate.AppendLayers(rawImage(t, lower),
		static.NewLayer(archive(t, folder(), &tar.Header{Name: "manifests/x.yaml", Size: 2}), types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	err = oci.ImageFiles(img, "manifests", 1<<20)(func(name string, content io.Reader) error {
		text, err := io.ReadAll(content)
		sizes[name] = len(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"x.yaml": 2}, sizes); diff != "" {
		t.Error(diff)
	}
}

func TestBundleFiles(t *testing.T) {
	r, dir := newRegistry(t), t.TempDir()
	writeFile(t, dir+"/metadata/annotations.yaml", annotations)
	writeFile(t, dir+"/manifests/a.yaml", "kind: A\n")
	writeFile(t, dir+"/README.md", "not part of it")
	c := oci.NewClient(oci.Options{})
	want, err := c.PushBundle(t.Context(), dir, r.image("b"), oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	files, digest, err := c.Bundle(t.Context(), r.image("b"), oci.Access{})
	if err != nil || digest != want {
		t.Fatalf("digest %s, %v, want %s", digest, err, want)
	}
	var names []string
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"manifests/a.yaml", "metadata/annotations.yaml"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestInterruptedWritesAreNotUsed interrupts the download of a catalog at several points. The cache must not contain
// any of it.
func TestInterruptedWritesAreNotUsed(t *testing.T) {
	r := newRegistry(t)
	digest := push(t, catalogDir(t), r.image("v1"))
	for _, kind := range []string{"manifests", "blobs"} {
		cache := t.TempDir()
		c := oci.NewClient(oci.Options{CacheDir: cache, Stall: 10 * time.Second, Backoff: time.Millisecond})
		r.onRequest(func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, kind) {
				return false
			}
			w.Header().Set("Content-Length", "2000")
			_, _ = w.Write(make([]byte, 1000))
			return true
		})
		if _, err := summary(t.Context(), c, oci.Source{Image: r.image("v1")}, digest); !errors.Is(err,
			oci.ErrUnreachable) && !errors.Is(err, oci.ErrDigestMismatch) {
			t.Errorf("%s broken off: %v", kind, err)
		}
		r.onRequest(nil)
		if left, _ := filepath.Glob(cache + "/*"); len(left) > 0 {
			t.Errorf("%s broken off left %v", kind, left)
		}
		if left, err := os.ReadDir(cache); err == nil && len(left) > 0 {
			t.Errorf("%s broken off left %v", kind, left)
		}
	}
}

func FuzzImage(f *testing.F) {
	f.Add(archive(f, &tar.Header{Name: "manifests/a.json", Size: 10}))
	f.Add(zipped(f, archive(f, &tar.Header{Name: "manifests/.wh.a.json"})))
	f.Add(archive(f, &tar.Header{Name: "manifests/a", Typeflag: tar.TypeSymlink, Linkname: ".."}))
	f.Add([]byte("\x28\xb5\x2f\xfd rubbish"))
	f.Add(zipped(f, archive(f, &tar.Header{Name: "manifests/a.json", Size: 4 << 20})))
	f.Fuzz(func(t *testing.T, layer []byte) {
		untrustedtest.Bound(t, len(layer), 32<<20, 2000, func() {
			img := rawImage(t, layer)
			names := map[string]bool{}
			err := oci.ImageFiles(img, "manifests", 1<<20)(func(name string, content io.Reader) error {
				if !fs.ValidPath(name) || names[name] {
					t.Errorf("visited %q, again: %t", name, names[name])
				}
				names[name] = true
				n, err := io.Copy(io.Discard, content)
				if n > 1<<20 {
					t.Errorf("%q has %d bytes", name, n)
				}
				return err
			})
			if err != nil && !errors.Is(err, catalogs.ErrNotCatalog) && !errors.Is(err, oci.ErrTooLarge) &&
				!errors.Is(err, io.ErrUnexpectedEOF) &&
				!strings.Contains(err.Error(), "tar") && !strings.Contains(err.Error(), "gzip") &&
				!strings.Contains(err.Error(), "magic") {
				t.Errorf("an error of no kind: %v", err)
			}
		})
	})
}
