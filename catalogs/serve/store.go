// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// store is the content of one view, or of a whole catalog: an index in memory, and the bundles as encoded messages in a
// spool. It never changes: new content is a new store.
type store struct {
	hash string
	// names are the packages, sorted.
	names    []string
	packages map[string]*storedPackage
	spool    spool
}

type storedPackage struct {
	info        *api.Package
	description string
	icon        *catalogs.Icon
	// channels are sorted by name.
	channels []*storedChannel
}

type storedChannel struct {
	name, head string
	// order are the bundles in the order of the channel's entries.
	order   []*storedBundle
	bundles map[string]*storedBundle
}

// storedBundle is a bundle's place in a channel.
type storedBundle struct {
	catalogs.Entry
	pkg         *storedPackage
	channel     string
	deprecation string
	// body is shared by the channels that have the bundle.
	body *body
}

// newStore is the store of a view: it is all in memory.
func newStore(hash string, packages []*catalogs.Package) (*store, error) {
	spool := &memory{}
	bodies := bodies{}
	for _, p := range packages {
		for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
			b, err := newBody(spool, p.Name, p.Bundles[name])
			if err != nil {
				return nil, fmt.Errorf("convert package %q: bundle %q: %w", p.Name, name, err)
			}
			bodies[bundleKey{p.Name, name}] = b
		}
	}
	// What is served may be kept for months.
	spool.data = slices.Clone(spool.data)
	return assemble(hash, packages, bodies, spool)
}

// bundleKey names a bundle in a catalog, in which two packages may have bundles of one name.
type bundleKey struct{ pkg, name string }

type bodies map[bundleKey]*body

// assemble makes the index. Of the packages it needs no more than their graphs.
func assemble(hash string, packages []*catalogs.Package, bodies bodies, spool spool) (*store, error) {
	s := &store{hash: hash, packages: map[string]*storedPackage{}, spool: spool}
	for _, p := range packages {
		stored, err := newStoredPackage(p, bodies)
		if err != nil {
			return nil, fmt.Errorf("convert package %q: %w", p.Name, err)
		}
		s.packages[p.Name] = stored
	}
	s.names = slices.Sorted(maps.Keys(s.packages))
	return s, nil
}

func newStoredPackage(p *catalogs.Package, bodies bodies) (*storedPackage, error) {
	out := &storedPackage{description: p.Description, icon: p.Icon, info: &api.Package{
		Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: apiDeprecation(p.Deprecation),
	}}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		channel, err := out.channelOf(p, c, bodies)
		if err != nil {
			return nil, fmt.Errorf("channel %q: %w", name, err)
		}
		out.channels = append(out.channels, channel)
		out.info.Channels = append(out.info.Channels, &api.Channel{
			Name: name, CsvName: channel.head, Deprecation: apiDeprecation(c.Deprecation),
		})
	}
	return out, nil
}

func (p *storedPackage) channelOf(in *catalogs.Package, c *catalogs.Channel, bodies bodies) (*storedChannel, error) {
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	out := &storedChannel{name: c.Name, head: head, bundles: make(map[string]*storedBundle, len(c.Entries))}
	for _, e := range c.Entries {
		b, body := in.Bundles[e.Name], bodies[bundleKey{in.Name, e.Name}]
		if b == nil || body == nil {
			return nil, fmt.Errorf("%w: entry %q has no bundle", catalogs.ErrInvalidPackage, e.Name)
		}
		stored := &storedBundle{Entry: e, pkg: p, channel: c.Name, deprecation: b.Deprecation, body: body}
		out.order = append(out.order, stored)
		out.bundles[e.Name] = stored
	}
	return out, nil
}

func apiDeprecation(message string) *api.Deprecation {
	if message == "" {
		return nil
	}
	return &api.Deprecation{Message: message}
}

func (p *storedPackage) channel(name string) *storedChannel {
	for _, c := range p.channels {
		if c.name == name {
			return c
		}
	}
	return nil
}

// channels calls visit for each channel of the store, in order.
func (s *store) eachChannel(visit func(pkg *storedPackage, c *storedChannel)) {
	for _, name := range s.names {
		for _, c := range s.packages[name].channels {
			visit(s.packages[name], c)
		}
	}
}

func (b *storedBundle) provides(group, version, kind string) bool {
	return slices.Contains(b.body.provides, catalogs.GVK{Group: group, Version: version, Kind: kind})
}

// entriesOf are the places of a bundle in its channel: one for what it replaces, one for each other bundle it skips.
// Skipped bundles that are not in the channel count only when anywhere is true.
func (c *storedChannel) entriesOf(b *storedBundle, anywhere bool) []*api.ChannelEntry {
	out := []*api.ChannelEntry{c.entry(b, b.Replaces)}
	for _, skip := range b.Skips {
		if _, here := c.bundles[skip]; skip != b.Replaces && (anywhere || here) {
			out = append(out, c.entry(b, skip))
		}
	}
	return out
}

// entriesReplacing are the places of a bundle at which it follows the named one.
func (c *storedChannel) entriesReplacing(b *storedBundle, name string) []*api.ChannelEntry {
	var out []*api.ChannelEntry
	if b.Replaces == name {
		out = append(out, c.entry(b, b.Replaces))
	}
	for _, skip := range b.Skips {
		if skip == name && skip != b.Replaces {
			out = append(out, c.entry(b, b.Replaces))
		}
	}
	return out
}

func (c *storedChannel) entry(b *storedBundle, replaces string) *api.ChannelEntry {
	return &api.ChannelEntry{PackageName: b.pkg.info.GetName(), ChannelName: c.name, BundleName: b.Name,
		Replaces: replaces}
}
