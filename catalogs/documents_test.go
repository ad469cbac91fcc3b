// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// TestDocuments reads the documents of a file, as a whole and byte by byte, so that each document is cut at
// every place.
func TestDocuments(t *testing.T) {
	document := func(name string) string { return `{"schema":"olm.package","name":"` + name + `"}` }
	for name, test := range map[string]struct {
		content string
		want    []string
		err     string
	}{
		"JSON objects": {content: document("a") + "\n\n" + document("b") + document("c"),
			want: []string{"a", "b", "c"}},
		"braces in a string": {content: `{"x":"}{","schema":"olm.package","name":"a"}` + document("b"),
			want: []string{"a", "b"}},
		"quotes in a string": {content: `{"x":"\"}\\","schema":"olm.package","name":"a"}` + document("b"),
			want: []string{"a", "b"}},
		"nested objects and lists": {content: `{"x":[{"y":[[]]}],"schema":"olm.package","name":"a"}` + document("b"),
			want: []string{"a", "b"}},
		"YAML documents": {content: "---\nschema: olm.package\nname: a\n---\n---\nschema: " +
			"olm.package\nname: b\n", want: []string{"a", "b"}},
		"YAML with a comment": {content: "---\nschema: olm.package\nname: a\n--- # next\nschema: " +
			"olm.package\nname: b", want: []string{"a", "b"}},
		"JSON between separators": {content: "---\n" + document("a") + "\n---\n" + document("b"),
			want: []string{"a", "b"}},
		"YAML after JSON": {content: document("a") + "\n---\nschema: olm.package\nname: b\n",
			want: []string{"a", "b"}},
		"YAML in braces": {content: "{schema: olm.package, name: a}", want: []string{"a"}},
		"an object that ends early": {content: document("a") + `{"x":"}`,
			err: "document 2: not a file-based catalog: it ends in the middle"},
		"broken YAML after YAML": {content: "---\nschema: olm.package\nname: a\n---\nschema: x\nname: a: b\n",
			err: "yaml: line 6: "},
		"broken YAML after JSON": {content: "\n" + document("a") + "\n{\n\"schema\": \"x\"}\n\n---\nschema: x\n" +
			"name: a: b\n", err: "yaml: line 8: "},
		"text after a separator": {content: "schema: olm.package\nname: a\n---b\n",
			err: "document 1: not a file-based catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, content := range []io.Reader{strings.NewReader(test.content),
				iotest.OneByteReader(strings.NewReader(test.content))} {
				summary, err := catalogs.ReadSummary(catalogs.SingleFile("f", content))
				if test.err != "" {
					if !errors.Is(err, catalogs.ErrNotCatalog) || !strings.Contains(err.Error(), test.err) {
						t.Errorf("error %v, want %q", err, test.err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range summary.Packages {
					got = append(got, p.Name)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestOtherPackagesAreNotDecoded reads a catalog with a bundle of another package that cannot be decoded.
func TestOtherPackagesAreNotDecoded(t *testing.T) {
	content := `{"schema":"olm.bundle","package":"other","name":"x","properties":7}` +
		catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0")
	p, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(content)), "p")
	if err != nil || len(p.Bundles) != 2 {
		t.Errorf("package %v, error %v, want a package of 2 bundles", p, err)
	}
	if _, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(content)), "other"); !errors.Is(err,
		catalogs.ErrNotCatalog) {
		t.Errorf("error %v, want that the bundle of its own package cannot be decoded", err)
	}
}

// TestManifestsInCatalogsAreNoBombs reads an alias bomb in a property of a bundle that contains a manifest.
func TestManifestsInCatalogsAreNoBombs(t *testing.T) {
	bomb := base64.StdEncoding.EncodeToString([]byte(untrustedtest.AliasBomb("spec")))
	content := catalogtest.Graph("p", "1.0.0") +
		`{"schema":"olm.bundle","package":"p","name":"p.v2.0.0","properties":[{"type":"olm.package",` +
		`"value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.bundle.object","value":{"data":"` + bomb + `"}}]}`
	untrustedtest.Bound(t, len(content), 4<<20, 100, func() {
		_, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(content)), "p")
		if !errors.Is(err, catalogs.ErrInvalidPackage) || !strings.Contains(err.Error(), "with its aliases expanded") {
			t.Errorf("got %v", err)
		}
	})
}

func TestPackagesAndDocumentsAreBounded(t *testing.T) {
	packages, documents := &strings.Builder{}, &strings.Builder{}
	for i := range 10_001 {
		fmt.Fprintf(packages, `{"schema":"olm.package","name":"p%d"}`, i)
	}
	documents.WriteString(`{"schema":"olm.package","name":"p"}`)
	for range 200_001 {
		documents.WriteString(`{"schema":"x"}`)
	}
	for says, content := range map[string]string{
		"more than 10000 packages": packages.String(), "more than 200000 documents": documents.String(),
	} {
		for way, read := range map[string]func(catalogs.Files) error{
			"summary": func(f catalogs.Files) error { _, err := catalogs.ReadSummary(f); return err },
			"graphs":  func(f catalogs.Files) error { _, err := catalogs.ReadGraphs(f); return err },
		} {
			err := read(catalogs.SingleFile("f", strings.NewReader(content)))
			if !errors.Is(err, catalogs.ErrNotCatalog) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want %q", way, err, says)
			}
		}
	}
}

// TestAliases reads the values of aliases, as opm does.
func TestAliases(t *testing.T) {
	const head = "schema: olm.bundle\npackage: p\nname: p.v1.0.0\n"
	version := `properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]` + "\n"
	for name, test := range map[string]struct {
		text, image string
	}{
		"an alias":       {head + version + "x: &i a\nimage: *i\n", "a"},
		"a merge":        {head + version + "x: &a {image: z}\n<<: *a\n", "z"},
		"an anchor only": {head + version + "image: &i a\n", "a"},
		"the signs in text": {head + version +
			"image: a\ndescription: 'this & that * those'\nnote: |\n  *bold* &amp; <<: *a\n", "a"},
		"JSON": {`{"schema": "olm.bundle", "package": "p", "name": "p.v1.0.0", "image": "&a *a", "properties": ` +
			`[{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]}`, "&a *a"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := catalogs.ReadAll(catalogs.SingleFile("c.yaml", strings.NewReader(
				"schema: olm.package\nname: p\ndefaultChannel: c\n---\n"+
					"{schema: olm.channel, package: p, name: c, entries: [{name: p.v1.0.0}]}\n---\n"+test.text)))
			if err != nil || len(all) != 1 || all[0].Bundles["p.v1.0.0"].Image != test.image {
				t.Errorf("got %+v, %v, want the image %q", all, err, test.image)
			}
		})
	}
}
