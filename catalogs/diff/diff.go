// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff describes what another catalog would change for clusters: for each version that could run somewhere,
// its next version before and after.
//
// Its input is two catalogs and the bundles that clusters run. It is pure, and reports facts only; the caller decides
// whether a change is wanted.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Installed is the number of clusters that run a bundle.
type Installed struct {
	catalogs.Installed
	Clusters int
}

// Change is a kind of change.
type Change string

// Changes of a package, of a channel, of a version, and of a version's path in a channel.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"

	Blocked      Change = "blocked"
	Unblocked    Change = "unblocked"
	Deprecated   Change = "deprecated"
	Undeprecated Change = "no longer deprecated"
	// NewContent is another image with the same name.
	NewContent Change = "other content"
	// Stranded versions lose the path to the head of the channel.
	Stranded Change = "stranded"
	// NoLongerStranded versions get a path to the head.
	NoLongerStranded Change = "no longer stranded"
	// NextHop is another next version, PathLength another number of hops with the same next version.
	NextHop    Change = "next hop"
	PathLength Change = "path length"
	// LeftChannel and JoinedChannel are changes of the channel's entries.
	LeftChannel   Change = "left channel"
	JoinedChannel Change = "joined channel"
)

// Path is the upgrade path of a version in a channel.
type Path struct {
	// Next is the version of the next hop; empty at the head and without a path.
	Next string `json:"next,omitempty"`
	// Hops is the number of hops to the head: 0 at the head, -1 without a path or a channel.
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
	// Changes are changes of the version itself, Steps changes of its paths.
	Changes []Change `json:"changes,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
	// Reason is why the version is blocked or deprecated in the new catalog.
	Reason string `json:"reason,omitempty"`
	// Stuck is true if the version reached a head before, and reaches none in the new catalog.
	Stuck bool `json:"stuck,omitempty"`
}

// Channel is the change of a channel; Before and After are the versions of its head.
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
	// DefaultBefore and DefaultAfter are the default channels, if they differ.
	DefaultBefore string `json:"defaultBefore,omitempty"`
	DefaultAfter  string `json:"defaultAfter,omitempty"`
	// Channels are the channels with another head; Versions the changed versions, the highest first.
	Channels []Channel `json:"channels,omitempty"`
	Versions []Version `json:"versions,omitempty"`
}

// Diff contains the changes between two catalogs.
type Diff struct {
	// Packages are the changed packages, by name.
	Packages []Package `json:"packages"`
}

// IsEmpty reports whether nothing changes.
func (d Diff) IsEmpty() bool { return len(d.Packages) == 0 }

// Stuck returns the number of clusters that run a version that loses the path to every head.
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

// CompareCatalogs compares two catalogs of valid packages. An installed bundle is assigned to the package that has the
// bundle, before or after; use ComparePackages for bundles that neither catalog has. It is an error if a package has
// no head.
func CompareCatalogs(before, after []*catalogs.Package, installed ...Installed) (Diff, error) {
	oldPackages, newPackages := indexByName(before), indexByName(after)
	names := maps.Clone(oldPackages)
	maps.Copy(names, newPackages)
	d := Diff{Packages: []Package{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var relevant []Installed
		for _, i := range installed {
			if hasBundle(oldPackages[name], i.Name) || hasBundle(newPackages[name], i.Name) {
				relevant = append(relevant, i)
			}
		}
		p, changed, err := ComparePackages(oldPackages[name], newPackages[name], relevant...)
		if err != nil {
			return Diff{}, err
		}
		if changed {
			d.Packages = append(d.Packages, p)
		}
	}
	return d, nil
}

func indexByName(packages []*catalogs.Package) map[string]*catalogs.Package {
	out := make(map[string]*catalogs.Package, len(packages))
	for _, p := range packages {
		out[p.Name] = p
	}
	return out
}

func hasBundle(p *catalogs.Package, bundle string) bool {
	if p == nil {
		return false
	}
	_, blocked := p.Blocks[bundle]
	return p.Bundles[bundle] != nil || blocked
}

// ComparePackages compares two states of one package, each of which can be nil. It returns false if nothing changes.
func ComparePackages(before, after *catalogs.Package, installed ...Installed) (Package, bool, error) {
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
	out.Channels = c.compareChannels()
	for _, name := range c.names {
		if v := c.compareVersion(name); len(v.Changes) > 0 || len(v.Steps) > 0 {
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
	// names are all bundles, the highest first; channelNames are all channels.
	names, channelNames []string
	installed           map[string]Installed
	versions            map[string]string
}

// newComparison prepares the comparison of two states of a package; either can be nil.
func newComparison(before, after *catalogs.Package, installed []Installed) (*comparison, error) {
	c := &comparison{installed: map[string]Installed{}, versions: map[string]string{}}
	numbers, isChannel := map[string]semver.Version{}, map[string]bool{}
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
		c.collectVersions(p, numbers)
		for name := range p.Channels {
			isChannel[name] = true
		}
	}
	c.channelNames = slices.Sorted(maps.Keys(isChannel))
	c.names = slices.SortedFunc(maps.Keys(c.versions), func(a, b string) int {
		return cmp.Or(numbers[b].Compare(numbers[a]), cmp.Compare(b, a))
	})
	var err error
	if c.before, err = c.newSide(before); err != nil {
		return nil, err
	}
	c.after, err = c.newSide(after)
	return c, err
}

// collectVersions records the versions of a package's bundles, as text and as numbers.
func (c *comparison) collectVersions(p *catalogs.Package, numbers map[string]semver.Version) {
	for name, b := range p.Blocks {
		if v, err := semver.ParseTolerant(b.Version); err == nil {
			numbers[name], c.versions[name] = v, b.Version
		}
	}
	for name, b := range p.Bundles {
		numbers[name], c.versions[name] = b.Version, b.VersionString()
	}
}

// newSide returns a package with the routes of all compared versions.
func (c *comparison) newSide(p *catalogs.Package) (side, error) {
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

// compareChannels returns the channels that were added, were removed, or have another head.
func (c *comparison) compareChannels() []Channel {
	var out []Channel
	for _, name := range c.channelNames {
		before, existed := c.before.heads[name]
		after, exists := c.after.heads[name]
		ch := Channel{Name: name, Change: Changed, Before: c.versions[before], After: c.versions[after]}
		switch {
		case !existed:
			ch.Change = Added
		case !exists:
			ch.Change = Removed
		case before == after:
			continue
		}
		out = append(out, ch)
	}
	return out
}

// compareVersion returns the changes of a version and of its paths.
func (c *comparison) compareVersion(name string) Version {
	v := Version{Bundle: name, Version: c.versions[name], Clusters: c.installed[name].Clusters}
	v.Changes, v.Reason = c.listChanges(name)
	hadPath, hasPath := false, false
	for _, channel := range c.channelNames {
		hadPath = hadPath || c.before.findPath(c, channel, name).Hops >= 0
		hasPath = hasPath || c.after.findPath(c, channel, name).Hops >= 0
		if s := c.compareStep(channel, name); len(s.Changes) > 0 {
			v.Steps = append(v.Steps, s)
		}
	}
	v.Stuck = hadPath && !hasPath
	return v
}

// listChanges returns the changes of the bundle itself, and the reason for a block or deprecation.
func (c *comparison) listChanges(name string) (out []Change, reason string) {
	oldBundle, newBundle := c.before.Bundles[name], c.after.Bundles[name]
	_, wasBlocked := c.before.Blocks[name]
	block, isBlocked := c.after.Blocks[name]
	switch {
	case isBlocked && !wasBlocked:
		out, reason = append(out, Blocked), block.Reason
	case wasBlocked && !isBlocked:
		out = append(out, Unblocked)
	}
	switch {
	case oldBundle == nil && newBundle == nil:
		return out, reason
	case oldBundle == nil:
		return append(out, Added), reason
	case newBundle == nil:
		return append(out, Removed), reason
	}
	if oldBundle.Image != newBundle.Image {
		out = append(out, NewContent)
	}
	// A blocked version is deprecated too; one of the two changes is enough.
	if isBlocked || wasBlocked {
		return out, reason
	}
	switch {
	case oldBundle.Deprecation == "" && newBundle.Deprecation != "":
		out, reason = append(out, Deprecated), newBundle.Deprecation
	case oldBundle.Deprecation != "" && newBundle.Deprecation == "":
		out = append(out, Undeprecated)
	}
	return out, reason
}

// findPath returns the upgrade path of a version in a channel; -1 hops if the channel does not exist.
func (s side) findPath(c *comparison, channel, name string) Path {
	routes, ok := s.routes[channel]
	if !ok {
		return Path{Hops: -1}
	}
	route := routes[name]
	return Path{Next: c.versions[route.Next], Hops: route.Hops}
}

func (s side) hasEntry(channel, name string) bool {
	if s.Channels[channel] == nil {
		return false
	}
	_, ok := s.Channels[channel].Entry(name)
	return ok
}

// compareStep compares the paths in one channel. A channel matters for its entries, and for versions that clusters
// run and that no channel has, because these clusters could be subscribed to any channel.
func (c *comparison) compareStep(channel, name string) Step {
	wasEntry, isEntry := c.before.hasEntry(channel, name), c.after.hasEntry(channel, name)
	s := Step{Channel: channel, Before: c.before.findPath(c, channel, name), After: c.after.findPath(c, channel, name)}
	isOnlyOnClusters := c.installed[name].Clusters > 0 && !c.isInAnyChannel(name)
	if !wasEntry && !isEntry && !isOnlyOnClusters {
		return s
	}
	couldRun := wasEntry || c.installed[name].Clusters > 0
	switch {
	case s.Before.Hops >= 0 && s.After.Hops < 0:
		s.Changes = append(s.Changes, Stranded)
	case s.Before.Hops < 0 && s.After.Hops >= 0 && couldRun: // a new version was not stranded
		s.Changes = append(s.Changes, NoLongerStranded)
	case s.Before.Hops >= 0 && s.Before.Next != s.After.Next:
		s.Changes = append(s.Changes, NextHop)
	case s.Before.Hops >= 0 && s.Before.Hops != s.After.Hops:
		s.Changes = append(s.Changes, PathLength)
	}
	switch {
	case wasEntry && !isEntry && c.after.Channels[channel] != nil: // compareChannels reports a removed channel
		s.Changes = append(s.Changes, LeftChannel)
	case isEntry && !wasEntry:
		s.Changes = append(s.Changes, JoinedChannel)
	}
	return s
}

// isInAnyChannel reports whether a version is an entry of any channel, before or after.
func (c *comparison) isInAnyChannel(name string) bool {
	return slices.ContainsFunc(c.channelNames, func(channel string) bool {
		return c.before.hasEntry(channel, name) ||
			c.after.hasEntry(channel, name)
	})
}
