// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
)

var update = flag.Bool("update", false, "write the golden files")

const repository = "registry.example.com/catalogs/main"

func digest(fill string) string { return "sha256:" + strings.Repeat(fill, 64) }

func catalog() []*catalogs.Package {
	manager := catalogs.RelatedImage{Name: "manager", Image: "quay.io/Example/echo@" + digest("a")}
	return []*catalogs.Package{
		{Name: "echo-operator", Bundles: map[string]*catalogs.Bundle{
			"echo-operator.v1.0.0": {
				Name: "echo-operator.v1.0.0", Version: semver.MustParse("1.0.0"),
				Image: "registry.example.com/bundles/echo@" + digest("1"),
				RelatedImages: []catalogs.RelatedImage{manager,
					{Image: "registry.example.com/bundles/echo@" + digest("1")}, {Name: "tagged", Image: "nginx:1.27"}},
			},
			"echo-operator.v1.1.0": {
				Name: "echo-operator.v1.1.0", Version: semver.MustParse("1.1.0"),
				Image:         "registry.example.com/bundles/echo@" + digest("2"),
				RelatedImages: []catalogs.RelatedImage{manager, {Name: "odd", Image: "Not an image"}},
			},
		}},
		{Name: "inline", Bundles: map[string]*catalogs.Bundle{
			"inline.v1.0.0": {Name: "inline.v1.0.0", Version: semver.MustParse("1.0.0"),
				RelatedImages: []catalogs.RelatedImage{manager}},
		}},
	}
}

func of(t *testing.T, packages []*catalogs.Package) []byte {
	t.Helper()
	text, err := sbom.NewCatalogSBOM(repository, digest("f"), packages)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOf(t *testing.T) {
	got := of(t, catalog())
	const golden = "testdata/catalog.cdx.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	for range 20 { // maps come in another order each time
		if !bytes.Equal(got, of(t, catalog())) {
			t.Fatal("the same catalog gives other bytes")
		}
	}
}

func TestCheck(t *testing.T) {
	good := string(of(t, catalog()))
	tests := map[string]struct {
		text   string
		change func([]*catalogs.Package)
		says   string
	}{
		"the same": {text: good},
		"of another digest": {text: strings.ReplaceAll(good, strings.Repeat("f", 64), strings.Repeat("e", 64)),
			says: "list of eeee"},
		"rubbish":        {text: "rubbish", says: "decode"},
		"another format": {text: `{"spdxVersion": "SPDX-2.3"}`, says: "list of nothing"},
		"a bundle more": {text: good, says: "v9.0.0 is missing", change: func(p []*catalogs.Package) {
			p[1].Bundles["inline.v9.0.0"] = &catalogs.Bundle{Name: "inline.v9.0.0", Version: semver.MustParse("9.0.0")}
		}},
		"a bundle less": {text: good, says: "the catalog has no bundle:inline/inline.v1.0.0",
			change: func(p []*catalogs.Package) {
				delete(p[1].Bundles, "inline.v1.0.0")
			}},
		"another image": {text: good, says: "consists of other images", change: func(p []*catalogs.Package) {
			p[1].Bundles["inline.v1.0.0"].RelatedImages[0].Image = "nginx:1.27"
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			packages := catalog()
			if tc.change != nil {
				tc.change(packages)
			}
			err := sbom.Check([]byte(tc.text), repository, digest("f"), packages)
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, sbom.ErrDiffers) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
		})
	}
	if err := sbom.Check([]byte(good), "mirror.example.com/catalogs/main", digest("f"), catalog()); err != nil {
		t.Errorf("a mirrored catalog: %v", err)
	}
}
