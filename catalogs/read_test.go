// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const yamlCatalog = `---
schema: olm.package
name: p
defaultChannel: stable
description: Does things.
---
schema: olm.channel
package: p
name: stable
entries:
- name: p.v1.0.0
- name: p.v1.1.0
  replaces: p.v1.0.0
---
schema: olm.bundle
package: p
name: p.v1.0.0
image: registry.example.com/p:1.0.0
properties:
- type: olm.package
  value: {packageName: p, version: 1.0.0}
---
schema: olm.bundle
package: p
name: p.v1.1.0
image: ""
properties:
- type: olm.package
  value: {version: 1.1.0, packageName: p}
- type: olm.gvk
  value: {group: example.com, version: v1, kind: Thing}
- type: olm.bundle.object
  value: {data: YXBpVmVyc2lvbjogdjEKa2luZDogQ29uZmlnTWFwCg==}
---
schema: olm.deprecations
package: p
entries:
- reference: {schema: olm.bundle, name: p.v1.0.0}
  message: Loses data, go to 1.1.0.
---
schema: example.com/custom
package: p
anything: goes
`

func TestReadYAML(t *testing.T) {
	p, err := catalogs.ReadPackage(catalogs.SingleFile("catalog.yaml", strings.NewReader(yamlCatalog)), "p")
	if err != nil {
		t.Fatal(err)
	}
	b := p.Bundles["p.v1.1.0"]
	if diff := cmp.Diff(`{"apiVersion":"v1","kind":"ConfigMap"}`, string(b.Objects[0])); diff != "" {
		t.Errorf("object: %s", diff)
	}
	if diff := cmp.Diff(`{"packageName":"p","version":"1.1.0"}`, string(b.Properties[0].Value)); diff != "" {
		t.Errorf("property: %s", diff)
	}
	if diff := cmp.Diff([]catalogs.GVK{{Group: "example.com", Version: "v1", Kind: "Thing"}},
		b.Provides()); diff != "" {
		t.Errorf("provides: %s", diff)
	}
	if got := p.Bundles["p.v1.0.0"].Deprecation; got != "Loses data, go to 1.1.0." {
		t.Errorf("deprecation %q", got)
	}
}

// deprecations returns a document with an entry for each reference, which is a schema and a name.
func deprecations(references ...string) string {
	var entries []string
	for _, r := range references {
		schema, name, _ := strings.Cut(r, " ")
		entries = append(entries, fmt.Sprintf(`{"reference":{"schema":%q,"name":%q},"message":"m"}`, schema, name))
	}
	return `{"schema":"olm.deprecations","package":"p","entries":[` + strings.Join(entries, ",") + "]}"
}

func TestInvalidInput(t *testing.T) {
	good := catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0")
	bundle := func(name, version string) string {
		return fmt.Sprintf(
			`{"schema":"olm.bundle","package":"p","name":%q,"properties":[{"type":"olm.package",`+
				`"value":{"packageName":"p","version":%q}}]}`,
			name,
			version,
		)
	}
	tests := map[string]struct {
		content string
		want    error
		says    string
	}{
		"empty":       {content: "", want: catalogs.ErrNotCatalog, says: "no documents"},
		"white space": {content: " \n\n---\n", want: catalogs.ErrNotCatalog, says: "no documents"},
		"binary":      {content: "\x7fELF\x00\x01", want: catalogs.ErrNotCatalog},
		"prose":       {content: "Hello, world.", want: catalogs.ErrNotCatalog},
		"HTML":        {content: "<html><body>Sign in</body></html>", want: catalogs.ErrNotCatalog},
		"other JSON":  {content: `{"kind":"Pod"}`, want: catalogs.ErrNotCatalog, says: "no schema"},
		"JSON list":   {content: `[1,2]`, want: catalogs.ErrNotCatalog},
		"only other schemas": {content: `{"schema":"example.com/x"}`, want: catalogs.ErrNotCatalog,
			says: "none of them a package"},
		"JSON cut off": {content: good[:len(good)-20], want: catalogs.ErrNotCatalog},
		"YAML broken":  {content: "schema: olm.package\n name: [", want: catalogs.ErrNotCatalog},
		"another package": {content: catalogtest.Graph("q", "1.0.0"), want: catalogs.ErrNoPackage,
			says: "the catalog has q"},
		"two heads": {content: catalogtest.Graph("p", "1.0.0\n1.1.0"), want: catalogs.ErrInvalidPackage,
			says: "2 heads (p.v1.0.0, p.v1.1.0)"},
		"circle": {content: catalogtest.Graph("p", "1.0.0 replaces 1.1.0\n1.1.0 replaces 1.0.0"),
			want: catalogs.ErrInvalidPackage, says: "circle: p.v1.0.0 -> p.v1.1.0 -> p.v1.0.0"},
		"replaces itself": {content: catalogtest.Graph("p", "1.0.0 replaces 1.0.0"),
			want: catalogs.ErrInvalidPackage, says: "circle: p.v1.0.0 -> p.v1.0.0"},
		"stranded": {content: catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 skips 1.1.0"),
			want: catalogs.ErrInvalidPackage, says: "never meets p.v1.0.0"},
		"bad range": {content: catalogtest.Graph("p", "1.0.0 range sometimes"),
			want: catalogs.ErrInvalidPackage, says: `skipRange "sometimes"`},
		"bundle twice": {content: good + bundle("p.v1.0.0", "1.0.0"), want: catalogs.ErrInvalidPackage,
			says: `"p.v1.0.0" is declared twice`},
		"bundle in no channel": {content: good + bundle("p.v3.0.0", "3.0.0"), want: catalogs.ErrInvalidPackage,
			says: `"p.v3.0.0" is in no channel`},
		"version twice": {content: good + bundle("p.other", "1.0.0"), want: catalogs.ErrInvalidPackage,
			says: "the same version 1.0.0"},
		"version not semantic": {content: good + bundle("p.v3", "three"), want: catalogs.ErrInvalidPackage,
			says: `"three" is not semantic`},
		"bundle without version": {content: good + `{"schema":"olm.bundle","package":"p","name":"p.v3.0.0"}`,
			want: catalogs.ErrInvalidPackage, says: "0 properties olm.package"},
		"entry without bundle": {
			content: `{"schema":"olm.package","name":"p","defaultChannel":"c"}{"schema":"olm.channel",` +
				`"package":"p","name":"c","entries":[{"name":"ghost"}]}`,
			want: catalogs.ErrInvalidPackage,
			says: `entry "ghost" has no bundle`,
		},
		"default channel missing": {content: strings.ReplaceAll(good, `"defaultChannel":"stable"`,
			`"defaultChannel":"fast"`),
			want: catalogs.ErrInvalidPackage, says: `default channel "fast" does not exist; it has stable`},
		"package undeclared": {content: `{"schema":"olm.package","name":"q"}` + bundle("p.v1.0.0", "1.0.0"),
			want: catalogs.ErrInvalidPackage, says: "no olm.package document"},
		"package twice": {content: good + `{"schema":"olm.package","name":"p"}`, want: catalogs.ErrInvalidPackage,
			says: "declared twice"},
		"deprecation of nothing": {content: good +
			`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle",` +
			`"name":"ghost"},"message":"m"}]}`,
			want: catalogs.ErrInvalidPackage, says: `bundle "ghost", which does not exist`},
		"deprecation twice": {content: good + deprecations("olm.channel stable", "olm.bundle p.v1.0.0",
			"olm.channel stable"),
			want: catalogs.ErrInvalidPackage, says: `channel "stable" is deprecated twice`},
		"package deprecated twice": {content: good + deprecations("olm.package ", "olm.package "),
			want: catalogs.ErrInvalidPackage, says: "the package is deprecated twice"},
		"two documents of deprecations": {content: good + deprecations("olm.package ") +
			deprecations("olm.channel stable"),
			want: catalogs.ErrInvalidPackage, says: "two documents with the schema olm.deprecations"},
		"deprecated package with a name": {content: good + deprecations("olm.package p"),
			want: catalogs.ErrInvalidPackage, says: `the deprecation of the package has the name "p"`},
		"bundle object broken": {content: good +
			`{"schema":"olm.bundle","package":"p","name":"p.v3.0.0","properties":[{"type":"olm.package",` +
			`"value":{"packageName":"p","version":"3.0.0"}},{"type":"olm.bundle.object","value":{"data":"?"}}]}`,
			want: catalogs.ErrInvalidPackage, says: "olm.bundle.object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(tc.content)), "p")
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not say %q", err, tc.says)
			}
		})
	}
}

func TestReadErrorsAreReturned(t *testing.T) {
	gone := errors.New("connection reset")
	content := io.MultiReader(strings.NewReader(catalogtest.Graph("p", "1.0.0")), iotest.ErrReader(gone))
	_, err := catalogs.ReadPackage(catalogs.SingleFile("f", content), "p")
	if !errors.Is(err, gone) || errors.Is(err, catalogs.ErrNotCatalog) {
		t.Errorf("got %v, want the error of the reader alone", err)
	}
}

func TestOneDocumentIsBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(`{"schema":"olm.bundle","x":"`), io.LimitReader(zeros{}, 1<<30))
	_, err := catalogs.ReadPackage(catalogs.SingleFile("f", endless), "p")
	if !errors.Is(err, catalogs.ErrNotCatalog) || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestSummary(t *testing.T) {
	content := catalogtest.Graph("p", ladder) + catalogtest.Graph("sick", "1.0.0\n1.1.0")
	s, err := catalogs.ReadSummary(catalogs.SingleFile("f", strings.NewReader(content)))
	if err != nil {
		t.Fatal(err)
	}
	want := catalogs.PackageSummary{
		Name: "p", DefaultChannel: "stable", Versions: []string{"1.3.0", "1.2.0", "1.1.0", "1.0.0"},
		Channels: []catalogs.ChannelSummary{{Name: "stable", Head: "p.v1.3.0", HeadVersion: "1.3.0", Versions: 4}},
	}
	if diff := cmp.Diff(want, s.Packages[0]); diff != "" {
		t.Error(diff)
	}
	if got := s.Packages[1].Problem; !strings.Contains(got, "2 heads") {
		t.Errorf("problem of the sick package: %q", got)
	}
	if _, err := s.Package("pp"); !errors.Is(err, catalogs.ErrNoPackage) {
		t.Errorf("missing package: %v", err)
	}
}

func TestRequirements(t *testing.T) {
	value := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	b := &catalogs.Bundle{Name: "b", Properties: []bundles.Property{
		{Type: bundles.PropertyPackageRequired,
			Value: value(map[string]string{"packageName": "q", "versionRange": ">=1.0.0"})},
		{Type: bundles.PropertyGVKRequired, Value: value(catalogs.GVK{Group: "g", Version: "v1", Kind: "K"})},
		{Type: bundles.PropertyConstraint, Value: json.RawMessage(
			`{"failureMessage":"m","any":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"K"}},` +
				`{"package":{"packageName":"q","versionRange":"<2.0.0"}}]}}`,
		)},
		{Type: bundles.PropertyConstraint,
			Value: json.RawMessage(`{"failureMessage":"needs luck","cel":{"rule":"true"}}`)},
	}}
	rs, err := b.Requirements()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rs {
		got = append(got, r.String())
	}
	want := []string{
		"package q in >=1.0.0", "API K.v1.g",
		"any of (API K.v1.g; package q in <2.0.0)", "constraint needs luck",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(yamlCatalog))
	f.Add([]byte(catalogtest.Graph("p", ladder)))
	f.Add([]byte(catalogtest.Graph("p", "1.0.0 replaces 1.1.0\n1.1.0 replaces 1.0.0")))
	f.Add([]byte(`{"schema":"olm.package","name":"p"}---` + "\nschema: olm.channel\npackage: p\n"))
	f.Add([]byte("{\"Schema\":\"olm.package\"}\n---\n- 1\n"))
	for _, seed := range []string{
		`{"schema":"olm.channel","package":"p","name":"c","entries":[` + strings.Repeat("{},", 999) + "{}]}",
		`{"schema":"olm.package","name":"p","description":"` + strings.Repeat("x", 8<<10) + `"}`,
		`{"schema":"olm.bundle","package":"p","name":"p.v2.0.0","properties":[` + strings.Repeat(`{"type":"x"},`, 99) +
			"{}]}",
		`{"schema":"bellwether.dev/blocks","package":"p","blocks":[` + strings.Repeat("{},", 999) + "{}]}",
		"schema: olm.package\nname: p\n" + untrustedtest.AliasBomb("x"),
	} {
		f.Add([]byte(catalogtest.Graph("p", "1.0.0") + seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		untrustedtest.Bound(t, len(content), 8<<20, 8<<10, func() {
			files := func() catalogs.Files { return catalogs.SingleFile("f", bytes.NewReader(content)) }
			p, err := catalogs.ReadPackage(files(), "p")
			if _, sumErr := catalogs.ReadSummary(files()); err == nil && sumErr != nil {
				t.Errorf("the package reads but the summary does not: %v", sumErr)
			}
			if err != nil {
				return
			}
			if err := p.Validate(); err != nil {
				t.Errorf("the reader passed an invalid package: %v", err)
			}
			for name, c := range p.Channels {
				head, err := p.Head(name)
				if err != nil {
					t.Errorf("valid channel without a head: %v", err)
					continue
				}
				for _, e := range c.Entries {
					if _, err := p.Path(name, e.Name, head.Name); err != nil && !errors.Is(err, catalogs.ErrNoPath) {
						t.Errorf("path: %v", err)
					}
				}
			}
		})
	})
}
