// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
)

// BenchmarkLoad reads a tenth of a large public catalog.
func BenchmarkLoad(b *testing.B) {
	var content bytes.Buffer
	if err := catalogtest.Write(&content, catalogtest.Options{Packages: 30, Versions: 30,
		SchemaBytes: 20 << 10}); err != nil {
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

// BenchmarkListBundles lists a tenth of a large public catalog.
func BenchmarkListBundles(b *testing.B) {
	var content bytes.Buffer
	if err := catalogtest.Write(&content, catalogtest.Options{Packages: 30, Versions: 30,
		SchemaBytes: 20 << 10}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(content.Len()))
	c, err := serve.Load("h", catalogs.SingleFile("f", bytes.NewReader(content.Bytes())), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s := serve.New(serve.Options{})
	addr, err := s.SetCatalog("c", c, 0)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := list(b.Context(), conn); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
	if err := errors.Join(conn.Close(), c.Close()); err != nil {
		b.Fatal(err)
	}
}
