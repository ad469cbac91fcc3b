// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// SchemaBlocks is the schema of the document with the blocks of a package. Other readers of file-based catalogs ignore
// this document. For them, the channels and deprecations contain the effect of a block.
const SchemaBlocks = "bellwether.dev/blocks"

// Block is a version to which no cluster must be upgraded, and the reason.
type Block struct {
	// Bundle and Version name the blocked version. For WithBlocked, one of them can be empty.
	Bundle  string `json:"bundle,omitempty"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason"`
	// Expires is the day (2026-12-31) by which the block must be reviewed; empty means never. The block does not end
	// on that day.
	Expires string `json:"expires,omitempty"`
	// Instead is the version that clusters should use; empty means the version that the channel offers.
	Instead string `json:"instead,omitempty"`
}

// WithBlocked returns a copy of the package with further versions blocked. It ignores blocks of versions that the
// package does not have. Blocking a version twice has the same result as blocking it once.
//
// In every channel the next good version skips the blocked version and replaces what the blocked version replaced. So
// clusters with the blocked version can leave it, and no cluster is upgraded to it. The blocked entry stays, without
// edges, because OLM reports a deprecated bundle only if the catalog contains it.
//
// If no good version follows, the blocked version leaves the channel, and its bundle leaves the catalog if no other
// channel has it. Clusters that run it wait for a newer version, or go back. The head is then the version that the
// blocked version replaced. Higher versions that the blocked version skipped leave the channel too, because their
// author wanted no cluster to install them.
//
// The error wraps ErrInvalidPackage; it says that the package has no installable version left.
func (p *Package) WithBlocked(blocks ...Block) (*Package, error) {
	out := p.clone()
	for _, b := range blocks {
		name, ok := out.findBlockedBundle(b)
		if !ok {
			continue
		}
		b.Bundle = name
		if bundle := out.Bundles[name]; bundle != nil {
			b.Version = bundle.VersionString()
			marked := *bundle
			marked.Deprecation = cmp.Or(marked.Deprecation, "blocked: "+b.Reason)
			out.Bundles[name] = &marked
		}
		out.Blocks[name] = b
	}
	for _, name := range slices.Sorted(maps.Keys(out.Channels)) {
		c := out.Channels[name]
		out.routeAroundBlocks(c)
		if len(c.Entries) == 0 {
			delete(out.Channels, name)
		}
	}
	offered := out.Offered()
	for name := range out.Bundles {
		if !offered[name] {
			delete(out.Bundles, name)
		}
	}
	if err := out.Validate(); err != nil {
		return nil, fmt.Errorf("block versions: %w", err)
	}
	return out, nil
}

// Blocked returns the block of a bundle; false if there is none.
func (p *Package) Blocked(bundle string) (Block, bool) {
	b, ok := p.Blocks[bundle]
	return b, ok
}

// findBlock returns the block of a version; false if there is none.
func (p *Package) findBlock(version string) (Block, bool) {
	for _, name := range slices.Sorted(maps.Keys(p.Blocks)) {
		if b := p.Blocks[name]; b.Version == version {
			return b, true
		}
	}
	return Block{}, false
}

// newBlockedError returns an error that wraps ErrBlocked, with the reason and the alternative of the block.
func newBlockedError(pkg string, b Block) error {
	err := fmt.Errorf("%w: version %s of package %q: %s", ErrBlocked, cmp.Or(b.Version, b.Bundle), pkg, b.Reason)
	if b.Instead != "" {
		return fmt.Errorf("%w; use %s instead", err, b.Instead)
	}
	return err
}

// findBlockedBundle returns the name of the bundle that b blocks; false if the package does not have the version. A
// block with a bundle and a version is also kept for a bundle that left the package.
func (p *Package) findBlockedBundle(b Block) (string, bool) {
	if b.Bundle != "" {
		return b.Bundle, p.Bundles[b.Bundle] != nil || b.Version != ""
	}
	for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
		if p.Bundles[name].VersionString() == b.Version {
			return name, true
		}
	}
	block, ok := p.findBlock(b.Version)
	return block.Bundle, ok
}

// clone returns a copy of the package in which WithBlocked can change channels and maps; bundles are shared.
func (p *Package) clone() *Package {
	out := *p
	out.Bundles, out.Blocks = maps.Clone(p.Bundles), maps.Clone(p.Blocks)
	if out.Blocks == nil {
		out.Blocks = map[string]Block{}
	}
	out.Channels = make(map[string]*Channel, len(p.Channels))
	for name, c := range p.Channels {
		copied := *c
		copied.Entries = slices.Clone(c.Entries)
		for i, e := range copied.Entries {
			copied.Entries[i].Skips = slices.Clone(e.Skips)
		}
		out.Channels[name] = &copied
	}
	return &out
}

// routeAroundBlocks moves the edges of all blocked entries to the entries that replace or skip them. It removes
// blocked entries that no good entry skips, and chooses another head if the head is blocked.
func (p *Package) routeAroundBlocks(c *Channel) {
	head, _ := c.Head() // Validate reports a channel without one head.
	hopsBefore := p.countHopsAvoidingSkipped(c, head)
	for _, blocked := range slices.Sorted(maps.Keys(p.Blocks)) {
		c.bypass(blocked)
	}
	oldHead, _ := c.Entry(head)
	for i, e := range c.Entries {
		if _, blocked := p.Blocks[e.Name]; blocked {
			c.Entries[i] = Entry{Name: e.Name}
		}
	}
	skipped := c.listSkipped()
	c.Entries = slices.DeleteFunc(c.Entries, func(e Entry) bool {
		_, blocked := p.Blocks[e.Name]
		return blocked && !skipped[e.Name]
	})
	if _, blocked := p.Blocks[head]; blocked {
		p.replaceBlockedHead(c, oldHead, hopsBefore)
	}
}

// bypass makes the entries that replace the named entry, or else the entries that skip it, upgrade from that entry and
// from the bundles that it could replace.
func (c *Channel) bypass(name string) {
	old, ok := c.Entry(name)
	if !ok {
		return
	}
	replaced := false
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Replaces == name {
			e.Replaces = old.Replaces
			e.inheritEdges(old)
			replaced = true
		}
	}
	// A skipped entry is not in the chain of replacements, but it can be the only way forward from the bundles that
	// it skips itself.
	for i := range c.Entries {
		if e := &c.Entries[i]; !replaced && slices.Contains(e.Skips, name) {
			e.inheritEdges(old)
		}
	}
}

// replaceBlockedHead makes the predecessor of the blocked head the only head, or else the highest remaining head. The
// new head skips lower entries that its chain does not reach. Higher entries leave the channel, because no upgrade
// leads on from them. Bundles that had a path to the old head keep a path.
func (p *Package) replaceBlockedHead(c *Channel, oldHead Entry, hopsBefore map[string]int) {
	heads := c.listHeads()
	next := oldHead.Replaces
	if _, ok := c.Entry(next); !ok {
		if len(heads) == 0 {
			return
		}
		next = slices.MaxFunc(heads, p.compareBundles)
	}
	// An entry that is skipped or removed can make further entries heads, so the entries are listed again.
	for otherEntries := c.listEntriesBesides(next); len(otherEntries) > 0; otherEntries = c.listEntriesBesides(next) {
		for _, name := range otherEntries {
			if p.compareBundles(name, next) < 0 {
				c.addSkip(next, name)
			} else {
				c.Entries = slices.DeleteFunc(c.Entries, func(e Entry) bool { return e.Name == name })
			}
		}
	}
	// The blocked head was perhaps the only upgrade from a bundle: its other upgrades lead only to skipped bundles,
	// to which OLM v0 does not upgrade.
	hopsAfter := p.countHopsAvoidingSkipped(c, next)
	for _, name := range slices.Sorted(maps.Keys(hopsBefore)) {
		_, isEntry := c.Entry(name)
		if _, ok := hopsAfter[name]; isEntry && !ok && p.compareBundles(name, next) < 0 {
			c.addSkip(next, name)
		}
	}
}

// countHopsAvoidingSkipped returns the number of upgrades to a bundle, by the name of each bundle that has a path to
// it that passes through no skipped bundle.
func (p *Package) countHopsAvoidingSkipped(c *Channel, to string) map[string]int {
	return p.buildGraph(c, nil).countHops(to, c.listSkipped())
}

// listEntriesBesides returns the entries that are not in the chain of head: other heads, or else entries that only
// the other heads reached.
func (c *Channel) listEntriesBesides(head string) []string {
	heads := c.listHeads()
	if slices.Equal(heads, []string{head}) {
		return c.listUnreachable(head)
	}
	return slices.DeleteFunc(heads, func(h string) bool { return h == head })
}

// addSkip makes the entry with that name skip a bundle.
func (c *Channel) addSkip(name, skipped string) {
	index := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == name })
	c.Entries[index].Skips = append(slices.Clone(c.Entries[index].Skips), skipped)
}

// inheritEdges makes e upgrade from old, and from the bundles that old skips or has in its skipRange.
func (e *Entry) inheritEdges(old Entry) {
	for _, name := range append([]string{old.Name}, old.Skips...) {
		if !slices.Contains(e.Skips, name) {
			e.Skips = append(e.Skips, name)
		}
	}
	switch {
	case e.SkipRange == "":
		e.SkipRange = old.SkipRange
	case old.SkipRange != "" && old.SkipRange != e.SkipRange:
		e.SkipRange += " || " + old.SkipRange
	}
}
