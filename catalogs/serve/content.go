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

// content is a view or a whole catalog, ready to be served: an index in memory, and the bundles as encoded messages
// in a blobStore. It is immutable: an update replaces it by another content.
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
	// entries are in the order of the channel; byName has the same entries by the names of their bundles.
	entries []*entry
	byName  map[string]*entry
}

// entry is the place of a bundle in a channel.
type entry struct {
	catalogs.Entry
	pkg         *storedPackage
	channel     string
	deprecation string
	// bundle is shared by all channels with the bundle.
	bundle *storedBundle
}

// newContent returns the content of a view, completely in memory.
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
	// A view can be served for months, so unused capacity is released.
	blobs.data = slices.Clone(blobs.data)
	return buildContent(hash, packages, stored, blobs)
}

// bundleKey identifies a bundle in a catalog, in which two packages can have bundles with the same name.
type bundleKey struct{ pkg, name string }

// buildContent returns the content of packages whose bundles are already stored in blobs. It needs only the graphs of
// the packages. The error wraps catalogs.ErrInvalidPackage if a channel has no head or names a missing bundle.
func buildContent(hash string, packages []*catalogs.Package, stored map[bundleKey]*storedBundle,
	blobs blobStore) (*content, error) {
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

// newStoredPackage returns a package whose bundles are in stored, with its channels sorted by name.
func newStoredPackage(p *catalogs.Package, stored map[bundleKey]*storedBundle) (*storedPackage, error) {
	out := &storedPackage{description: p.Description, icon: p.Icon, info: &api.Package{
		Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: toAPIDeprecation(p.Deprecation),
	}}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		channel, err := out.newChannel(p, c, stored)
		if err != nil {
			return nil, fmt.Errorf("channel %q: %w", name, err)
		}
		out.channels = append(out.channels, channel)
		out.info.Channels = append(out.info.Channels, &api.Channel{
			Name: name, CsvName: channel.head, Deprecation: toAPIDeprecation(c.Deprecation),
		})
	}
	return out, nil
}

// newChannel returns a channel of the package. It is an error if the channel has no single head, or if an entry has no
// bundle.
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

func toAPIDeprecation(message string) *api.Deprecation {
	if message == "" {
		return nil
	}
	return &api.Deprecation{Message: message}
}

func (p *storedPackage) findChannel(name string) *storedChannel {
	for _, c := range p.channels {
		if c.name == name {
			return c
		}
	}
	return nil
}

// visitChannels calls visit for each channel, in the order of packages and channels.
func (c *content) visitChannels(visit func(pkg *storedPackage, channel *storedChannel)) {
	for _, name := range c.names {
		for _, channel := range c.packages[name].channels {
			visit(c.packages[name], channel)
		}
	}
}

// findCSV returns the CSV among the manifests of a bundle; nil if there is none, or if it cannot be read.
func (c *content) findCSV(pkg, bundle string) []byte {
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

func (e *entry) isProviderOf(group, version, kind string) bool {
	return slices.Contains(e.bundle.provides, catalogs.GVK{Group: group, Version: version, Kind: kind})
}

// toChannelEntries returns an entry in the form for clients: once for the bundle that it replaces, and once for each
// other bundle that it skips. Skipped bundles that are not in the channel are included only if includeAbsent is true.
func (c *storedChannel) toChannelEntries(e *entry, includeAbsent bool) []*api.ChannelEntry {
	out := []*api.ChannelEntry{c.newChannelEntry(e, e.Replaces)}
	for _, skip := range e.Skips {
		if _, present := c.byName[skip]; skip != e.Replaces && (includeAbsent || present) {
			out = append(out, c.newChannelEntry(e, skip))
		}
	}
	return out
}

// toReplacingEntries returns an entry once if it replaces the named bundle, and once for each other skip with that
// name. As in operator-registry, the field Replaces of each result is the bundle that the entry replaces.
func (c *storedChannel) toReplacingEntries(e *entry, name string) []*api.ChannelEntry {
	var out []*api.ChannelEntry
	if e.Replaces == name {
		out = append(out, c.newChannelEntry(e, e.Replaces))
	}
	for _, skip := range e.Skips {
		if skip == name && skip != e.Replaces {
			out = append(out, c.newChannelEntry(e, e.Replaces))
		}
	}
	return out
}

func (c *storedChannel) newChannelEntry(e *entry, replaces string) *api.ChannelEntry {
	return &api.ChannelEntry{PackageName: e.pkg.info.GetName(), ChannelName: c.name, BundleName: e.Name,
		Replaces: replaces}
}
