// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestRoutesEqualPaths compares the routes with the single paths, for entries and for bundles that have left
// the catalog.
func TestRoutesEqualPaths(t *testing.T) {
	for seed := range uint64(400) {
		p := randomPackage(rand.New(rand.NewPCG(seed, 1)))
		c := p.Channels["c"]
		head, err := c.Head()
		installed := []Installed{{Name: "gone", Version: "1.1.5"}, {Name: "unknown"}}
		routes, routesErr := p.Routes("c", installed...)
		if (err == nil) != (routesErr == nil) || (err != nil && !errors.Is(routesErr, ErrInvalidPackage)) {
			t.Fatalf("seed %d: head: %v, routes: %v", seed, err, routesErr)
		}
		if err != nil {
			continue
		}
		for _, e := range c.Entries {
			installed = append(installed, Installed{Name: e.Name})
		}
		if len(routes) != len(installed) {
			t.Fatalf("seed %d: %d routes, want %d", seed, len(routes), len(installed))
		}
		for _, i := range installed {
			want := Route{Hops: -1}
			if path, err := p.PathFrom("c", i, head); err == nil {
				want = Route{Hops: len(path)}
				if len(path) > 0 {
					want.Next = path[0]
				}
			}
			if got := routes[i.Name]; got != want {
				t.Errorf("seed %d: from %s: got %+v, want %+v", seed, i.Name, got, want)
			}
		}
	}
}
