// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
)

func load(t *testing.T, content string) *serve.Catalog {
	t.Helper()
	c, err := serve.Load("h", catalogs.SingleFile("f", strings.NewReader(content)), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestLoadLeavesNoFiles(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    error
	}{
		"a catalog": {content: catalogtest.Graph("p", "1.0.0")},
		"none":      {content: "{}", want: catalogs.ErrNotCatalog},
		"two heads": {content: catalogtest.Graph("p", "1.0.0\n1.1.0"), want: catalogs.ErrInvalidPackage},
		"metadata that is none": {
			content: strings.Replace(catalogtest.Graph("p", "1.0.0"), `"properties":[`,
				`"properties":[{"type":"olm.csv.metadata","value":[]},`, 1),
			want: errAny,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := serve.Load("h", catalogs.SingleFile("f", strings.NewReader(test.content)), dir)
			if (err == nil) != (test.want == nil) || (!errors.Is(err, test.want) && !errors.Is(test.want, errAny)) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if c != nil {
				if c.Packages() != 1 {
					t.Errorf("%d packages", c.Packages())
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
	if _, err := serve.Load("h", nil, filepath.Join(t.TempDir(), "ghost")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

var errAny = errors.New("any error")

// TestSetCatalog replaces a catalog by another catalog, and by a view, under the same address.
func TestSetCatalog(t *testing.T) {
	s := serve.New(serve.Options{})
	t.Cleanup(s.Close)
	addr, err := s.SetCatalog("c", load(t, catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0")), 0)
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, addr)
	if diff := cmp.Diff([]string{"p.v1.0.0<", "p.v1.1.0<p.v1.0.0"}, bundles(t, conn)); diff != "" {
		t.Error(diff)
	}
	again, err := s.SetCatalog("c", load(t, catalogtest.Graph("p", "2.0.0")), 0)
	if err != nil || again != addr {
		t.Fatalf("address %q (%v), it was %q", again, err, addr)
	}
	if diff := cmp.Diff([]string{"p.v2.0.0<"}, bundles(t, conn)); diff != "" {
		t.Error(diff)
	}
	if got := set(t, s, "c", hop(t, "", "p.v1.0.0"), 0); got != addr {
		t.Errorf("address %q, it was %q", got, addr)
	}
	if diff := cmp.Diff([]string{"p.v1.0.0<"}, bundles(t, conn)); diff != "" {
		t.Error(diff)
	}
	s.Close()
	if _, err := s.SetCatalog("c", load(t, catalogtest.Graph("p", "1.0.0")), 0); !errors.Is(err, serve.ErrClosed) {
		t.Errorf("a closed server accepts a catalog: %v", err)
	}
}

// TestConcurrentReaders lets several clients read messages of different sizes concurrently; each must get
// complete messages.
func TestConcurrentReaders(t *testing.T) {
	var content strings.Builder
	if err := catalogtest.Write(&content, catalogtest.Options{Packages: 8, Versions: 6,
		SchemaBytes: 9000}); err != nil {
		t.Fatal(err)
	}
	s := serve.New(serve.Options{})
	t.Cleanup(s.Close)
	addr, err := s.SetCatalog("c", load(t, content.String()), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := bundles(t, dial(t, addr))
	if len(want) != 48 {
		t.Fatalf("%d bundles", len(want))
	}
	slices.Sort(want)
	done := make(chan error)
	for i := range 4 {
		conn := dial(t, addr)
		go func() {
			for n := range 20 {
				name := catalogtest.BundleName((n+i)%8, n%6)
				b, err := api.NewRegistryClient(conn).GetBundle(t.Context(), &api.GetBundleRequest{
					PkgName: catalogtest.PackageName((n + i) % 8), ChannelName: "stable", CsvName: name,
				})
				if err == nil && (b.GetCsvName() != name || len(b.GetObject()) != 2 ||
					!strings.Contains(b.GetCsvJson(), name)) {
					err = errors.New("half a message for " + name)
				}
				if err != nil {
					done <- err
					return
				}
				if _, err := list(t.Context(), conn); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
