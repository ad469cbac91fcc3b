// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// SchemaBlocks is the schema of the document that lists a package's blocked versions:
//
//	{"schema": "bellwether.dev/blocks", "package": "echo-operator",
//	 "blocks": [{"bundle": "echo-operator.v1.2.0", ...}]}
//
// Other readers of file-based catalogs ignore it. They get the effect of a block on the channels and the deprecations.
const SchemaBlocks = "bellwether.dev/blocks"

// Block says that no cluster may be upgraded to a version, and why.
type Block struct {
	// Bundle and Version name what is blocked; one of them may be empty where a Block is given to WithBlocked.
	Bundle  string `json:"bundle,omitempty"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason"`
	// Expires is the day (2026-12-31) by which the block must be reviewed; empty means never. It does not end the
	// block.
	Expires string `json:"expires,omitempty"`
	// Instead is the version that clusters should use; empty means the one that the channel offers.
	Instead string `json:"instead,omitempty"`
}

// WithBlocked returns the package with further versions blocked, and leaves p as it is. Blocks of versions that the
// package does not have are ignored; blocking twice is the same as once.
//
// In every channel the next good version skips the blocked one and replaces what that replaced, so whoever runs the
// blocked version gets away from it and nobody gets to it. Its entry stays, without edges, because OLM warns those who
// run a deprecated bundle only if the catalog has it. Where no good version follows, the blocked one leaves the
// channel, and its bundle the catalog if that was its last one: those who run it wait for a newer version, or go back.
// The head is then what the blocked one replaced, and versions above that which the blocked one skipped leave with it:
// its author wanted nobody to install them.
//
// The error wraps ErrInvalidPackage; it says that nothing installable is left.
func (p *Package) WithBlocked(blocks ...Block) (*Package, error) {
	out := p.clone()
	for _, b := range blocks {
		name, ok := out.blockedName(b)
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
		out.routeAround(c)
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

// Blocked returns the block of a bundle, if there is one.
func (p *Package) Blocked(bundle string) (Block, bool) {
	b, ok := p.Blocks[bundle]
	return b, ok
}

// blockedVersion returns the block of a version, if there is one.
func (p *Package) blockedVersion(version string) (Block, bool) {
	for _, name := range slices.Sorted(maps.Keys(p.Blocks)) {
		if b := p.Blocks[name]; b.Version == version {
			return b, true
		}
	}
	return Block{}, false
}

func errBlocked(pkg string, b Block) error {
	err := fmt.Errorf("%w: version %s of package %q: %s", ErrBlocked, cmp.Or(b.Version, b.Bundle), pkg, b.Reason)
	if b.Instead != "" {
		return fmt.Errorf("%w; use %s instead", err, b.Instead)
	}
	return err
}

func (p *Package) blockedName(b Block) (string, bool) {
	if b.Bundle != "" {
		return b.Bundle, p.Bundles[b.Bundle] != nil || b.Version != ""
	}
	for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
		if p.Bundles[name].VersionString() == b.Version {
			return name, true
		}
	}
	known, ok := p.blockedVersion(b.Version)
	return known.Bundle, ok
}

// clone copies what WithBlocked changes; bundles are shared.
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

// routeAround gives the edges of all blocked entries to those that replace or skip them, and takes blocked entries out
// that no good one skips.
func (p *Package) routeAround(c *Channel) {
	head, _ := c.Head() // what is wrong with the channel, validation says
	before := p.hopsAvoidingSkipped(c, head)
	for _, blocked := range slices.Sorted(maps.Keys(p.Blocks)) {
		c.bypass(blocked)
	}
	last, _ := c.Entry(head)
	for i, e := range c.Entries {
		if _, blocked := p.Blocks[e.Name]; blocked {
			c.Entries[i] = Entry{Name: e.Name}
		}
	}
	skipped := c.skipped()
	c.Entries = slices.DeleteFunc(c.Entries, func(e Entry) bool {
		_, blocked := p.Blocks[e.Name]
		return blocked && !skipped[e.Name]
	})
	if _, blocked := p.Blocks[head]; blocked {
		p.followBlockedHead(c, last, before)
	}
}

// bypass makes the bundles that replace or skip an entry upgrade from what that entry upgrades from.
func (c *Channel) bypass(name string) {
	old, ok := c.Entry(name)
	if !ok {
		return
	}
	replaced := false
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Replaces == name {
			e.Replaces = old.Replaces
			e.inherit(old)
			replaced = true
		}
	}
	// What is only skipped is not in the chain, but it may be all that leads on from what it skips itself.
	for i := range c.Entries {
		if e := &c.Entries[i]; !replaced && slices.Contains(e.Skips, name) {
			e.inherit(old)
		}
	}
}

// followBlockedHead makes what the blocked head replaced the one head, or else the highest of the heads that are left.
// Of the others it skips the lower ones; the higher ones leave the channel, since nothing leads on from there. Those
// that had a way before keep one.
func (p *Package) followBlockedHead(c *Channel, old Entry, before map[string]int) {
	heads := c.heads()
	next := old.Replaces
	if _, ok := c.Entry(next); !ok {
		if len(heads) == 0 {
			return
		}
		next = slices.MaxFunc(heads, p.compare)
	}
	for others := c.besides(next); len(others) > 0; others = c.besides(next) {
		for _, name := range others {
			if p.compare(name, next) < 0 {
				c.skip(next, name)
			} else {
				c.Entries = slices.DeleteFunc(c.Entries, func(e Entry) bool { return e.Name == name })
			}
		}
	}
	// The blocked head was perhaps all that led on from a bundle: others lead only to what is skipped, and OLM v0 does
	// not go there.
	ways := p.hopsAvoidingSkipped(c, next)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		_, entry := c.Entry(name)
		if _, ok := ways[name]; entry && !ok && p.compare(name, next) < 0 {
			c.skip(next, name)
		}
	}
}

// hopsAvoidingSkipped returns the number of hops to a bundle, by the name of each bundle that gets there
// without passing through a skipped one.
func (p *Package) hopsAvoidingSkipped(c *Channel, to string) map[string]int {
	return p.wholeGraph(c, nil).distances(to, c.skipped())
}

// besides returns what the channel has besides the one chain that a head leads: other heads, or else what only they led
// to.
func (c *Channel) besides(head string) []string {
	heads := c.heads()
	if slices.Equal(heads, []string{head}) {
		return c.stranded(head)
	}
	return slices.DeleteFunc(heads, func(h string) bool { return h == head })
}

// skip lets the entry of that name skip another one.
func (c *Channel) skip(name, other string) {
	at := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == name })
	c.Entries[at].Skips = append(slices.Clone(c.Entries[at].Skips), other)
}

// inherit makes e upgrade from what old skipped, and from old itself.
func (e *Entry) inherit(old Entry) {
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
