// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

func manifest(name, version string) string {
	return "apiVersion: boilerplate.bellwether.dev/v1alpha1\nkind: Convention\nname: " + name + "\nversion: " +
		version + "\ndescription: For tests.\nfiles: [{path: a, template: files/a, kind: owned}]\n"
}

// folder is a convention in a folder.
func folder(t *testing.T, version, text string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{convention.ManifestName: manifest("org", version),
		convention.ReadmeName: "# org\n", "files/a": text} {
		file = filepath.Join(dir, file)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func startRegistry(t *testing.T) (string, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)),
		registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/org", server
}

func push(t *testing.T, dir, reference string) string {
	t.Helper()
	digest, err := Push(t.Context(), dir, reference, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func newKey(t *testing.T) (*sign.Signer, []byte) {
	t.Helper()
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(pair.Private, func() ([]byte, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	return signer, pair.Public
}

func TestRegistry(t *testing.T) {
	repo, server := startRegistry(t)
	first := push(t, folder(t, "0.1.0", "1\n"), repo+":0.1.0")
	use := subscription.Use{Name: "org", Source: "oci://" + repo + ":0.1.0"}
	l := &Loader{Client: cached(t.TempDir())}
	found, err := l.Load(t.Context(), use, nil)
	if err != nil || found.Use.Digest != first || found.Use.Version != "0.1.0" {
		t.Fatalf("got %+v, %v", found, err)
	}
	locked := &subscription.Locked{Use: found.Use}
	// Another user moves the tag.
	push(t, folder(t, "0.1.0", "evil\n"), repo+":0.1.0")
	if _, err := l.Load(t.Context(), use, locked); !errors.Is(err, ErrMoved) {
		t.Errorf("a moved tag: %v", err)
	}
	pinned, err := l.Load(t.Context(), found.Use, locked)
	if err != nil || pinned.Digest != found.Digest {
		t.Errorf("by digest: %+v, %v", pinned, err)
	}
	push(t, folder(t, "0.2.0", "2\n"), repo+":0.1.0")
	if next, err := l.Load(t.Context(), use, locked); err != nil || next.Version != "0.2.0" {
		t.Errorf("a tag that is followed: %v, %v", next, err)
	}
	server.Close()
	if _, err := l.Load(t.Context(), found.Use, locked); err != nil {
		t.Errorf("without the registry: %v", err)
	}
	if _, err := (&Loader{}).Load(t.Context(), found.Use, locked); !errors.Is(err, oci.ErrUnreachable) {
		t.Errorf("without the cache: %v", err)
	}
}

// TestSignatures checks that content without a signature of the key is refused before it is unpacked.
func TestSignatures(t *testing.T) {
	repo, server := startRegistry(t)
	digest := push(t, folder(t, "0.1.0", "1\n"), repo+":0.1.0")
	signer, public := newKey(t)
	_, other := newKey(t)
	use := subscription.Use{Name: "org", Source: "oci://" + repo + ":0.1.0"}
	load := func(cache string, keys ...[]byte) error {
		_, err := (&Loader{Keys: keys, Client: cached(cache)}).Load(t.Context(), use, nil)
		return err
	}
	if err := load("", public); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	bundle, err := signer.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.NewClient(oci.Options{}).Attach(t.Context(), repo+"@"+digest, oci.SignatureArtifact(bundle),
		oci.Access{}); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := errors.Join(load("", public), load("", other, public), load(cache, public)); err != nil {
		t.Errorf("signed: %v", err)
	}
	if err := load("", other); !errors.Is(err, oci.ErrBadSignature) {
		t.Errorf("by another key: %v", err)
	}
	server.Close()
	use.Digest = digest
	if err := load(cache, public); err != nil {
		t.Errorf("from the cache: %v", err)
	}
	if err := load(cache, other); err == nil {
		t.Error("the cache gives what another key signed")
	}
}

// TestABrokenCacheIsNotTaken changes each byte of the content of the cache.
func TestABrokenCacheIsNotTaken(t *testing.T) {
	repo, server := startRegistry(t)
	digest := push(t, folder(t, "0.1.0", "1\n"), repo+":0.1.0")
	use := subscription.Use{Name: "org", Source: "oci://" + repo + ":0.1.0", Digest: digest}
	cache := t.TempDir()
	want, err := (&Loader{Client: cached(cache)}).Load(t.Context(), use, nil)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	kept, err := filepath.Glob(filepath.Join(cache, "*.tar.gz"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the cache has %v: %v", kept, err)
	}
	text, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		broken := bytes.Clone(text)
		broken[i] ^= 0x55
		if err := os.WriteFile(kept[0], broken, 0o600); err != nil {
			t.Fatal(err)
		}
		// Some bytes of the gzip header have no meaning.
		got, err := (&Loader{Client: cached(cache)}).Load(t.Context(), use, nil)
		if err == nil && got.Digest != want.Digest {
			t.Fatalf("byte %d was changed, and another convention is taken", i)
		}
	}
}

// TestHostileImages has archives that PushFolder never creates.
func TestHostileImages(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"a parent":    {{Name: "../a", Typeflag: tar.TypeReg}},
		"a link":      {{Name: "files/a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"a hard link": {{Name: "files/a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"a device":    {{Name: "files/a", Typeflag: tar.TypeChar}},
		"twice":       {{Name: "files/a", Typeflag: tar.TypeReg}, {Name: "files/a", Typeflag: tar.TypeReg}},
		"too large":   {{Name: "files/a", Typeflag: tar.TypeReg, Size: convention.MaxBytes + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, _ := startRegistry(t)
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range headers {
				err := w.WriteHeader(&h)
				if err == nil {
					_, err = w.Write(make([]byte, h.Size))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			img, err := mutate.AppendLayers(empty.Image, layer)
			if err != nil {
				t.Fatal(err)
			}
			tag, err := parseReference(repo + ":1")
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(tag, img); err != nil {
				t.Fatal(err)
			}
			use := subscription.Use{Name: "org", Source: "oci://" + repo + ":1"}
			if _, err := (&Loader{}).Load(t.Context(), use, nil); !errors.Is(err, oci.ErrNotFolder) &&
				!errors.Is(err, oci.ErrTooLarge) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func cached(dir string) *oci.Client { return oci.NewClient(oci.Options{CacheDir: dir}) }

func parseReference(reference string) (name.Reference, error) { return name.ParseReference(reference) }

func TestOtherSources(t *testing.T) {
	builtin := fstest.MapFS{"go/convention.yaml": {Data: []byte(manifest("go", "0.3.0"))},
		"go/README.md": {Data: []byte("# go\n")}, "go/files/a": {Data: []byte("a\n")}}
	dir := folder(t, "0.1.0", "1\n")
	l := &Loader{Builtin: builtin, Dir: filepath.Dir(dir)}
	for name, c := range map[string]struct {
		use  subscription.Use
		want string // the version
	}{
		"this program":        {subscription.Use{Name: "go", Source: "builtin"}, "0.3.0"},
		"not of this program": {subscription.Use{Name: "org", Source: "builtin"}, ""},
		"a folder":            {subscription.Use{Name: "org", Source: "./" + filepath.Base(dir)}, "0.1.0"},
		"an absolute folder":  {subscription.Use{Name: "org", Source: dir}, "0.1.0"},
		"another name":        {subscription.Use{Name: "go", Source: dir}, ""},
		"no folder":           {subscription.Use{Name: "org", Source: "./none"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := l.Load(t.Context(), c.use, nil)
			if c.want == "" {
				if !errors.Is(err, ErrNotFound) {
					t.Errorf("got %v, %v", found, err)
				}
				return
			}
			if err != nil || found.Version != c.want || found.Use.Digest != found.Digest {
				t.Errorf("got %v, %v", found, err)
			}
		})
	}
	_, err := Push(t.Context(), t.TempDir(), "127.0.0.1:1/a:b", oci.Access{})
	if !errors.Is(err, convention.ErrInvalid) {
		t.Errorf("an empty folder is pushed: %v", err)
	}
}
