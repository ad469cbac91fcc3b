// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
)

// TestPathsAreValidAndShortest compares Path with an independent algorithm, all-pairs distances by relaxation,
// on random graphs: each step of a path must be an edge, no path must be longer than necessary, and none must
// be missing.
func TestPathsAreValidAndShortest(t *testing.T) {
	for seed := range uint64(400) {
		p := randomPackage(rand.New(rand.NewPCG(seed, 1)))
		c := p.Channels["c"]
		skipped := c.listSkipped()
		clean, loose := distances(p, c, skipped), distances(p, c, nil)
		for _, from := range c.Entries {
			for _, to := range c.Entries {
				path, err := p.Path("c", from.Name, to.Name)
				want, reachable := clean[from.Name][to.Name], true
				if _, ok := clean[from.Name][to.Name]; !ok {
					want, reachable = loose[from.Name][to.Name], loose[from.Name][to.Name] > 0
				}
				if from.Name == to.Name {
					want, reachable = 0, true
				}
				if reachable != (err == nil) || len(path) != want {
					t.Fatalf("seed %d: %s to %s: path %v (%v), want %d steps, reachable %t", seed, from.Name, to.Name,
						path, err, want, reachable)
				}
				at := from.Name
				for _, next := range path {
					if !edge(p, c, at, next) {
						t.Fatalf("seed %d: %s cannot be replaced by %s", seed, at, next)
					}
					at = next
				}
			}
		}
	}
}

func randomPackage(r *rand.Rand) *Package {
	n := 2 + r.IntN(12)
	p := &Package{Name: "p", DefaultChannel: "c", Channels: map[string]*Channel{"c": {Name: "c"}},
		Bundles: map[string]*Bundle{}}
	name := func(i int) string { return fmt.Sprintf("b%02d", i) }
	for i := range n {
		e := Entry{Name: name(i)}
		if i > 0 && r.IntN(4) > 0 {
			e.Replaces = name(r.IntN(i))
		}
		for j := range i {
			if r.IntN(8) == 0 {
				e.Skips = append(e.Skips, name(j))
			}
		}
		if i > 0 && r.IntN(4) == 0 {
			low := r.IntN(i)
			e.SkipRange = fmt.Sprintf(">=1.%d.0 <1.%d.0", low, low+1+r.IntN(i-low))
		}
		p.Channels["c"].Entries = append(p.Channels["c"].Entries, e)
		p.Bundles[e.Name] = &Bundle{Name: e.Name, Version: semver.Version{Major: 1, Minor: uint64(i)}}
	}
	return p
}

// edge repeats OLM v0's rule from its documentation.
func edge(p *Package, c *Channel, from, to string) bool {
	e, _ := c.Entry(to)
	if from == to {
		return false
	}
	if e.Replaces == from || slices.Contains(e.Skips, from) {
		return true
	}
	return e.SkipRange != "" && semver.MustParseRange(e.SkipRange)(p.Bundles[from].Version)
}

// distances relaxes until nothing changes; avoided bundles can be ends but not intermediate steps.
func distances(p *Package, c *Channel, avoid map[string]bool) map[string]map[string]int {
	d := map[string]map[string]int{}
	for _, a := range c.Entries {
		d[a.Name] = map[string]int{}
		for _, b := range c.Entries {
			if edge(p, c, a.Name, b.Name) {
				d[a.Name][b.Name] = 1
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, via := range c.Entries {
			if !avoid[via.Name] && relax(d, via.Name) {
				changed = true
			}
		}
	}
	return d
}

func relax(d map[string]map[string]int, via string) bool {
	changed := false
	for from := range d {
		first, ok := d[from][via]
		if !ok {
			continue
		}
		for to, rest := range d[via] {
			if old, known := d[from][to]; !known || first+rest < old {
				d[from][to] = first + rest
				changed = true
			}
		}
	}
	return changed
}
