// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

func read(t testing.TB, version string) *bundles.Bundle {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "bundles", "grafana-operator", version)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the real bundles are not here: %v", err)
	}
	b, err := bundles.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// BenchmarkBreaks compares the largest real definition with its whole history.
func BenchmarkBreaks(b *testing.B) {
	newer := read(b, "5.9.2")
	var history []*bundles.Bundle
	for _, v := range []string{"5.6.3", "5.8.1", "5.9.0"} {
		history = append(history, read(b, v))
	}
	for b.Loop() {
		for _, d := range newer.CRDs {
			crd.Breaks(crd.Find(history, d.Name), d)
		}
	}
}

func TestRealBreaks(t *testing.T) {
	for _, d := range read(t, "5.9.2").CRDs {
		published := crd.Find([]*bundles.Bundle{read(t, "5.6.3"), read(t, "5.8.1"), read(t, "5.9.0")}, d.Name)
		for _, b := range crd.Breaks(published, d) {
			t.Logf("%s: %s (%v)", b.CRD, b, b.Of)
		}
	}
}
