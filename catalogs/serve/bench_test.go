// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
)

// BenchmarkLoad reads a tenth of a large public catalog.
func BenchmarkLoad(b *testing.B) {
	var content bytes.Buffer
	if err := catalogtest.Write(&content, catalogtest.Options{Packages: 30, Versions: 30, SchemaBytes: 20 << 10}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(content.Len()))
	for b.Loop() {
		c, err := serve.Load("h", catalogs.SingleFile("f", bytes.NewReader(content.Bytes())), b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
