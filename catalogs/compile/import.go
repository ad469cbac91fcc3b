// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Import fills a ladder with what a catalog offers, and returns what will not be as it was there. The channels become
// rungs by the versions of their heads, the highest head lowest. Bundles that every channel skips are retired. Every
// bundle needs an image by digest; the error wraps ladder.ErrInvalid and lists those that have none.
func Import(l *ladder.Ladder, p *catalogs.Package) ([]string, error) {
	next := l.Clone()
	next.Package, next.Description, next.DefaultChannel = p.Name, p.Description, p.DefaultChannel
	next.Channels = rungsOf(p)
	next.Bundles, next.Blocks, next.Deprecations, next.Retired = nil, nil, nil, nil
	var problems []error
	for _, b := range slices.SortedFunc(maps.Values(p.Bundles),
		func(a, b *catalogs.Bundle) int { return registryv1.CompareVersions(a.Version, b.Version) }) {
		if err := importBundle(next, p, b); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("%w: import package %q: %w", ladder.ErrInvalid, p.Name, err)
	}
	importRemoved(next, p)
	importDeprecations(next, p)
	if err := next.Check(); err != nil {
		return nil, fmt.Errorf("import package %q: %w", p.Name, err)
	}
	*l = *next
	return append(changedHeads(l, p), joinedChannels(l, p)...), nil
}

// changedHeads says which channels have another head than before. In a ladder the head is the highest version, and a
// catalog may have a lower one there, by an edge that leads from a higher version to it.
func changedHeads(l *ladder.Ladder, p *catalogs.Package) []string {
	after, err := Graph(l)
	if err != nil {
		return nil // the ladder has nothing to offer yet; compiling it says so
	}
	var notes []string
	for _, name := range l.Channels {
		old, err := p.Target(name, "")
		if err != nil {
			continue
		}
		head, err := after.Target(name, "")
		if err != nil || head.Name == old.Name {
			continue
		}
		note := fmt.Sprintf("the head of channel %s was %s and will be %s", name, old.VersionString(),
			head.VersionString())
		if edges := downgrades(p, p.Channels[name]); len(edges) > 0 {
			note += ": a ladder has no downgrades, and in the catalog " + strings.Join(edges, " and ") + "; block " +
				head.VersionString() + " if no cluster may get it"
		}
		notes = append(notes, note)
	}
	return notes
}

// downgrades are the edges of a channel that lead to a lower version.
func downgrades(p *catalogs.Package, c *catalogs.Channel) []string {
	var out []string
	for _, e := range c.Entries {
		to, replaced := p.Bundles[e.Name], p.Bundles[e.Replaces]
		if to != nil && replaced != nil && replaced.Version.GT(to.Version) {
			out = append(out, to.VersionString()+" replaces "+replaced.VersionString())
		}
	}
	return out
}

// rungsOf orders channels: the newest head is what is tried out first.
func rungsOf(p *catalogs.Package) []string {
	head := func(name string) semver.Version {
		if b, err := p.Target(name, ""); err == nil {
			return b.Version
		}
		return semver.Version{}
	}
	names := slices.Sorted(maps.Keys(p.Channels))
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(registryv1.CompareVersions(head(b), head(a)),
			len(p.Channels[b].Entries)-len(p.Channels[a].Entries))
	})
	return names
}

func importBundle(l *ladder.Ladder, p *catalogs.Package, b *catalogs.Bundle) error {
	if b.Release != "" {
		return fmt.Errorf("bundle %s has release %s of version %s: a ladder has no releases of a version", b.Name,
			b.Release, b.Version)
	}
	if b.Image == "" {
		return fmt.Errorf("bundle %s has no image: push it, so that the ladder can name it", b.Name)
	}
	if err := ladder.CheckImage(b.Image); err != nil {
		return fmt.Errorf("bundle %s: %w", b.Name, err)
	}
	name := b.Name
	if name == l.BundleName("", b.Version.String()) {
		name = ""
	}
	offered, reached := highest(l, p, b.Name)
	block, blocked := p.Blocked(b.Name)
	if !offered && !blocked {
		l.Retired = append(l.Retired, ladder.Retired{
			Version: b.Version.String(), Name: name, Image: b.Image, Channel: reached,
			Reason: "skipped by every channel when it was imported",
		})
		return nil
	}
	l.Bundles = append(l.Bundles, ladder.Bundle{Version: b.Version.String(), Name: name, Image: b.Image,
		Channel: reached})
	if blocked {
		l.Blocks = append(l.Blocks, ladder.Block{Version: b.Version.String(), Reason: block.Reason,
			Expires: block.Expires, Instead: block.Instead})
	} else if b.Deprecation != "" {
		l.Deprecations = append(l.Deprecations, ladder.Deprecation{Version: b.Version.String(), Message: b.Deprecation})
	}
	return nil
}

// highest returns the highest rung that has a bundle, and whether any does not skip it; of those, the highest such
// rung.
func highest(l *ladder.Ladder, p *catalogs.Package, bundle string) (offered bool, rung string) {
	for _, name := range l.Channels {
		c := p.Channels[name]
		if _, ok := c.Entry(bundle); !ok {
			continue
		}
		switch skipped := c.Skips(bundle); {
		case !skipped:
			offered, rung = true, name
		case !offered:
			rung = name
		}
	}
	return offered, rung
}

// importRemoved retires the versions that the channels only name: some cluster may run them.
func importRemoved(l *ladder.Ladder, p *catalogs.Package) {
	seen := map[string]bool{}
	for _, b := range p.Bundles {
		seen[b.Version.String()] = true
	}
	for _, name := range namedInEdges(p) {
		v, ok := catalogs.Installed{Name: name}.SemVer()
		if p.Bundles[name] != nil || !ok || seen[v.String()] {
			continue
		}
		seen[v.String()] = true
		gone := ladder.Retired{Version: v.String(), Reason: "not in the catalog any more when it was imported"}
		if name != l.BundleName("", v.String()) {
			gone.Name = name
		}
		l.Retired = append(l.Retired, gone)
	}
	for name, b := range p.Blocks {
		if _, err := semver.Parse(b.Version); err == nil && !seen[b.Version] {
			seen[b.Version] = true
			gone := ladder.Retired{Version: b.Version, Reason: leftBlocked + b.Reason}
			if name != l.BundleName("", b.Version) {
				gone.Name = name
			}
			l.Retired = append(l.Retired, gone)
		}
	}
	slices.SortFunc(l.Retired, func(a, b ladder.Retired) int {
		return registryv1.CompareVersions(semver.MustParse(a.Version), semver.MustParse(b.Version))
	})
}

// leftBlocked begins the reason of a version that was blocked, and whose bundle the catalog does not have any more.
const leftBlocked = "blocked when it was imported: "

// namedInEdges are the bundles that some entry replaces or skips, sorted.
func namedInEdges(p *catalogs.Package) []string {
	var names []string
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			names = append(append(names, e.Skips...), e.Replaces)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func importDeprecations(l *ladder.Ladder, p *catalogs.Package) {
	if p.Deprecation != "" {
		l.Deprecations = append(l.Deprecations, ladder.Deprecation{Package: p.Name, Message: p.Deprecation})
	}
	for _, name := range l.Channels {
		if message := p.Channels[name].Deprecation; message != "" {
			l.Deprecations = append(l.Deprecations, ladder.Deprecation{Channel: name, Message: message})
		}
	}
}

// joinedChannels says which channels offer versions that they did not, since they are below one that does.
func joinedChannels(l *ladder.Ladder, p *catalogs.Package) []string {
	var notes []string
	for _, name := range l.Channels {
		var more []string
		for _, b := range l.Bundles {
			_, had := p.Channels[name].Entry(l.BundleName(b.Name, b.Version))
			if l.Reaches(b.Channel, name) && !had {
				more = append(more, b.Version)
			}
		}
		if len(more) > 0 {
			notes = append(notes, fmt.Sprintf("channel %s will offer %s as well, since a higher channel does", name,
				strings.Join(more, ", ")))
		}
	}
	for _, r := range l.Retired {
		if strings.HasPrefix(r.Reason, leftBlocked) {
			notes = append(notes,
				fmt.Sprintf("version %s is blocked, and the catalog does not have its bundle any more: it is listed "+
					"as retired; move it to bundles with its image, and block it, if clusters may run it", r.Version))
		}
	}
	if p.Icon != nil {
		notes = append(notes,
			"the package's icon is not imported: save it beside the ladder file and name it under icon, or the "+
				"newest bundle's is taken")
	}
	return notes
}
