// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// repeated returns a catalog of one package and a number of other documents, which are created while they are read.
func repeated(documents int, document func(i int) string) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		i := -1
		next := readerFunc(func() string {
			if i++; i == 0 {
				return catalogtest.Graph("p", "1.0.0")
			}
			if i > documents {
				return ""
			}
			return document(i)
		})
		return visit("f", next)
	}
}

// readerFunc returns a reader of the results of f, up to the first empty text.
func readerFunc(f func() string) io.Reader {
	return &texts{next: f}
}

type texts struct {
	next func() string
	left string
}

func (r *texts) Read(p []byte) (int, error) {
	if r.left == "" {
		if r.left = r.next(); r.left == "" {
			return 0, io.EOF
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// hostile returns catalogs that take much memory for little text, or for much text that compresses well. documents,
// text and elements are the numbers of documents, of bytes in their texts, and of elements in their lists.
func hostile(documents, text, elements int) map[string]catalogs.Files {
	long := strings.Repeat("x", text)
	bundle := func(i int, more string) string {
		return fmt.Sprintf(`{"schema":"olm.bundle","package":"p","name":"p.v2.%d.0","image":"i","properties":[{"type":`+
			`"olm.package","value":{"packageName":"p","version":"2.%d.0"}}%s`, i, i, more)
	}
	list := strings.Repeat("{},", elements-1) + "{}"
	return map[string]catalogs.Files{
		"descriptions": repeated(documents, func(i int) string {
			return fmt.Sprintf(`{"schema":"olm.package","name":"p%d","description":"`, i) + long + `"}`
		}),
		"properties": repeated(documents, func(i int) string { return bundle(i, `,{"type":"x","value":"`+long+`"}]}`) }),
		"types":      repeated(documents, func(i int) string { return bundle(i, `,{"type":"`+long+`","value":1}]}`) }),
		"APIs": repeated(documents, func(i int) string {
			return bundle(i, strings.Repeat(`,{"type":"olm.gvk","value":{}}`, elements/6)+"]}")
		}),
		"images": repeated(documents, func(i int) string {
			return bundle(i, `],"relatedImages":[`+list+"]}")
		}),
		"entries": repeated(documents, func(i int) string {
			return fmt.Sprintf(`{"schema":"olm.channel","package":"p","name":"c%d","entries":[%s]}`, i, list)
		}),
		"deprecations": repeated(documents, func(int) string {
			return `{"schema":"olm.deprecations","package":"p","entries":[` + list + "]}"
		}),
		"blocks": repeated(documents, func(int) string {
			return `{"schema":"bellwether.dev/blocks","package":"p","blocks":[` + list + "]}"
		}),
		"names": repeated(documents, func(i int) string {
			return fmt.Sprintf(`{"schema":"olm.package","name":"%d%s"}`, i, long)
		}),
		"problems": repeated(1000*documents, func(int) string {
			return `{"schema":"olm.channel","package":"p","name":"stable","entries":[]}`
		}),
	}
}

// TestReadsAreBounded reads hostile catalogs within a budget, including catalogs with one document of the worst kind.
func TestReadsAreBounded(t *testing.T) {
	for kind, test := range map[string]struct {
		budget, decoding int
		catalogs         map[string]catalogs.Files
	}{
		"many documents": {8 << 20, 48 << 20, hostile(18, 4<<20, 60_000)},
		"one document":   {48 << 20, 112 << 20, hostile(1, 15<<20, 190_000)},
	} {
		ways := map[string]func(catalogs.Files) error{
			"summary": func(f catalogs.Files) error { _, err := catalogs.Budget(test.budget).ReadSummary(f); return err },
			"package": func(f catalogs.Files) error {
				_, err := catalogs.Budget(test.budget).ReadPackageWithManifests(f, "p", "p.v2.1.0")
				return err
			},
		}
		for name, files := range test.catalogs {
			for way, read := range ways {
				t.Run(kind+" "+way+" of "+name, func(t *testing.T) {
					untrustedtest.BoundPeak(t, test.budget+test.decoding, func() {
						if err := read(files); err != nil && !errors.Is(err, catalogs.ErrNotCatalog) &&
							!errors.Is(err, catalogs.ErrInvalidPackage) {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// TestBudgetIsNamed checks that the error names the document and the limit that it exceeds.
func TestBudgetIsNamed(t *testing.T) {
	for way, read := range map[string]func(catalogs.Files) error{
		"summary": func(f catalogs.Files) error { _, err := catalogs.Budget(8 << 20).ReadSummary(f); return err },
		"package": func(f catalogs.Files) error {
			_, err := catalogs.Budget(8<<20).ReadPackageWithManifests(f, "p")
			return err
		},
	} {
		err := read(hostile(4, 1, 190_000)["entries"])
		const want = `document 4: not a file-based catalog: with this document of package "p", what is needed of the ` +
			`catalog takes more than 8 MiB`
		if !errors.Is(err, catalogs.ErrNotCatalog) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", way, err, want)
		}
	}
}

// TestLargeCatalogsHaveRoom reads catalogs as large as the largest known catalogs, within a quarter of the budgets of
// the hub and the agent.
func TestLargeCatalogsHaveRoom(t *testing.T) {
	const hub, agent = catalogs.Budget(128<<20) / 4, catalogs.Budget(48<<20) / 4
	whole := func(o catalogtest.Options) catalogs.Files {
		var content strings.Builder
		if err := catalogtest.Write(&content, o); err != nil {
			t.Fatal(err)
		}
		return func(visit func(string, io.Reader) error) error {
			return visit("f", strings.NewReader(content.String()))
		}
	}
	public, versions := whole(catalogtest.Options{Packages: 300, Versions: 30, SchemaBytes: 100}),
		whole(catalogtest.Options{Packages: 1, Versions: 2000, SchemaBytes: 100})
	large := whole(catalogtest.Options{Packages: 1, Versions: 35, SchemaBytes: 700 << 10})
	var all []string
	for i := range 30 {
		all = append(all, catalogtest.BundleName(0, i))
	}
	for name, read := range map[string]func() error{
		"summary": func() error { _, err := agent.ReadSummary(public); return err },
		"2,000 versions": func() error {
			_, err := agent.ReadPackageWithManifests(versions, catalogtest.PackageName(0), all[0])
			return err
		},
		"a large bundle": func() error {
			_, err := agent.ReadPackageWithManifests(large, catalogtest.PackageName(0), all[0], all[1])
			return err
		},
		"30 large bundles": func() error {
			_, err := hub.ReadPackageWithManifests(large, catalogtest.PackageName(0), all...)
			return err
		},
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
