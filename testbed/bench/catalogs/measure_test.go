// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package catalogs_test

import (
	"path/filepath"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/catalogs"
)

func TestMeasure(t *testing.T) {
	bundle, err := catalogs.LargestBundle(filepath.Join("..", "..", "..", "bundles", "bundletest", "published"))
	if err != nil {
		t.Fatal(err)
	}
	section, err := catalogs.Measure(t.Context(), t.Output(), catalogs.Options{
		Runs: 1, Bundle: bundle, Catalog: catalogtest.Options{Packages: 4, Versions: 3, SchemaBytes: 1 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 7; len(section.Rows) != want {
		t.Errorf("%d rows, want %d", len(section.Rows), want)
	}
	for _, row := range section.Rows {
		if row.Ours.String() == "" {
			t.Errorf("%s: nothing was measured", row.Name)
		}
	}
	t.Log(section.Detail)
}

func TestMeasureBundles(t *testing.T) {
	section, err := catalogs.MeasureBundles(t.Context(), t.Output(),
		catalogs.BundleOptions{Runs: 1, Packages: 1, Large: 3, Many: 40})
	if err != nil {
		t.Fatal(err)
	}
	if want := 3 * 4 * 2; len(section.Rows) != want {
		t.Errorf("%d rows, want %d", len(section.Rows), want)
	}
	for _, row := range section.Rows {
		if row.Ours.String() == "" || row.Peer.String() == "" || row.Ratio <= 0 {
			t.Errorf("%s: ours %s, peer's %s, ratio %g", row.Name, row.Ours, row.Peer, row.Ratio)
		}
	}
	t.Log(section.Detail)
}
