// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Joined is a head of a channel that was dangling: no entry replaced it, although it is not the highest head. To join
// it to the chain of the highest head, the entry Next was changed to replace Dangling instead of Former.
type Joined struct{ Channel, Dangling, Next, Former string }

// ReadPackageToImport reads the graph of a package and repairs forgotten edges: if a channel has several heads, each
// lower head is joined to the chain of the highest head. Package.Joined lists the joined heads. Bundles have no
// manifests. Errors are those of ReadPackage.
func ReadPackageToImport(files Files, name string) (*Package, error) {
	r := newReader(DefaultBudget, func(pkg string) bool { return pkg == name })
	r.canSkip, r.joinsHeads = newUnneededBundleFilter([]string{name}), true
	r.keepsProperty = func(p bundles.Property, _ string) bool {
		return p.Type != bundles.PropertyBundleObject && p.Type != bundles.PropertyCSVMetadata
	}
	if err := r.read(files); err != nil {
		return nil, err
	}
	return r.assemble(name)
}

// joinHeads joins the lower heads of all channels to the chain of the highest head. If the chain of a head does not
// meet the chain of the highest head, it stays a head, and Validate reports it. Validate also reports a channel with
// a cycle.
func (p *Package) joinHeads() {
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		heads := c.listHeads()
		hasBundle := func(bundle string) bool { return p.Bundles[bundle] != nil }
		// Validate reports a cycle and a head without a bundle.
		if len(heads) < 2 || c.findCycle() != nil || !allMatch(heads, hasBundle) {
			continue
		}
		slices.SortFunc(heads, func(a, b string) int {
			return cmp.Or(bundles.CompareVersions(p.Bundles[b].Version, p.Bundles[a].Version), cmp.Compare(b, a))
		})
		// The order puts higher heads nearer to the highest head.
		for _, dangling := range heads[1:] {
			if joined, ok := c.joinHead(dangling, heads[0]); ok {
				p.Joined = append(p.Joined, joined)
			}
		}
	}
}

func allMatch(names []string, matches func(string) bool) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !matches(n) })
}

// joinHead makes an entry of head's chain replace the dangling head: the entry above the bundle at which the two
// chains meet. It returns false if the chains do not meet.
func (c *Channel) joinHead(dangling, head string) (Joined, bool) {
	// above is the index of the entry that replaces a bundle in head's chain.
	above := map[string]int{}
	for current := head; current != ""; {
		i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == current })
		if i < 0 {
			break
		}
		current = c.Entries[i].Replaces
		above[current] = i
	}
	for current := dangling; current != ""; {
		entry, ok := c.Entry(current)
		if !ok {
			break
		}
		current = entry.Replaces
		// Chains that both end at the empty name do not meet.
		if i, isShared := above[current]; isShared && current != "" {
			c.Entries[i].Replaces = dangling
			return Joined{Channel: c.Name, Dangling: dangling, Next: c.Entries[i].Name, Former: current}, true
		}
	}
	return Joined{}, false
}
