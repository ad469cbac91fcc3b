// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package paging

import (
	"strings"
	"testing"
)

// TestMeasure measures a small fleet with all times divided by 60.
func TestMeasure(t *testing.T) {
	m, err := measure(t.Context(), t.Output(), Options{Sizes: []int{1, 4}, Phases: 2, Faster: 60})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range m.fleet.releases {
		for _, service := range services() {
			got, want := m.tallies[service][i], incidents(service, r)
			// pyrra pages once more where the outage is in its second pair of windows.
			tooMany := got.incidents > want && !strings.HasPrefix(service, "pyrra")
			if got.incidents < want || tooMany || got.resolves != got.incidents || !got.first.After(r.failed) ||
				!got.last.After(r.mended) {
				t.Errorf("%s, release on %d clusters: %+v, want %d incidents, resolved", service, r.clusters, got, want)
			}
		}
	}
	t.Log(m.report().Detail)
}
