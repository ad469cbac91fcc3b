// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/model"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// store is the content of one view in the form of the registry API. It never changes: a new view is a new store.
type store struct {
	hash string
	// names are the packages, sorted.
	names    []string
	packages map[string]*storedPackage
}

type storedPackage struct {
	info *api.Package
	// channels are sorted by name.
	channels []*storedChannel
}

type storedChannel struct {
	name, head string
	// order are the bundles in the order of the channel's entries.
	order   []*api.Bundle
	bundles map[string]*api.Bundle
}

func newStore(hash string, packages []*catalogs.Package) (*store, error) {
	s := &store{hash: hash, packages: map[string]*storedPackage{}}
	for _, p := range packages {
		stored, err := newStoredPackage(p)
		if err != nil {
			return nil, fmt.Errorf("convert package %q: %w", p.Name, err)
		}
		s.packages[p.Name] = stored
	}
	s.names = slices.Sorted(maps.Keys(s.packages))
	return s, nil
}

func newStoredPackage(p *catalogs.Package) (*storedPackage, error) {
	out := &storedPackage{info: &api.Package{
		Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: apiDeprecation(p.Deprecation),
	}}
	templates := make(map[string]*model.Bundle, len(p.Bundles))
	for name, b := range p.Bundles {
		templates[name] = modelBundle(p, b)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		channel, err := newStoredChannel(c, templates)
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

func newStoredChannel(c *catalogs.Channel, templates map[string]*model.Bundle) (*storedChannel, error) {
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	out := &storedChannel{name: c.Name, head: head, bundles: make(map[string]*api.Bundle, len(c.Entries))}
	for _, e := range c.Entries {
		template, ok := templates[e.Name]
		if !ok {
			return nil, fmt.Errorf("%w: entry %q has no bundle", catalogs.ErrInvalidPackage, e.Name)
		}
		m := *template
		m.Channel = &model.Channel{Name: c.Name}
		m.Replaces, m.Skips, m.SkipRange = e.Replaces, e.Skips, e.SkipRange
		b, err := api.ConvertModelBundleToAPIBundle(m)
		if err != nil {
			return nil, fmt.Errorf("bundle %q: %w", e.Name, err)
		}
		out.order = append(out.order, b)
		out.bundles[e.Name] = b
	}
	return out, nil
}

// modelBundle shares the strings of a bundle among the channels it is in.
func modelBundle(p *catalogs.Package, b *catalogs.Bundle) *model.Bundle {
	m := &model.Bundle{
		Package: &model.Package{Name: p.Name, Description: p.Description},
		Name:    b.Name, Image: b.Image, Version: b.Version,
	}
	if p.Icon != nil {
		m.Package.Icon = &model.Icon{Data: p.Icon.Data, MediaType: p.Icon.MediaType}
	}
	if b.Deprecation != "" {
		m.Deprecation = &model.Deprecation{Message: b.Deprecation}
	}
	for _, prop := range b.Properties {
		m.Properties = append(m.Properties, property.Property{Type: prop.Type, Value: prop.Value})
	}
	for _, i := range b.RelatedImages {
		m.RelatedImages = append(m.RelatedImages, model.RelatedImage{Name: i.Name, Image: i.Image})
	}
	for _, o := range b.Objects {
		m.Objects = append(m.Objects, string(o))
		if m.CsvJSON == "" && isCSV(o) {
			m.CsvJSON = m.Objects[len(m.Objects)-1]
		}
	}
	return m
}

func isCSV(object []byte) bool {
	var in struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(object, &in) == nil && in.Kind == "ClusterServiceVersion"
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

// listed is a bundle as ListBundles gives it: with an image, the manifests are left out, because OLM unpacks the image.
func listed(b *api.Bundle) *api.Bundle {
	if b.GetBundlePath() == "" {
		return b
	}
	out := shallow(b)
	out.CsvJson, out.Object = "", nil
	return out
}

// single is a bundle as the calls for a single one give it: without its place in the channel.
func single(b *api.Bundle) *api.Bundle {
	out := shallow(b)
	out.Replaces, out.Skips = "", nil
	return out
}

// shallow copies a message without its strings, of which a bundle has up to a megabyte.
func shallow(b *api.Bundle) *api.Bundle {
	return &api.Bundle{
		CsvName: b.CsvName, PackageName: b.PackageName, ChannelName: b.ChannelName, CsvJson: b.CsvJson, Object: b.Object,
		BundlePath: b.BundlePath, ProvidedApis: b.ProvidedApis, RequiredApis: b.RequiredApis, Version: b.Version,
		SkipRange: b.SkipRange, Dependencies: b.Dependencies, Properties: b.Properties, Replaces: b.Replaces,
		Skips: b.Skips, Deprecation: b.Deprecation,
	}
}

func provides(b *api.Bundle, group, version, kind string) bool {
	return slices.ContainsFunc(b.GetProvidedApis(), func(g *api.GroupVersionKind) bool {
		return g.GetGroup() == group && g.GetVersion() == version && g.GetKind() == kind
	})
}

// entriesOf are the places of a bundle in its channel: one for what it replaces, one for each other bundle it skips.
// Skipped bundles that are not in the channel count only when anywhere is true.
func (c *storedChannel) entriesOf(b *api.Bundle, anywhere bool) []*api.ChannelEntry {
	out := []*api.ChannelEntry{c.entry(b, b.GetReplaces())}
	for _, skip := range b.GetSkips() {
		if _, here := c.bundles[skip]; skip != b.GetReplaces() && (anywhere || here) {
			out = append(out, c.entry(b, skip))
		}
	}
	return out
}

// entriesReplacing are the places of a bundle at which it follows the named one.
func (c *storedChannel) entriesReplacing(b *api.Bundle, name string) []*api.ChannelEntry {
	var out []*api.ChannelEntry
	if b.GetReplaces() == name {
		out = append(out, c.entry(b, b.GetReplaces()))
	}
	for _, skip := range b.GetSkips() {
		if skip == name && skip != b.GetReplaces() {
			out = append(out, c.entry(b, b.GetReplaces()))
		}
	}
	return out
}

func (c *storedChannel) entry(b *api.Bundle, replaces string) *api.ChannelEntry {
	return &api.ChannelEntry{PackageName: b.GetPackageName(), ChannelName: c.name, BundleName: b.GetCsvName(), Replaces: replaces}
}
