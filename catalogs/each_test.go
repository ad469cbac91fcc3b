// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

// TestReadEach compares the bundles that are passed one by one with the result of reading the whole package.
func TestReadEach(t *testing.T) {
	var content strings.Builder
	if err := catalogtest.Write(&content, catalogtest.Options{Packages: 7, Versions: 5,
		SchemaBytes: 3000}); err != nil {
		t.Fatal(err)
	}
	files := func() catalogs.Files { return catalogs.SingleFile("f", strings.NewReader(content.String())) }
	want, err := catalogs.ReadAll(files())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	taken := map[string]*catalogs.Bundle{}
	got, err := catalogs.ReadEach(files(), func(pkg string, b *catalogs.Bundle) error {
		mu.Lock()
		defer mu.Unlock()
		taken[pkg+" "+b.Name] = b
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range want {
		for _, b := range p.Bundles {
			if diff := cmp.Diff(b, taken[p.Name+" "+b.Name]); diff != "" {
				t.Errorf("%s differs: %s", b.Name, diff)
			}
			delete(taken, p.Name+" "+b.Name)
			b.Objects, b.RelatedImages = nil, nil
		}
	}
	if len(taken) > 0 {
		t.Errorf("%d bundles more were handed out", len(taken))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the graphs differ: %s", diff)
	}
}

// TestReadEachOf compares one package out of many with the result of reading the whole package.
func TestReadEachOf(t *testing.T) {
	var content strings.Builder
	o := catalogtest.Options{Packages: 4, Versions: 5, SchemaBytes: 3000}
	if err := catalogtest.Write(&content, o); err != nil {
		t.Fatal(err)
	}
	files := func() catalogs.Files { return catalogs.SingleFile("f", strings.NewReader(content.String())) }
	want, err := catalogs.ReadPackage(files(), catalogtest.PackageName(2))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	taken := map[string]*catalogs.Bundle{}
	got, err := catalogs.ReadEachInPackage(files(), catalogtest.PackageName(2), func(b *catalogs.Bundle) error {
		mu.Lock()
		defer mu.Unlock()
		taken[b.Name] = b
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Bundles, taken); diff != "" {
		t.Errorf("the bundles differ: %s", diff)
	}
	for _, b := range want.Bundles {
		b.Objects, b.RelatedImages = nil, nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the graphs differ: %s", diff)
	}
	_, err = catalogs.ReadEachInPackage(files(), "none", func(b *catalogs.Bundle) error {
		t.Errorf("%s was handed out", b.Name)
		return nil
	})
	if !errors.Is(err, catalogs.ErrNoPackage) {
		t.Errorf("of a package that is not there: %v", err)
	}
}

func TestReadEachFails(t *testing.T) {
	good := catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0")
	enough := errors.New("enough")
	for name, test := range map[string]struct {
		content string
		take    error
		want    error
		text    string
	}{
		"empty":     {want: catalogs.ErrNotCatalog},
		"broken":    {content: good + "{", want: catalogs.ErrNotCatalog, text: `"f": document 5`},
		"no JSON":   {content: good + "{]}", want: catalogs.ErrNotCatalog, text: `"f": document 5`},
		"no schema": {content: good + "{}", want: catalogs.ErrNotCatalog, text: `"f": document 5`},
		"twice":     {content: good + good, want: catalogs.ErrInvalidPackage, text: "declared twice"},
		"bad bundle": {content: good + `{"schema":"olm.bundle","package":"p","name":"x"}`,
			want: catalogs.ErrInvalidPackage, text: "0 properties olm.package"},
		"taker fails": {content: good, take: enough, want: enough},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := catalogs.ReadEach(catalogs.SingleFile("f", strings.NewReader(test.content)),
				func(string, *catalogs.Bundle) error { return test.take })
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v with %q", err, test.want, test.text)
			}
		})
	}
}

// TestReadEachStopsEarly reads a catalog without an end.
func TestReadEachStopsEarly(t *testing.T) {
	good := catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0")
	enough := errors.New("enough")
	endless := func(visit func(string, io.Reader) error) error {
		for {
			if err := visit("f", strings.NewReader(good)); err != nil {
				return err
			}
		}
	}
	if _, err := catalogs.ReadEach(endless, func(string, *catalogs.Bundle) error { return enough }); !errors.Is(err,
		enough) {
		t.Errorf("error %v, want %v", err, enough)
	}
}
