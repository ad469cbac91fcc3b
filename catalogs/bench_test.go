// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

// The size of a large public catalog.
var large = catalogtest.Options{Packages: 300, Versions: 30, SchemaBytes: 20 << 10}

func largeCatalog(b *testing.B) []byte {
	var content bytes.Buffer
	if err := catalogtest.Write(&content, large); err != nil {
		b.Fatal(err)
	}
	return content.Bytes()
}

func BenchmarkReadPackage(b *testing.B) {
	content := largeCatalog(b)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		p, err := catalogs.ReadPackage(catalogs.SingleFile("f", bytes.NewReader(content)), catalogtest.PackageName(150))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(heldBytes(p), "heldB")
	}
}

func BenchmarkReadSummary(b *testing.B) {
	content := largeCatalog(b)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := catalogs.ReadSummary(catalogs.SingleFile("f", bytes.NewReader(content))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPath(b *testing.B) {
	var content bytes.Buffer
	if err := catalogtest.Write(&content, catalogtest.Options{Versions: 200}); err != nil {
		b.Fatal(err)
	}
	p, err := catalogs.ReadPackage(catalogs.SingleFile("f", &content), catalogtest.PackageName(0))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Path("", catalogtest.BundleName(0, 0), catalogtest.BundleName(0, 199)); err != nil {
			b.Fatal(err)
		}
	}
}

// heldBytes returns the size of the content that a package keeps in memory.
func heldBytes(p *catalogs.Package) float64 {
	n := 0
	for _, b := range p.Bundles {
		for _, o := range b.Objects {
			n += len(o)
		}
	}
	runtime.KeepAlive(p)
	return float64(n)
}
