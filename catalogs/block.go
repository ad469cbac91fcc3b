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
//	{"schema": "bellwether.dev/blocks", "package": "echo-operator", "blocks": [{"bundle": "echo-operator.v1.2.0", ...}]}
//
// Other readers of file-based catalogs ignore it. They see what a block does to the channels and to the deprecations.
const SchemaBlocks = "bellwether.dev/blocks"

// Block says that nobody may be brought to a version, and why.
type Block struct {
	// Bundle and Version name what is blocked; one of them may be empty where a Block is given to WithBlocked.
	Bundle  string `json:"bundle,omitempty"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason"`
	// Expires is the day (2026-12-31) by which somebody must have looked at the block again; empty means never.
	// It does not end the block.
	Expires string `json:"expires,omitempty"`
	// Instead is the version that clusters should go to; empty means whatever the channel offers.
	Instead string `json:"instead,omitempty"`
}

// WithBlocked returns the package with further versions blocked, and leaves p as it is. Blocks of versions that the package
// does not have are ignored; blocking twice is the same as once.
//
// In every channel the next good version skips the blocked one and replaces what that replaced, so whoever runs the
// blocked version gets away from it and nobody gets to it. Its entry stays, without edges, because OLM warns those who run
// a deprecated bundle only if the catalog has it. Where no good version follows, the blocked one leaves the channel, and
// its bundle the catalog if that was its last one: those who run it wait for a newer version, or go back.
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
		for _, blocked := range slices.Sorted(maps.Keys(out.Blocks)) {
			c.routeAround(blocked)
		}
		c.dropUnskipped(out.Blocks)
		if len(c.Entries) == 0 {
			delete(out.Channels, name)
		}
	}
	for name := range out.Bundles {
		if !out.inSomeChannel(name) {
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

// routeAround takes all edges from a bundle's entry and gives them to the entry that replaced it.
func (c *Channel) routeAround(blocked string) {
	at := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == blocked })
	if at < 0 {
		return
	}
	old := c.Entries[at]
	c.Entries[at] = Entry{Name: blocked}
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Replaces == blocked {
			e.inherit(old)
		}
	}
}

// dropUnskipped takes blocked entries out that no good one skips. Each may have been what skipped another, so it goes on
// until none is left.
func (c *Channel) dropUnskipped(blocks map[string]Block) {
	for {
		skipped, before := c.skipped(), len(c.Entries)
		c.Entries = slices.DeleteFunc(c.Entries, func(e Entry) bool {
			_, blocked := blocks[e.Name]
			return blocked && !skipped[e.Name]
		})
		if len(c.Entries) == before {
			return
		}
	}
}

// inherit makes e upgrade from what old, its predecessor, upgraded from, and from old itself.
func (e *Entry) inherit(old Entry) {
	e.Replaces = old.Replaces
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
