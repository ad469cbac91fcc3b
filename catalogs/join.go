// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Joined is a head of a channel that was dangling: no entry replaced it, although it is not the highest head. Since it
// was joined to the others, Next replaces it, which replaced Former before.
type Joined struct{ Channel, Dangling, Next, Former string }

// ReadPackageToImport reads the graph of a package as somebody meant it who forgot heads: where a channel has several,
// each lower one is joined to the chain of the highest. Package.Joined says which. Bundles are without manifests.
// Errors are those of ReadPackage.
func ReadPackageToImport(files Files, name string) (*Package, error) {
	r := newReader(DefaultBudget, func(pkg string) bool { return pkg == name })
	r.skip, r.join = isBundleOfOthers([]string{name}), true
	r.keep = func(p registryv1.Property, _ string) bool {
		return p.Type != registryv1.PropertyBundleObject && p.Type != registryv1.PropertyCSVMetadata
	}
	if err := r.read(files); err != nil {
		return nil, err
	}
	return r.assemble(name)
}

// joinHeads joins the lower heads of all channels to the chain of the highest one. A head whose chain never meets that
// one is left, and Validate reports it; so does a channel with a circle.
func (p *Package) joinHeads() {
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		heads := c.heads()
		known := func(bundle string) bool { return p.Bundles[bundle] != nil }
		if len(heads) < 2 || c.cycle() != nil || !all(heads, known) {
			continue
		}
		slices.SortFunc(heads, func(a, b string) int {
			return cmp.Or(registryv1.CompareVersions(p.Bundles[b].Version, p.Bundles[a].Version), cmp.Compare(b, a))
		})
		for _, dangling := range heads[1:] { // the higher it is, the nearer it comes to the highest
			if joined, ok := c.join(dangling, heads[0]); ok {
				p.Joined = append(p.Joined, joined)
			}
		}
	}
}

func all(names []string, is func(string) bool) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !is(n) })
}

// join has a head replaced by the entry above the one at which its chain meets that of another head. It reports whether
// they meet.
func (c *Channel) join(dangling, head string) (Joined, bool) {
	// above is the entry of the other chain that replaces a bundle.
	above := map[string]int{}
	for at := head; at != ""; {
		i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == at })
		if i < 0 {
			break
		}
		at = c.Entries[i].Replaces
		above[at] = i
	}
	for at := dangling; at != ""; {
		entry, ok := c.Entry(at)
		if !ok {
			break
		}
		at = entry.Replaces
		if i, meets := above[at]; meets && at != "" {
			c.Entries[i].Replaces = dangling
			return Joined{c.Name, dangling, c.Entries[i].Name, at}, true
		}
	}
	return Joined{}, false
}
