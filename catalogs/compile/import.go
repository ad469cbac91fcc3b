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
// rungs by the versions of their heads, the highest head lowest. Bundles are retired that every channel skips, or has a
// lower version replace, such as a hot-fix 1.2.0-hotfix1 of 1.2.0. Every bundle needs an image by digest; the error
// wraps ladder.ErrInvalid and lists those that have none.
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
	notes := append(joinedHeads(l, p), changedHeads(l, p)...)
	notes = append(notes, downgraded(l, p)...)
	return append(notes, joinedChannels(l, p)...), nil
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
		notes = append(notes, fmt.Sprintf("the head of channel %s was %s and will be %s", name, old.VersionString(),
			head.VersionString()))
	}
	return notes
}

// downgrade is an edge of a channel that leads to a lower version.
type downgrade struct{ from, to *catalogs.Bundle }

// downgrades are those of a channel of the catalog, in the order of its entries. What dangling heads were joined by is
// no edge of the catalog.
func downgrades(p *catalogs.Package, c *catalogs.Channel) []downgrade {
	var out []downgrade
	for _, e := range c.Entries {
		replaces := e.Replaces
		for _, j := range p.Joined {
			if j.Channel == c.Name && j.Next == e.Name && j.Dangling == e.Replaces {
				replaces = j.Former
			}
		}
		to, from := p.Bundles[e.Name], p.Bundles[replaces]
		if to != nil && from != nil && registryv1.CompareVersions(from.Version, to.Version) > 0 {
			out = append(out, downgrade{from, to})
		}
	}
	return out
}

// downgraded says what becomes of clusters where the catalog leads to a lower version: a ladder has no downgrades.
func downgraded(l *ladder.Ladder, p *catalogs.Package) []string {
	after, err := Graph(l)
	if err != nil {
		return nil // as in changedHeads
	}
	var notes []string
	for _, name := range l.Channels {
		if after.Channels[name] == nil {
			continue
		}
		for _, d := range downgrades(p, p.Channels[name]) {
			lower := "a lower version"
			if len(d.to.Version.Pre) > 0 && core(d.to.Version) == core(d.from.Version) {
				lower = "a pre-release and so a lower version"
			}
			notes = append(notes, fmt.Sprintf("in channel %s the catalog replaces %s by %s, which is %s, and a ladder "+
				"has no downgrades: %s", name, d.from.Version, d.to.Version, lower, d.outcome(l, after, name)))
		}
	}
	return notes
}

// outcome says what becomes of clusters with either version in a channel of the package that a ladder compiles to.
func (d downgrade) outcome(l *ladder.Ladder, after *catalogs.Package, channel string) string {
	from, to := d.from.Version.String(), d.to.Version.String()
	state, advice := from+" is retired", ""
	reached := reachedBy(l, from)
	switch _, blocked := after.Blocked(d.from.Name); {
	case blocked:
		state = from + " is blocked"
	case l.Reaches(reached, channel):
		return fmt.Sprintf("another channel offers %s, so clusters on %s are upgraded to %s; block %s if no cluster "+
			"may get it", from, to, cmp.Or(nextAbove(after, channel, d.to.Version), from), from)
	case reached != "":
		state = from + " stays in " + onlyIn(l, reached)
		advice = "; block " + from + " if no cluster may get it"
	}
	switch next := nextAbove(after, channel, d.from.Version); next {
	case "":
		return state + ", and clusters on it stay there until a version above it is added" + advice
	case nextAbove(after, channel, d.to.Version):
		return fmt.Sprintf("%s, and clusters on %s or %s are upgraded to %s%s", state, from, to, next, advice)
	default:
		return fmt.Sprintf("%s, and clusters on it are upgraded to %s%s", state, next, advice)
	}
}

// onlyIn names the channels that offer what has reached one of them.
func onlyIn(l *ladder.Ladder, reached string) string {
	var names []string
	for _, name := range l.Channels {
		if l.Reaches(reached, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return "channel " + names[0] + " only"
	}
	return "channels " + strings.Join(names, ", ") + " only"
}

// reachedBy is the channel that a version which is offered has reached; empty for another one.
func reachedBy(l *ladder.Ladder, version string) string {
	if b, err := l.Bundle(version); err == nil {
		return b.Channel
	}
	return ""
}

// nextAbove is the lowest version above another one that a channel leads to; empty if there is none.
func nextAbove(p *catalogs.Package, channel string, version semver.Version) string {
	next := ""
	for _, e := range slices.Backward(p.Channels[channel].Entries) {
		b := p.Bundles[e.Name]
		if _, blocked := p.Blocked(e.Name); !blocked && registryv1.CompareVersions(b.Version, version) > 0 {
			next = b.Version.String()
		}
	}
	return next
}

// joinedHeads says which heads were dangling in the catalog, and what becomes of clusters that run them.
func joinedHeads(l *ladder.Ladder, p *catalogs.Package) []string {
	after, err := Graph(l)
	if err != nil {
		return nil // as in changedHeads
	}
	var notes []string
	for _, j := range p.Joined {
		if after.Channels[j.Channel] == nil {
			continue
		}
		b := p.Bundles[j.Dangling]
		note := fmt.Sprintf("in channel %s of the catalog %s is dangling: no version replaces it, since %s replaces %s",
			j.Channel, b.Version, named(p, j.Next), named(p, j.Former))
		if next := nextAbove(after, j.Channel, b.Version); next != "" {
			note += "; in the ladder clusters on it are upgraded to " + next
		}
		notes = append(notes, note)
	}
	return notes
}

// named is the version of a bundle, or its name where the catalog does not have it.
func named(p *catalogs.Package, bundle string) string {
	if b := p.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	return bundle
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
		reason := "skipped by every channel when it was imported"
		if lower := replacedByLower(p, b.Name); lower != "" {
			reason = "replaced by the lower version " + lower + " when it was imported"
		}
		l.Retired = append(l.Retired, ladder.Retired{
			Version: b.Version.String(), Name: name, Image: b.Image, Channel: reached, Reason: reason,
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

// highest returns the highest rung that has a bundle, and whether any offers it: it neither skips the bundle nor has a
// lower version replace it. Of those that do, it is the highest such rung.
func highest(l *ladder.Ladder, p *catalogs.Package, bundle string) (offered bool, rung string) {
	for _, name := range l.Channels {
		c := p.Channels[name]
		if _, ok := c.Entry(bundle); !ok {
			continue
		}
		isLeft := c.Skips(bundle) || slices.ContainsFunc(downgrades(p, c), func(d downgrade) bool {
			return d.from.Name == bundle
		})
		switch {
		case !isLeft:
			offered, rung = true, name
		case !offered:
			rung = name
		}
	}
	return offered, rung
}

// replacedByLower is the lower version that replaces a bundle in some channel; empty if there is none.
func replacedByLower(p *catalogs.Package, bundle string) string {
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		for _, d := range downgrades(p, p.Channels[name]) {
			if d.from.Name == bundle {
				return d.to.VersionString()
			}
		}
	}
	return ""
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
