// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/protobuf/proto"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// content is one view, or a whole catalog, ready to be served: an index in memory, and the bundles as encoded messages
// in a blobStore. It never changes: what is served next is another content.
type content struct {
	hash string
	// names are the packages, sorted.
	names    []string
	packages map[string]*storedPackage
	bundles  blobStore
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
	// entries are in the order of the channel; byName has the same ones by the names of their bundles.
	entries []*entry
	byName  map[string]*entry
}

// entry is a bundle's place in a channel.
type entry struct {
	catalogs.Entry
	pkg         *storedPackage
	channel     string
	deprecation string
	// bundle is shared by the channels that have the bundle.
	bundle *storedBundle
}

// newContent returns the content of a view, all of it in memory.
func newContent(hash string, packages []*catalogs.Package) (*content, error) {
	blobs := &memoryStore{}
	stored := map[bundleKey]*storedBundle{}
	for _, p := range packages {
		for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
			b, err := storeBundle(blobs, p.Name, p.Bundles[name])
			if err != nil {
				return nil, fmt.Errorf("convert package %q: bundle %q: %w", p.Name, name, err)
			}
			stored[bundleKey{p.Name, name}] = b
		}
	}
	// A view may be served for months, so it takes no more memory than it needs.
	blobs.data = slices.Clone(blobs.data)
	return index(hash, packages, stored, blobs)
}

// bundleKey identifies a bundle in a catalog, in which two packages may have bundles of the same name.
type bundleKey struct{ pkg, name string }

// index returns the content of packages whose bundles are stored. Of the packages it needs only their graphs.
func index(hash string, packages []*catalogs.Package, stored map[bundleKey]*storedBundle, blobs blobStore) (*content,
	error) {
	c := &content{hash: hash, packages: map[string]*storedPackage{}, bundles: blobs}
	for _, p := range packages {
		converted, err := newStoredPackage(p, stored)
		if err != nil {
			return nil, fmt.Errorf("convert package %q: %w", p.Name, err)
		}
		c.packages[p.Name] = converted
	}
	c.names = slices.Sorted(maps.Keys(c.packages))
	return c, nil
}

func newStoredPackage(p *catalogs.Package, stored map[bundleKey]*storedBundle) (*storedPackage, error) {
	out := &storedPackage{description: p.Description, icon: p.Icon, info: &api.Package{
		Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: apiDeprecation(p.Deprecation),
	}}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		channel, err := out.newChannel(p, c, stored)
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

func (p *storedPackage) newChannel(in *catalogs.Package, c *catalogs.Channel,
	stored map[bundleKey]*storedBundle) (*storedChannel, error) {
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	out := &storedChannel{name: c.Name, head: head, byName: make(map[string]*entry, len(c.Entries))}
	for _, e := range c.Entries {
		b, bundle := in.Bundles[e.Name], stored[bundleKey{in.Name, e.Name}]
		if b == nil || bundle == nil {
			return nil, fmt.Errorf("%w: entry %q has no bundle", catalogs.ErrInvalidPackage, e.Name)
		}
		added := &entry{Entry: e, pkg: p, channel: c.Name, deprecation: b.Deprecation, bundle: bundle}
		out.entries = append(out.entries, added)
		out.byName[e.Name] = added
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

// eachChannel calls visit for each channel, in the order of packages and channels.
func (c *content) eachChannel(visit func(pkg *storedPackage, channel *storedChannel)) {
	for _, name := range c.names {
		for _, channel := range c.packages[name].channels {
			visit(c.packages[name], channel)
		}
	}
}

// csv returns the CSV among the manifests of a bundle; nil if there is none.
func (c *content) csv(pkg, bundle string) []byte {
	p, ok := c.packages[pkg]
	if !ok {
		return nil
	}
	for _, channel := range p.channels {
		e, ok := channel.byName[bundle]
		if !ok {
			continue
		}
		data, err := readBlobs(c.bundles, nil, e.bundle.manifests)
		if err != nil {
			return nil
		}
		manifests := &api.Bundle{}
		if err := proto.Unmarshal(data, manifests); err != nil || manifests.CsvJson == "" {
			return nil
		}
		return []byte(manifests.CsvJson)
	}
	return nil
}

func (e *entry) provides(group, version, kind string) bool {
	return slices.Contains(e.bundle.provides, catalogs.GVK{Group: group, Version: version, Kind: kind})
}

// channelEntries returns an entry as clients get it: once for what it replaces, and once for each other bundle that it
// skips. Skipped bundles that are not in the channel count only when includeAbsent is true.
func (c *storedChannel) channelEntries(e *entry, includeAbsent bool) []*api.ChannelEntry {
	out := []*api.ChannelEntry{c.channelEntry(e, e.Replaces)}
	for _, skip := range e.Skips {
		if _, present := c.byName[skip]; skip != e.Replaces && (includeAbsent || present) {
			out = append(out, c.channelEntry(e, skip))
		}
	}
	return out
}

// channelEntriesReplacing returns an entry once for each way in which it replaces the named bundle.
func (c *storedChannel) channelEntriesReplacing(e *entry, name string) []*api.ChannelEntry {
	var out []*api.ChannelEntry
	if e.Replaces == name {
		out = append(out, c.channelEntry(e, e.Replaces))
	}
	for _, skip := range e.Skips {
		if skip == name && skip != e.Replaces {
			out = append(out, c.channelEntry(e, e.Replaces))
		}
	}
	return out
}

func (c *storedChannel) channelEntry(e *entry, replaces string) *api.ChannelEntry {
	return &api.ChannelEntry{PackageName: e.pkg.info.GetName(), ChannelName: c.name, BundleName: e.Name,
		Replaces: replaces}
}
