// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Package is one operator in a catalog: its bundles and the channels that order them.
// A Package that came out of a reader is valid and must be treated as read-only: readers and caches share it.
type Package struct {
	Name           string
	DefaultChannel string
	Description    string
	Icon           *Icon
	// Deprecation is why the package must not be used for anything new; empty when it is not deprecated.
	Deprecation string
	Channels    map[string]*Channel
	Bundles     map[string]*Bundle
	// Blocks are the blocked versions by bundle name, whether or not the package still has the bundle.
	Blocks map[string]Block
	// Joined are heads of channels that were joined to others; only those who import a package have that done.
	Joined []Joined
}

// Icon is a package's picture.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Channel is a named upgrade graph over some of a package's bundles.
type Channel struct {
	Name        string
	Entries     []Entry
	Deprecation string
}

// ChannelsOf returns the names of the channels that a bundle is in, sorted.
func (p *Package) ChannelsOf(bundle string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		if slices.ContainsFunc(p.Channels[name].Entries, func(e Entry) bool { return e.Name == bundle }) {
			out = append(out, name)
		}
	}
	return out
}

// Entry places a bundle in a channel. The bundle can directly replace those named by Replaces and Skips and those whose
// version lies in SkipRange.
type Entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// Bundle is one version of an operator.
type Bundle struct {
	// Name is also the name of the bundle's ClusterServiceVersion.
	Name    string
	Version semver.Version
	// Release tells rebuilds of one version apart; it is mostly empty.
	Release string
	// Image is the bundle's image; empty when all there is are the Objects.
	Image string
	// Properties are in the catalog's order, without the bundle objects.
	Properties []registryv1.Property
	// Objects are the bundle's manifests as JSON, when the catalog carries them.
	Objects [][]byte
	// Inlined says that the catalog carries the manifests, also where they were not read.
	Inlined       bool `json:"-"`
	RelatedImages []RelatedImage
	Deprecation   string
}

// RelatedImage is an image that a bundle runs.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// VersionString is the version as people write it, with the release where there is one.
func (b *Bundle) VersionString() string {
	if b.Release == "" {
		return b.Version.String()
	}
	return b.Version.String() + "-" + b.Release
}

// Entry returns the channel's entry of that bundle name.
func (c *Channel) Entry(name string) (Entry, bool) {
	i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return c.Entries[i], true
}

// Head returns the name of the one bundle that no other entry of the channel replaces or skips, which is
// operator-registry's rule. It is an error when there is no such bundle, or more than one.
func (c *Channel) Head() (string, error) {
	heads := c.heads()
	switch len(heads) {
	case 1:
		return heads[0], nil
	case 0:
		return "", fmt.Errorf("%w: channel %q has no head: every entry is replaced by another one", ErrInvalidPackage,
			c.Name)
	default:
		slices.Sort(heads)
		return "", fmt.Errorf("%w: channel %q has %d heads (%s): let one of them replace or skip the others",
			ErrInvalidPackage, c.Name, len(heads), strings.Join(heads, ", "))
	}
}

// heads returns the names that no other entry replaces or skips, in the order of the entries.
func (c *Channel) heads() []string {
	replaced := map[string]bool{}
	for _, e := range c.Entries {
		replaced[e.Replaces] = true
		for _, s := range e.Skips {
			replaced[s] = true
		}
	}
	var heads []string
	for _, e := range c.Entries {
		if !replaced[e.Name] {
			heads = append(heads, e.Name)
		}
	}
	return heads
}

// Skips reports whether some entry of the channel skips that bundle. OLM v0 never upgrades to it.
func (c *Channel) Skips(bundle string) bool { return c.skipped()[bundle] }

// skipped returns the names that some entry of the channel skips. OLM v0 never upgrades to those.
func (c *Channel) skipped() map[string]bool {
	names := map[string]bool{}
	for _, e := range c.Entries {
		for _, s := range e.Skips {
			names[s] = true
		}
	}
	return names
}

// Channel returns the channel of that name, or the default channel when name is empty. The error wraps ErrNoChannel.
func (p *Package) Channel(name string) (*Channel, error) {
	if name == "" {
		name = p.DefaultChannel
	}
	if c, ok := p.Channels[name]; ok {
		return c, nil
	}
	var offers []string
	for _, c := range slices.Sorted(maps.Keys(p.Channels)) {
		offers = append(offers, p.describeHead(p.Channels[c]))
	}
	return nil, fmt.Errorf("%w %q in package %q: it offers %s", ErrNoChannel, name, p.Name, strings.Join(offers, ", "))
}

func (p *Package) describeHead(c *Channel) string {
	head, err := c.Head()
	if err != nil {
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, p.describe(head))
}

// describe names a bundle for people: by its version, if it is known.
func (p *Package) describe(bundle string) string {
	if b, ok := p.Bundles[bundle]; ok {
		return b.VersionString()
	}
	return bundle
}

// Target returns the bundle that a channel offers as a version; an empty version means the channel's head, an empty
// channel the default channel. Errors wrap ErrNoChannel, ErrNoVersion or ErrBlocked.
func (p *Package) Target(channel, version string) (*Bundle, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	if version == "" {
		head, err := c.Head()
		if err != nil {
			return nil, err
		}
		return p.bundle(c, head)
	}
	if b, ok := p.blockedVersion(version); ok {
		return nil, errBlocked(p.Name, b)
	}
	var same []*Bundle
	wanted, parseErr := semver.ParseTolerant(version)
	for _, e := range c.Entries {
		b, ok := p.Bundles[e.Name]
		switch {
		case !ok:
		case b.VersionString() == version:
			return b, nil
		case parseErr == nil && b.Release == "" && b.Version.EQ(wanted):
			same = append(same, b)
		}
	}
	if len(same) == 1 {
		return same[0], nil
	}
	return nil, fmt.Errorf("%w %q in channel %q of package %q: %s", ErrNoVersion, version, c.Name, p.Name,
		p.offers(c, same))
}

func (p *Package) bundle(c *Channel, name string) (*Bundle, error) {
	if b, ok := p.Bundles[name]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%w: channel %q of package %q names %q, which has no bundle", ErrInvalidPackage, c.Name,
		p.Name, name)
}

// maxListed keeps messages short enough for a condition.
const maxListed = 8

func (p *Package) offers(c *Channel, same []*Bundle) string {
	if len(same) > 1 {
		var names []string
		for _, b := range same {
			names = append(names, b.VersionString())
		}
		return "it could be any of " + strings.Join(names, ", ") + "; give the whole version"
	}
	var bundles []*Bundle
	for _, e := range c.Entries {
		if b, ok := p.Bundles[e.Name]; ok {
			bundles = append(bundles, b)
		}
	}
	slices.SortFunc(bundles, func(a, b *Bundle) int { return b.Version.Compare(a.Version) })
	text := make([]string, 0, maxListed)
	for _, b := range bundles[:min(len(bundles), maxListed)] {
		text = append(text, b.VersionString())
	}
	if more := len(bundles) - maxListed; more > 0 {
		text = append(text, fmt.Sprintf("and %d older", more))
	}
	return "it offers " + strings.Join(text, ", ")
}
