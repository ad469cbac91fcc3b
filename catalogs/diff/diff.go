// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff describes what another catalog would change for clusters: for
// each version that may run somewhere, its next version before and after.
//
// Its input is two catalogs and what clusters run. It is pure, and reports
// facts only; the caller decides whether a change is wanted.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Installed is how many clusters run a bundle.
type Installed struct {
	catalogs.Installed
	Clusters int
}

// Change is a kind of change.
type Change string

// Changes of a package, of a channel, of a version, and of a version's path in
// a channel.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"

	Blocked      Change = "blocked"
	Unblocked    Change = "unblocked"
	Deprecated   Change = "deprecated"
	Undeprecated Change = "no longer deprecated"
	// NewContent is another image under the same name.
	NewContent Change = "other content"
	// Stranded versions no longer reach the head of the channel.
	Stranded Change = "stranded"
	// NoLongerStranded versions did not reach the head before.
	NoLongerStranded Change = "no longer stranded"
	// NextHop is another next version, PathLength another number of hops with
	// the same next version.
	NextHop    Change = "next hop"
	PathLength Change = "path length"
	// LeftChannel and JoinedChannel are about the channel's entries.
	LeftChannel   Change = "left channel"
	JoinedChannel Change = "joined channel"
)

// Path is the upgrade path of a version in a channel.
type Path struct {
	// Next is the version of the next hop; empty at the head and without a
	// path.
	Next string `json:"next,omitempty"`
	// Hops to the head: 0 at the head, -1 without a path or a channel.
	Hops int `json:"hops"`
}

// Step is the change of a version's path in one channel.
type Step struct {
	Channel string   `json:"channel"`
	Before  Path     `json:"before"`
	After   Path     `json:"after"`
	Changes []Change `json:"changes"`
}

// Version is the change of a version.
type Version struct {
	Bundle   string `json:"bundle"`
	Version  string `json:"version"`
	Clusters int    `json:"clusters,omitempty"`
	// Changes are those of the version itself, Steps those of its paths.
	Changes []Change `json:"changes,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
	// Reason is why it is blocked or deprecated now.
	Reason string `json:"reason,omitempty"`
	// Stuck says that it reached some head before, and now reaches none.
	Stuck bool `json:"stuck,omitempty"`
}

// Channel is the change of a channel; Before and After are the versions of its
// head.
type Channel struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Package is the change of a package.
type Package struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	// DefaultBefore and DefaultAfter are the default channels, where they differ.
	DefaultBefore string `json:"defaultBefore,omitempty"`
	DefaultAfter  string `json:"defaultAfter,omitempty"`
	// Channels are those with another head; Versions the changed ones, the highest first.
	Channels []Channel `json:"channels,omitempty"`
	Versions []Version `json:"versions,omitempty"`
}

// Diff is what changes between two catalogs.
type Diff struct {
	// Packages are the changed ones, by name.
	Packages []Package `json:"packages"`
}

// Same reports whether nothing changes.
func (d Diff) Same() bool { return len(d.Packages) == 0 }

// Stuck returns how many clusters run a version that no longer reaches any
// head.
func (d Diff) Stuck() int {
	n := 0
	for _, p := range d.Packages {
		for _, v := range p.Versions {
			if v.Stuck {
				n += v.Clusters
			}
		}
	}
	return n
}

// Catalogs compares two catalogs of valid packages. What is installed counts for the package that has the bundle,
// before or after; see Packages for what neither has. The error is that of a package without a head.
func Catalogs(before, after []*catalogs.Package, installed ...Installed) (Diff, error) {
	old, now := byName(before), byName(after)
	names := maps.Clone(old)
	maps.Copy(names, now)
	d := Diff{Packages: []Package{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var here []Installed
		for _, i := range installed {
			if has(old[name], i.Name) || has(now[name], i.Name) {
				here = append(here, i)
			}
		}
		p, changed, err := Packages(old[name], now[name], here...)
		if err != nil {
			return Diff{}, err
		}
		if changed {
			d.Packages = append(d.Packages, p)
		}
	}
	return d, nil
}

func byName(packages []*catalogs.Package) map[string]*catalogs.Package {
	out := make(map[string]*catalogs.Package, len(packages))
	for _, p := range packages {
		out[p.Name] = p
	}
	return out
}

func has(p *catalogs.Package, bundle string) bool {
	if p == nil {
		return false
	}
	_, blocked := p.Blocks[bundle]
	return p.Bundles[bundle] != nil || blocked
}

// Packages compares two states of one package; either may be nil. It reports whether anything changes.
func Packages(before, after *catalogs.Package, installed ...Installed) (Package, bool, error) {
	c, err := newComparison(before, after, installed)
	if err != nil {
		return Package{}, false, err
	}
	out := Package{Change: Changed}
	switch {
	case before == nil && after == nil:
		return out, false, nil
	case before == nil:
		out.Name, out.Change = after.Name, Added
	case after == nil:
		out.Name, out.Change = before.Name, Removed
	default:
		out.Name = before.Name
		if before.DefaultChannel != after.DefaultChannel {
			out.DefaultBefore, out.DefaultAfter = before.DefaultChannel, after.DefaultChannel
		}
	}
	out.Channels = c.channels()
	for _, name := range c.names {
		if v := c.version(name); len(v.Changes) > 0 || len(v.Steps) > 0 {
			out.Versions = append(out.Versions, v)
		}
	}
	changed := out.Change != Changed || out.DefaultAfter != "" || len(out.Channels) > 0 || len(out.Versions) > 0
	return out, changed, nil
}

// side is a package with all its routes.
type side struct {
	*catalogs.Package
	routes map[string]map[string]catalogs.Route
	heads  map[string]string
}

type comparison struct {
	before, after side
	// names are all bundles, the highest first; lanes all channels.
	names, channelNames []string
	installed           map[string]Installed
	versions            map[string]string
}

func newComparison(before, after *catalogs.Package, installed []Installed) (*comparison, error) {
	c := &comparison{installed: map[string]Installed{}, versions: map[string]string{}}
	numbers, lanes := map[string]semver.Version{}, map[string]bool{}
	for _, i := range installed {
		if v, ok := i.SemVer(); ok {
			numbers[i.Name] = v
		}
		c.installed[i.Name] = i
		c.versions[i.Name] = cmp.Or(i.Version, i.Name)
	}
	for _, p := range []*catalogs.Package{before, after} {
		if p == nil {
			continue
		}
		c.collect(p, numbers)
		for name := range p.Channels {
			lanes[name] = true
		}
	}
	c.channelNames = slices.Sorted(maps.Keys(lanes))
	c.names = slices.SortedFunc(maps.Keys(c.versions), func(a, b string) int {
		return cmp.Or(numbers[b].Compare(numbers[a]), cmp.Compare(b, a))
	})
	var err error
	if c.before, err = c.side(before); err != nil {
		return nil, err
	}
	c.after, err = c.side(after)
	return c, err
}

// collect notes the versions of a package's bundles, as text and as numbers.
func (c *comparison) collect(p *catalogs.Package, numbers map[string]semver.Version) {
	for name, b := range p.Blocks {
		if v, err := semver.ParseTolerant(b.Version); err == nil {
			numbers[name], c.versions[name] = v, b.Version
		}
	}
	for name, b := range p.Bundles {
		numbers[name], c.versions[name] = b.Version, b.VersionString()
	}
}

func (c *comparison) side(p *catalogs.Package) (side, error) {
	if p == nil {
		p = &catalogs.Package{}
	}
	s := side{Package: p, routes: map[string]map[string]catalogs.Route{}, heads: map[string]string{}}
	var all []catalogs.Installed
	for _, name := range c.names {
		all = append(all, catalogs.Installed{Name: name, Version: c.versions[name]})
	}
	for name, channel := range p.Channels {
		routes, err := p.Routes(name, all...)
		if err != nil {
			return side{}, fmt.Errorf("compare package %q: %w", p.Name, err)
		}
		if s.heads[name], err = channel.Head(); err != nil {
			return side{}, fmt.Errorf("compare package %q: %w", p.Name, err)
		}
		s.routes[name] = routes
	}
	return s, nil
}

func (c *comparison) channels() []Channel {
	var out []Channel
	for _, name := range c.channelNames {
		before, had := c.before.heads[name]
		after, has := c.after.heads[name]
		ch := Channel{Name: name, Change: Changed, Before: c.versions[before], After: c.versions[after]}
		switch {
		case !had:
			ch.Change = Added
		case !has:
			ch.Change = Removed
		case before == after:
			continue
		}
		out = append(out, ch)
	}
	return out
}

func (c *comparison) version(name string) Version {
	v := Version{Bundle: name, Version: c.versions[name], Clusters: c.installed[name].Clusters}
	v.Changes, v.Reason = c.changes(name)
	reached, reaches := false, false
	for _, channel := range c.channelNames {
		reached = reached || c.before.path(c, channel, name).Hops >= 0
		reaches = reaches || c.after.path(c, channel, name).Hops >= 0
		if s := c.step(channel, name); len(s.Changes) > 0 {
			v.Steps = append(v.Steps, s)
		}
	}
	v.Stuck = reached && !reaches
	return v
}

// changes are those of the bundle itself.
func (c *comparison) changes(name string) (out []Change, reason string) {
	old, now := c.before.Bundles[name], c.after.Bundles[name]
	_, wasBlocked := c.before.Blocks[name]
	block, isBlocked := c.after.Blocks[name]
	switch {
	case isBlocked && !wasBlocked:
		out, reason = append(out, Blocked), block.Reason
	case wasBlocked && !isBlocked:
		out = append(out, Unblocked)
	}
	switch {
	case old == nil && now == nil:
		return out, reason
	case old == nil:
		return append(out, Added), reason
	case now == nil:
		return append(out, Removed), reason
	}
	if old.Image != now.Image {
		out = append(out, NewContent)
	}
	// A blocked version is deprecated as well; one of the two is enough.
	if isBlocked || wasBlocked {
		return out, reason
	}
	switch {
	case old.Deprecation == "" && now.Deprecation != "":
		out, reason = append(out, Deprecated), now.Deprecation
	case old.Deprecation != "" && now.Deprecation == "":
		out = append(out, Undeprecated)
	}
	return out, reason
}

func (s side) path(c *comparison, channel, name string) Path {
	routes, ok := s.routes[channel]
	if !ok {
		return Path{Hops: -1}
	}
	route := routes[name]
	return Path{Next: c.versions[route.Next], Hops: route.Hops}
}

func (s side) entry(channel, name string) bool {
	if s.Channels[channel] == nil {
		return false
	}
	_, ok := s.Channels[channel].Entry(name)
	return ok
}

// step compares the paths in one channel. A channel matters for its entries,
// and for versions that clusters run and no channel has: they may be subscribed
// to any.
func (c *comparison) step(channel, name string) Step {
	was, is := c.before.entry(channel, name), c.after.entry(channel, name)
	s := Step{Channel: channel, Before: c.before.path(c, channel, name), After: c.after.path(c, channel, name)}
	if !was && !is && (c.installed[name].Clusters == 0 || c.isInAnyChannel(name)) {
		return s
	}
	switch {
	case s.Before.Hops >= 0 && s.After.Hops < 0:
		s.Changes = append(s.Changes, Stranded)
	case s.Before.Hops < 0 && s.After.Hops >= 0 && (was || c.installed[name].Clusters > 0):
		s.Changes = append(s.Changes, NoLongerStranded)
	case s.Before.Hops >= 0 && s.Before.Next != s.After.Next:
		s.Changes = append(s.Changes, NextHop)
	case s.Before.Hops >= 0 && s.Before.Hops != s.After.Hops:
		s.Changes = append(s.Changes, PathLength)
	}
	switch {
	case was && !is && c.after.Channels[channel] != nil:
		s.Changes = append(s.Changes, LeftChannel)
	case is && !was:
		s.Changes = append(s.Changes, JoinedChannel)
	}
	return s
}

// isInAnyChannel reports whether a version is an entry of some channel, before or after.
func (c *comparison) isInAnyChannel(name string) bool {
	return slices.ContainsFunc(c.channelNames, func(l string) bool {
		return c.before.entry(l, name) ||
			c.after.entry(l, name)
	})
}
