// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package viewserver_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/viewserver"
)

func TestMeasure(t *testing.T) {
	catalog := catalogtest.Options{Packages: 4, Versions: 3, SchemaBytes: 1 << 10}
	section, err := viewserver.Measure(t.Context(), t.Output(),
		viewserver.Options{Runs: 1, Large: catalog, Small: catalog})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range section.Rows {
		if row.Ours.String() == "" || row.Peer.String() == "" || row.Ratio <= 0 {
			t.Errorf("%s: ours %s, peer's %s, ratio %g", row.Name, row.Ours, row.Peer, row.Ratio)
		}
	}
	t.Log(section.Detail)
}
