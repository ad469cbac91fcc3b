// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// fakeRegistry is a registry in memory whose requests can be inspected and changed.
type fakeRegistry struct {
	host string

	mu       sync.Mutex
	requests []string
	// tamper can answer a request itself; it then returns true.
	tamper func(w http.ResponseWriter, r *http.Request) bool
}

func newRegistry(t *testing.T) *fakeRegistry {
	t.Helper()
	f := &fakeRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Method+" "+r.URL.Path)
		tamper := f.tamper
		f.mu.Unlock()
		if tamper == nil || !tamper(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	f.host = strings.TrimPrefix(server.URL, "http://")
	return f
}

func (f *fakeRegistry) onRequest(tamper func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tamper = tamper
}

func (f *fakeRegistry) image(tag string) string { return f.host + "/team/catalog:" + tag }

// catalogDir returns a directory with a catalog of two packages.
func catalogDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := catalogtest.WriteDir(dir, catalogtest.Options{Packages: 2, Versions: 2, SchemaBytes: 4000}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func push(t *testing.T, dir, ref string) string {
	t.Helper()
	digest, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, ref, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func summary(ctx context.Context, c *oci.Client, s oci.Source, digest string) (catalogs.Summary, error) {
	files, err := c.Open(ctx, s, digest)
	if err != nil {
		return catalogs.Summary{}, err
	}
	return catalogs.ReadSummary(files)
}

func TestRoundTrip(t *testing.T) {
	r, dir := newRegistry(t), catalogDir(t)
	digest := push(t, dir, r.image("v1"))
	c := oci.NewClient(oci.Options{})
	for name, image := range map[string]string{
		"by tag": r.image("v1"), "by digest": r.host + "/team/catalog@" + digest, "by both": r.image("v1") + "@" +
			digest,
	} {
		t.Run(name, func(t *testing.T) {
			source := oci.Source{Image: image}
			got, err := c.Resolve(t.Context(), source)
			if err != nil || got != digest {
				t.Fatalf("resolved %q, %v; want %q", got, err, digest)
			}
			fromImage, err := summary(t.Context(), c, source, digest)
			if err != nil {
				t.Fatal(err)
			}
			local := oci.Source{Directory: dir}
			localDigest, err := c.Resolve(t.Context(), local)
			if err != nil {
				t.Fatal(err)
			}
			fromDirectory, err := summary(t.Context(), c, local, localDigest)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromDirectory, fromImage); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPushIsReproducible(t *testing.T) {
	r := newRegistry(t)
	one, two := catalogDir(t), catalogDir(t)
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	file := filepath.Join(two, catalogtest.PackageName(0), "catalog.json")
	if err := errors.Join(os.Chtimes(file, old, old), os.Chmod(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(two, ".git", "HEAD"), "not part of the catalog")
	if a, b := push(t, one, r.image("a")), push(t, two, r.image("b")); a != b {
		t.Errorf("digests %s and %s of the same catalog", a, b)
	}
}

func TestTagMovesLast(t *testing.T) {
	r := newRegistry(t)
	push(t, catalogDir(t), r.image("v1"))
	writes := slices.DeleteFunc(slices.Clone(r.requests), func(s string) bool {
		return strings.HasPrefix(s, "GET") || strings.HasPrefix(s, "HEAD")
	})
	if last := writes[len(writes)-1]; last != "PUT /v2/team/catalog/manifests/v1" {
		t.Errorf("last write is %s", last)
	}
	if n := len(slices.DeleteFunc(writes, func(s string) bool { return !strings.Contains(s, "/manifests/") })); n != 1 {
		t.Errorf("%d manifests written, want 1", n)
	}
}

func TestPushRefusesOtherContent(t *testing.T) {
	r := newRegistry(t)
	tests := map[string]struct {
		write func(dir string)
		ref   string
		want  error
	}{
		"empty": {write: func(string) {}, want: catalogs.ErrNotCatalog},
		"other files": {write: func(d string) { writeFile(t, d+"/README.md", "# Hello") },
			want: catalogs.ErrNotCatalog},
		"invalid": {write: func(d string) { writeFile(t, d+"/c.json", catalogtest.Graph("p", "1.0.0\n1.1.0")) },
			want: catalogs.ErrInvalidPackage},
		"to a digest": {write: func(d string) { writeFile(t, d+"/c.json", catalogtest.Graph("p", "1.0.0")) },
			ref: r.host + "/c@sha256:" + strings.Repeat("0", 64), want: oci.ErrBadSource},
		"to nonsense": {write: func(d string) { writeFile(t, d+"/c.json", catalogtest.Graph("p", "1.0.0")) },
			ref: "Not A Reference", want: oci.ErrBadSource},
		"no directory": {write: func(d string) { _ = os.Remove(d) }, want: oci.ErrNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.write(dir)
			if tc.ref == "" {
				tc.ref = r.image("x")
			}
			if _, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, tc.ref, oci.Access{}); !errors.Is(err,
				tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestWrongContent(t *testing.T) {
	r, dir := newRegistry(t), catalogDir(t)
	digest := push(t, dir, r.image("v1"))
	zeros := "sha256:" + strings.Repeat("0", 64)
	// flip changes one byte in the middle of responses whose path contains kind.
	flip := func(kind string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, kind) {
				return false
			}
			r.onRequest(nil)
			resp, err := http.Get("http://" + r.host + req.URL.Path)
			if err != nil {
				t.Error(err)
				return false
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			body[len(body)/2] ^= 1
			w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			if _, err := w.Write(body); err != nil {
				t.Error(err)
			}
			r.onRequest(flipAll)
			return true
		}
	}
	tests := map[string]struct {
		image, digest string
		tamper        func(http.ResponseWriter, *http.Request) bool
		want          error
	}{
		"manifest tampered with": {digest: digest, tamper: flip("/manifests/"), want: oci.ErrDigestMismatch},
		"blob tampered with":     {digest: digest, tamper: flip("/blobs/"), want: oci.ErrDigestMismatch},
		"source pins another digest": {image: r.host + "/team/catalog@" + digest, digest: zeros,
			want: oci.ErrDigestMismatch},
		"registry has no such digest":    {digest: zeros, want: oci.ErrNotFound},
		"registry has no such image":     {image: r.host + "/team/other:v1", digest: digest, want: oci.ErrNotFound},
		"not a digest":                   {digest: "latest", want: oci.ErrBadSource},
		"digest missing":                 {digest: "", want: oci.ErrBadSource},
		"reference is nonsense":          {image: "::", digest: digest, want: oci.ErrBadSource},
		"CA bundle holds no certificate": {digest: digest, want: oci.ErrBadSource},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r.onRequest(tc.tamper)
			defer r.onRequest(nil)
			source := oci.Source{Image: tc.image}
			if tc.image == "" {
				source.Image = r.image("v1")
			}
			if strings.HasPrefix(name, "CA") {
				source.Access.CABundle = []byte("rubbish")
			}
			if _, err := summary(t.Context(), oci.NewClient(oci.Options{}), source, tc.digest); !errors.Is(err,
				tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// flipAll does not change any response.
func flipAll(http.ResponseWriter, *http.Request) bool { return false }

func TestNotACatalogImage(t *testing.T) {
	r := newRegistry(t)
	img, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest := write(t, r.image("x"), img)
	if _, err := summary(t.Context(), oci.NewClient(oci.Options{}), oci.Source{Image: r.image("x")},
		digest); !errors.Is(err, catalogs.ErrNotCatalog) {
		t.Errorf("got %v", err)
	}
}

// written is an image or an index.
type written interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

func write(t *testing.T, ref string, what written) string {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Push(r, what); err != nil {
		t.Fatal(err)
	}
	digest, err := what.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	r := newRegistry(t)
	digest := push(t, catalogDir(t), r.image("v1"))
	stuck := make(chan struct{})
	defer close(stuck)
	hang := func(kind string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, kind) {
				return false
			}
			w.Header().Set("Content-Length", "100000")
			w.Header().Set("Docker-Content-Digest", digest)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-stuck
			return true
		}
	}
	tests := map[string]struct {
		image  string
		tamper func(http.ResponseWriter, *http.Request) bool
	}{
		"nobody listens":             {image: closed.Addr().String() + "/team/catalog:v1"},
		"the registry never answers": {tamper: func(http.ResponseWriter, *http.Request) bool { <-stuck; return true }},
		"a manifest never ends":      {tamper: hang("/manifests/")},
		"a blob never ends":          {tamper: hang("/blobs/")},
		"the registry fails": {tamper: func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r.onRequest(tc.tamper)
			defer r.onRequest(nil)
			source := oci.Source{Image: tc.image}
			if tc.image == "" {
				source.Image = r.image("v1")
			}
			options, want := oci.Options{Stall: 100 * time.Millisecond, Backoff: time.Millisecond}, oci.ErrUnreachable
			if name == "the registry fails" { // it answers, however late
				options.Stall, want = time.Minute, oci.ErrFailed
			}
			c := oci.NewClient(options)
			if _, err := summary(t.Context(), c, source, digest); !errors.Is(err, want) {
				t.Errorf("open: got %v", err)
			}
			if strings.Contains(name, "blob") || strings.Contains(name, "manifest") {
				return
			}
			if _, err := c.Resolve(t.Context(), source); !errors.Is(err, want) {
				t.Errorf("resolve: got %v", err)
			}
		})
	}
}

// A certificate that is not trusted is a different problem from an unreachable registry, and has another remedy.
func TestUntrustedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	source := oci.Source{Image: server.Listener.Addr().String() + "/team/catalog:v1"}
	c := oci.NewClient(oci.Options{Backoff: time.Millisecond})
	_, err := c.Resolve(t.Context(), source)
	if !errors.Is(err, oci.ErrUntrusted) || errors.Is(err, oci.ErrUnreachable) {
		t.Errorf("an untrusted certificate is %v", err)
	}
	source.Access.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if _, err := c.Resolve(t.Context(), source); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("with the certificate in the CA bundle it is %v", err)
	}
}

func TestCredentials(t *testing.T) {
	r := newRegistry(t)
	digest := push(t, catalogDir(t), r.image("v1"))
	r.onRequest(func(w http.ResponseWriter, req *http.Request) bool {
		if user, password, _ := req.BasicAuth(); user == "u" && password == "p" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	auth := base64.StdEncoding.EncodeToString([]byte("u:p"))
	tests := map[string]struct {
		access oci.Access
		want   error
	}{
		"none":  {want: oci.ErrDenied},
		"wrong": {access: oci.Access{Username: "u", Password: "q"}, want: oci.ErrDenied},
		"right": {access: oci.Access{Username: "u", Password: "p"}},
		"pull secret": {access: oci.Access{DockerConfig: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.host,
			auth)}},
		"another's secret": {access: oci.Access{DockerConfig: fmt.Appendf(nil,
			`{"auths":{"other.example":{"auth":%q}}}`, auth)}, want: oci.ErrDenied},
		"pull secret nonsense": {access: oci.Access{DockerConfig: []byte("{")}, want: oci.ErrBadSource},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			c := oci.NewClient(oci.Options{})
			source := oci.Source{Image: r.image("v1"), Access: tc.access}
			got, err := c.Resolve(t.Context(), source)
			if !errors.Is(err, tc.want) || (err == nil && got != digest) {
				t.Errorf("resolve: %q, %v; want %v", got, err, tc.want)
			}
			if _, err := summary(t.Context(), c, source, digest); !errors.Is(err, tc.want) {
				t.Errorf("open: %v, want %v", err, tc.want)
			}
		})
	}
}

// TestPullSecretsRunNoPrograms: other users write pull secrets, and a Docker configuration can name programs to run.
func TestPullSecretsRunNoPrograms(t *testing.T) {
	folder := t.TempDir()
	ran := filepath.Join(folder, "ran")
	program := filepath.Join(folder, "docker-credential-evil")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	r := newRegistry(t)
	push(t, catalogDir(t), r.image("v1"))
	for name, text := range map[string]string{
		"a store": `{"credsStore":"evil"}`, "a helper": fmt.Sprintf(`{"credHelpers":{%q:"evil"}}`, r.host),
	} {
		source := oci.Source{Image: r.image("v1"), Access: oci.Access{DockerConfig: []byte(text)}}
		if _, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), source); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("%s: the program ran", name)
		}
	}
}

// file is an entry of a layer.
type file struct {
	name, content string
	link          string
}

func layered(t *testing.T, layers ...[]file) v1.Image {
	t.Helper()
	img := empty.Image
	for _, files := range layers {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, f := range files {
			header := &tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: 0o644, Typeflag: tar.TypeReg}
			if f.link != "" {
				header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
			}
			if err := w.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, f.content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser,
			error) {
			return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			t.Fatal(err)
		}
	}
	img, err := mutate.Config(img, v1.Config{Labels: map[string]string{oci.ConfigsLabel: "/configs"}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestLayers(t *testing.T) {
	graph := func(versions string) string { return catalogtest.Graph("p", versions) }
	tests := map[string]struct {
		layers [][]file
		want   string
		err    error
	}{
		"files elsewhere do not matter": {
			layers: [][]file{{{name: "etc/passwd", content: "root"}, {name: "bin/sh", link: "busybox"},
				{name: "./configs/p/c.json", content: graph("1.0.0")}}},
			want: "1.0.0",
		},
		"an upper layer replaces a file": {
			layers: [][]file{{{name: "configs/c.json", content: graph("1.0.0")}},
				{{name: "/configs/c.json", content: graph("2.0.0")}}},
			want: "2.0.0",
		},
		"a whiteout removes a file": {
			layers: [][]file{{{name: "configs/old.json", content: graph("1.0.0")}},
				{{name: "configs/.wh.old.json"}, {name: "configs/c.json", content: graph("2.0.0")}}},
			want: "2.0.0",
		},
		"a whiteout removes a folder": {
			layers: [][]file{{{name: "configs/a/b/old.json", content: graph("1.0.0")}},
				{{name: "configs/.wh.a"}, {name: "configs/c.json", content: graph("2.0.0")}}},
			want: "2.0.0",
		},
		"an opaque folder hides what is below": {
			layers: [][]file{{{name: "configs/a/old.json", content: graph("1.0.0")}},
				{{name: "configs/a/.wh..wh..opq"}, {name: "configs/a/c.json", content: graph("2.0.0")}}},
			want: "2.0.0",
		},
		"a way out of the folder": {
			layers: [][]file{{{name: "configs/../../etc/c.json", content: graph("1.0.0")}}},
			err:    catalogs.ErrNotCatalog,
		},
		"a link": {
			layers: [][]file{{{name: "configs/c.json", link: "/etc/passwd"}}}, err: catalogs.ErrNotCatalog,
		},
		"nothing there": {layers: [][]file{{{name: "etc/passwd", content: "root"}}}, err: catalogs.ErrNotCatalog},
	}
	r := newRegistry(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			digest := write(t, r.image("x"), layered(t, tc.layers...))
			got, err := summary(t.Context(), oci.NewClient(oci.Options{}), oci.Source{Image: r.image("x")}, digest)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if err == nil && got.Packages[0].Versions[0] != tc.want {
				t.Errorf("got %+v, want version %s", got.Packages[0], tc.want)
			}
		})
	}
}

func TestSizeIsBounded(t *testing.T) {
	r, dir := newRegistry(t), catalogDir(t)
	digest := push(t, dir, r.image("v1"))
	c := oci.NewClient(oci.Options{MaxBytes: 5000})
	if _, err := summary(t.Context(), c, oci.Source{Image: r.image("v1")}, digest); !errors.Is(err, oci.ErrTooLarge) {
		t.Errorf("image: %v", err)
	}
	local, err := c.Resolve(t.Context(), oci.Source{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := summary(t.Context(), c, oci.Source{Directory: dir}, local); !errors.Is(err, oci.ErrTooLarge) {
		t.Errorf("directory: %v", err)
	}
}

func TestCache(t *testing.T) {
	r, cache := newRegistry(t), t.TempDir()
	c := oci.NewClient(oci.Options{CacheDir: cache, CacheEntries: 1, Backoff: time.Millisecond})
	source := oci.Source{Image: r.image("v1")}
	digest := push(t, catalogDir(t), r.image("v1"))
	want, err := summary(t.Context(), c, source, digest)
	if err != nil {
		t.Fatal(err)
	}

	r.onRequest(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
	got, err := summary(t.Context(), c, source, digest)
	if err != nil {
		t.Fatalf("the registry is away, the catalog was read before: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	files, err := filepath.Glob(cache + "/*")
	if err != nil || len(files) != 1 {
		t.Fatalf("cache holds %v, %v", files, err)
	}
	if err := os.Truncate(files[0], 100); err != nil {
		t.Fatal(err)
	}
	if _, err := summary(t.Context(), c, source, digest); err == nil {
		t.Error("a damaged copy was believed")
	}
	r.onRequest(nil)
	if _, err := summary(t.Context(), c, source, digest); err != nil {
		t.Errorf("a damaged copy was not replaced: %v", err)
	}

	other := t.TempDir()
	writeFile(t, other+"/c.json", catalogtest.Graph("p", "1.0.0"))
	if _, err := summary(t.Context(), c, source, push(t, other, r.image("v2"))); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(cache + "/*"); len(left) != 1 || left[0] == files[0] {
		t.Errorf("the older catalog was not evicted: %v", left)
	}
}

func TestDirectory(t *testing.T) {
	c, dir := oci.NewClient(oci.Options{}), catalogDir(t)
	source := oci.Source{Directory: dir}
	digest, err := c.Resolve(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := c.Resolve(t.Context(), oci.Source{Directory: catalogDir(t)}); other != digest {
		t.Error("the same catalog in another place has another digest")
	}
	writeFile(t, dir+"/more.json", catalogtest.Graph("p", "1.0.0"))
	if changed, _ := c.Resolve(t.Context(), source); changed == digest {
		t.Error("a new file does not change the digest")
	}
	if _, err := summary(t.Context(), c, source, digest); !errors.Is(err, oci.ErrDigestMismatch) {
		t.Errorf("changed since: %v", err)
	}
	writeFile(t, dir+"/more.json", "{")
	if _, err := summary(t.Context(), c, source, digest); !errors.Is(err, oci.ErrDigestMismatch) {
		t.Errorf("changed to something broken: %v", err)
	}
	if err := os.Symlink("/etc/hostname", dir+"/link.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), source); err == nil {
		t.Error("a link out of the directory was followed")
	}
	if _, err := c.Resolve(t.Context(), oci.Source{Directory: dir + "/none"}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
}

func TestDirectoryMountedFromAConfigMap(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/..2026/c.json", catalogtest.Graph("p", "1.0.0"))
	if err := errors.Join(os.Symlink("..2026", dir+"/..data"), os.Symlink("..data/c.json", dir+"/c.json")); err != nil {
		t.Fatal(err)
	}
	c, source := oci.NewClient(oci.Options{}), oci.Source{Directory: dir}
	digest, err := c.Resolve(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := summary(t.Context(), c, source, digest); err != nil || len(got.Packages) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

const annotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: p
  operators.operatorframework.io.bundle.channels.v1: stable
`

func TestBundle(t *testing.T) {
	r, dir := newRegistry(t), t.TempDir()
	writeFile(t, dir+"/metadata/annotations.yaml", annotations)
	writeFile(t, dir+"/manifests/b.yaml", "kind: B\n")
	writeFile(t, dir+"/manifests/a.json", `{"kind":"A"}`)
	writeFile(t, dir+"/manifests/README.md", "hello")
	c := oci.NewClient(oci.Options{})
	digest, err := c.PushBundle(t.Context(), dir, r.image("b"), oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.PushBundle(t.Context(), dir, r.image("c"), oci.Access{}); again != digest {
		t.Errorf("digests %s and %s of the same bundle", digest, again)
	}
	got, err := c.BundleObjects(t.Context(), r.host+"/team/catalog@"+digest, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]byte{[]byte(`{"kind":"A"}`), []byte(`{"kind":"B"}`)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNotABundle(t *testing.T) {
	r := newRegistry(t)
	c := oci.NewClient(oci.Options{})
	for name, files := range map[string]map[string]string{
		"no annotations": {"manifests/a.yaml": "kind: A"},
		"no manifests":   {"metadata/annotations.yaml": annotations},
		"another type": {"manifests/a.yaml": "kind: A",
			"metadata/annotations.yaml": strings.ReplaceAll(annotations, "registry+v1", "helm+v1")},
		"no package": {"manifests/a.yaml": "kind: A",
			"metadata/annotations.yaml": strings.ReplaceAll(annotations, "package.v1: p", "package.v1: ''")},
		"annotations odd":  {"manifests/a.yaml": "kind: A", "metadata/annotations.yaml": "- 1"},
		"annotations void": {"manifests/a.yaml": "kind: A", "metadata/annotations.yaml": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range files {
				writeFile(t, filepath.Join(dir, file), content)
			}
			if _, err := c.PushBundle(t.Context(), dir, r.image("b"), oci.Access{}); !errors.Is(err, oci.ErrNotBundle) {
				t.Errorf("push: %v", err)
			}
		})
	}
	img, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.image("x"), img)
	if _, err := c.BundleObjects(t.Context(), r.image("x"), oci.Access{}); !errors.Is(err, oci.ErrNotBundle) {
		t.Errorf("read: %v", err)
	}
}
