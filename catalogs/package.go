// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Package is one operator in a catalog: its bundles and the channels that order them. A Package that a reader
// returned is valid and must be treated as read-only, because readers and caches share it.
type Package struct {
	Name           string
	DefaultChannel string
	Description    string
	Icon           *Icon
	// Deprecation is why the package must not be used for new installations; empty if it is not deprecated.
	Deprecation string
	Channels    map[string]*Channel
	Bundles     map[string]*Bundle
	// Blocks are the blocked versions by bundle name. They include blocks of bundles that left the package.
	Blocks map[string]Block
	// Joined are the heads of channels that were joined to other heads; only ReadPackageToImport and
	// ReadGraphsToImport set it.
	Joined []Joined
}

// Icon is the picture of a package.
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

// Entry places a bundle in a channel. The bundle can directly replace the bundles that Replaces and Skips name, and
// the bundles whose version is in SkipRange.
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
	// Release distinguishes rebuilds of one version; it is usually empty.
	Release string
	// Image is the bundle image; empty if the bundle exists only as Objects.
	Image string
	// Properties are in the order of the catalog, without the bundle objects.
	Properties []bundles.Property
	// Objects are the bundle's manifests as JSON, if the catalog contains them.
	Objects [][]byte
	// Inlined is true if the catalog contains the manifests, even if they were not read.
	Inlined       bool `json:"-"`
	RelatedImages []RelatedImage
	Deprecation   string
}

// RelatedImage is an image that a bundle runs.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// VersionString returns the version as users write it: followed by "-" and the release, if there is a release.
func (b *Bundle) VersionString() string {
	if b.Release == "" {
		return b.Version.String()
	}
	return b.Version.String() + "-" + b.Release
}

// Entry returns the channel's entry with that name; false if there is none.
func (c *Channel) Entry(name string) (Entry, bool) {
	i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return c.Entries[i], true
}

// Head returns the name of the only bundle that no other entry of the channel replaces or skips. This
// is also the rule of operator-registry. It is an error if there is no such bundle, or more than one.
func (c *Channel) Head() (string, error) {
	heads := c.listHeads()
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

// listHeads returns the names that no other entry replaces or skips, in the order of the entries.
func (c *Channel) listHeads() []string {
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

// Skips reports whether an entry of the channel skips the bundle. OLM v0 never upgrades to a skipped bundle.
func (c *Channel) Skips(bundle string) bool { return c.listSkipped()[bundle] }

// listSkipped returns the set of names that the entries of the channel skip. OLM v0 never upgrades to a
// skipped bundle.
func (c *Channel) listSkipped() map[string]bool {
	names := map[string]bool{}
	for _, e := range c.Entries {
		for _, s := range e.Skips {
			names[s] = true
		}
	}
	return names
}

// Channel returns the channel with that name, or the default channel if name is empty. The error wraps ErrNoChannel.
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

// describe returns the version of a bundle for messages, or the bundle's name if the version is unknown.
func (p *Package) describe(bundle string) string {
	if b, ok := p.Bundles[bundle]; ok {
		return b.VersionString()
	}
	return bundle
}

// Head returns the bundle at the head of a channel. An empty channel means the default channel. Errors wrap
// ErrNoChannel or ErrInvalidPackage.
func (p *Package) Head(channel string) (*Bundle, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	return p.findBundle(c, head)
}

// Target returns the bundle that a channel offers as a version. An empty version means the channel's head, an empty
// channel the default channel. The version can be incomplete, such as 1.2 for 1.2.0, if it matches only one bundle.
// Errors wrap ErrNoChannel, ErrNoVersion, ErrBlocked or ErrInvalidPackage.
func (p *Package) Target(channel, version string) (*Bundle, error) {
	if version == "" {
		return p.Head(channel)
	}
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	if b, ok := p.findBlock(version); ok {
		return nil, newBlockedError(p.Name, b)
	}
	var candidates []*Bundle
	wanted, parseErr := semver.ParseTolerant(version)
	for _, e := range c.Entries {
		b, ok := p.Bundles[e.Name]
		switch {
		case !ok: // an entry without a bundle is not installable
		case b.VersionString() == version:
			return b, nil
		case parseErr == nil && b.Release == "" && b.Version.EQ(wanted):
			candidates = append(candidates, b)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	return nil, fmt.Errorf("%w %q in channel %q of package %q: %s", ErrNoVersion, version, c.Name, p.Name,
		p.describeVersions(c, candidates))
}

func (p *Package) findBundle(c *Channel, name string) (*Bundle, error) {
	if b, ok := p.Bundles[name]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%w: channel %q of package %q names %q, which has no bundle", ErrInvalidPackage, c.Name,
		p.Name, name)
}

// maxListed bounds the number of names in a message, because a condition's message must be short.
const maxListed = 8

// describeVersions describes the candidates that a version could mean, if there are several. Otherwise it describes the
// highest versions that the channel offers.
func (p *Package) describeVersions(c *Channel, candidates []*Bundle) string {
	if len(candidates) > 1 {
		var names []string
		for _, b := range candidates {
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
