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

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Import replaces the content of a ladder by the content of a catalog's package, and returns notes about differences
// between the two. The channels are ordered by the versions of their heads: the channel with the highest head becomes
// the first. A bundle is retired if every
// channel skips it, or replaces it by a lower version, such as a hot-fix 1.2.0-hotfix1 of 1.2.0. Every bundle needs
// an image by digest; otherwise the error wraps ladder.ErrInvalid and lists the bundles without an image.
func Import(l *ladder.Ladder, p *catalogs.Package) ([]string, error) {
	next := l.Clone()
	next.Package, next.Description, next.DefaultChannel = p.Name, p.Description, p.DefaultChannel
	next.Channels = orderChannels(p)
	next.Bundles, next.Blocks, next.Deprecations, next.Retired = nil, nil, nil, nil
	var problems []error
	for _, b := range slices.SortedFunc(maps.Values(p.Bundles),
		func(a, b *catalogs.Bundle) int { return bundles.CompareVersions(a.Version, b.Version) }) {
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
	notes := append(describeJoinedHeads(l, p), describeChangedHeads(l, p)...)
	notes = append(notes, describeDowngrades(l, p)...)
	return append(notes, describeOtherChanges(l, p)...), nil
}

// describeChangedHeads returns a note for each channel whose head in the catalog differs from its head in the package
// that the ladder compiles to. The head of a ladder's channel is its highest version. The head of a catalog's channel
// can be lower, if an edge leads from a higher version to it.
func describeChangedHeads(l *ladder.Ladder, p *catalogs.Package) []string {
	compiled, err := Graph(l)
	if err != nil {
		return nil // the ladder has no version to offer; Compile reports this error
	}
	var notes []string
	for _, name := range l.Channels {
		oldHead, err := p.Head(name)
		if err != nil {
			continue
		}
		newHead, err := compiled.Head(name)
		if err != nil || newHead.Name == oldHead.Name {
			continue
		}
		notes = append(notes, fmt.Sprintf("the head of channel %s was %s and will be %s", name, oldHead.VersionString(),
			newHead.VersionString()))
	}
	return notes
}

// downgrade is an edge of a channel that leads to a lower version.
type downgrade struct{ from, to *catalogs.Bundle }

// listDowngrades returns the downgrades in a channel of the catalog, in the order of its entries. It ignores edges
// that were added to join dangling heads.
func listDowngrades(p *catalogs.Package, c *catalogs.Channel) []downgrade {
	var out []downgrade
	for _, e := range c.Entries {
		replaces := e.Replaces
		for _, j := range p.Joined {
			if j.Channel == c.Name && j.Next == e.Name && j.Dangling == e.Replaces {
				replaces = j.Former
			}
		}
		to, from := p.Bundles[e.Name], p.Bundles[replaces]
		if to != nil && from != nil && bundles.CompareVersions(from.Version, to.Version) > 0 {
			out = append(out, downgrade{from, to})
		}
	}
	return out
}

// describeDowngrades returns a note for each downgrade of the catalog. A ladder has no downgrades, so the note
// describes what happens to the clusters instead.
func describeDowngrades(l *ladder.Ladder, p *catalogs.Package) []string {
	compiled, err := Graph(l)
	if err != nil {
		return nil // the ladder has no version to offer; Compile reports this error
	}
	var notes []string
	for _, name := range l.Channels {
		if compiled.Channels[name] == nil { // the ladder offers nothing in this channel
			continue
		}
		for _, d := range listDowngrades(p, p.Channels[name]) {
			lower := "a lower version"
			if len(d.to.Version.Pre) > 0 && formatCore(d.to.Version) == formatCore(d.from.Version) {
				lower = "a pre-release and so a lower version"
			}
			notes = append(notes, fmt.Sprintf("in channel %s the catalog replaces %s by %s, which is %s, and a ladder "+
				"has no downgrades: %s", name, d.from.Version, d.to.Version, lower,
				d.describeOutcome(l, compiled, name)))
		}
	}
	return notes
}

// describeOutcome describes, for a note, what happens to clusters with one of the two versions in a channel of the
// compiled package, and how a user can prevent an unwanted upgrade.
func (d downgrade) describeOutcome(l *ladder.Ladder, compiled *catalogs.Package, channel string) string {
	from, to := d.from.Version.String(), d.to.Version.String()
	state, advice := from+" is retired", ""
	reached := findReachedChannel(l, from)
	switch _, blocked := compiled.Blocked(d.from.Name); {
	case blocked:
		state = from + " is blocked"
	case l.Reaches(reached, channel): // a higher channel offers the version, so this channel does too
		return fmt.Sprintf("another channel offers %s, so clusters on %s are upgraded to %s; block %s if no cluster "+
			"may get it", from, to, cmp.Or(findNextAbove(compiled, channel, d.to.Version), from), from)
	case reached != "": // only lower channels offer the version
		state = from + " stays in " + describeOnlyChannels(l, reached)
		advice = "; block " + from + " if no cluster may get it"
	}
	switch next := findNextAbove(compiled, channel, d.from.Version); next {
	case "":
		return state + ", and clusters on it stay there until a version above it is added" + advice
	case findNextAbove(compiled, channel, d.to.Version): // the same version follows both
		return fmt.Sprintf("%s, and clusters on %s or %s are upgraded to %s%s", state, from, to, next, advice)
	default:
		return fmt.Sprintf("%s, and clusters on it are upgraded to %s%s", state, next, advice)
	}
}

// describeOnlyChannels names the channels that offer a version whose highest channel is reached.
func describeOnlyChannels(l *ladder.Ladder, reached string) string {
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

// findReachedChannel returns the highest channel that an offered version has reached; empty if the ladder does not
// offer the version.
func findReachedChannel(l *ladder.Ladder, version string) string {
	if b, err := l.Bundle(version); err == nil {
		return b.Channel
	}
	return ""
}

// findNextAbove returns the lowest version of a channel above a version, without blocked versions; empty if there
// is none. The entries of the channel must be sorted by version, the lowest first.
func findNextAbove(p *catalogs.Package, channel string, version semver.Version) string {
	next := ""
	for _, e := range slices.Backward(p.Channels[channel].Entries) {
		b := p.Bundles[e.Name]
		if _, blocked := p.Blocked(e.Name); !blocked && bundles.CompareVersions(b.Version, version) > 0 {
			next = b.Version.String()
		}
	}
	return next
}

// describeJoinedHeads returns a note for each head that was dangling in the catalog. The note names the version to
// which clusters that run it are upgraded, if there is one.
func describeJoinedHeads(l *ladder.Ladder, p *catalogs.Package) []string {
	compiled, err := Graph(l)
	if err != nil {
		return nil // the ladder has no version to offer; Compile reports this error
	}
	var notes []string
	for _, j := range p.Joined {
		if compiled.Channels[j.Channel] == nil { // the ladder offers nothing in this channel
			continue
		}
		b := p.Bundles[j.Dangling]
		note := fmt.Sprintf("in channel %s of the catalog %s is dangling: no version replaces it, since %s replaces %s",
			j.Channel, b.Version, describeBundle(p, j.Next), describeBundle(p, j.Former))
		if next := findNextAbove(compiled, j.Channel, b.Version); next != "" {
			note += "; in the ladder clusters on it are upgraded to " + next
		}
		notes = append(notes, note)
	}
	return notes
}

// describeBundle returns the version of a bundle, or its name if the catalog does not have the bundle.
func describeBundle(p *catalogs.Package, bundle string) string {
	if b := p.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	return bundle
}

// orderChannels returns the names of the channels, the highest head first, because new versions are tried in the first
// channel. If heads are equal, the channel with more entries comes first.
func orderChannels(p *catalogs.Package) []string {
	getHeadVersion := func(name string) semver.Version {
		if b, err := p.Head(name); err == nil {
			return b.Version
		}
		return semver.Version{}
	}
	names := slices.Sorted(maps.Keys(p.Channels))
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(bundles.CompareVersions(getHeadVersion(b), getHeadVersion(a)),
			len(p.Channels[b].Entries)-len(p.Channels[a].Entries))
	})
	return names
}

// importBundle adds a bundle of the catalog to the ladder, as an offered version with its block or deprecation, or as
// a retired version.
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
	if name == l.BundleName("", b.Version.String()) { // the ladder does not repeat the conventional name
		name = ""
	}
	offered, reached := findHighestChannel(l, p, b.Name)
	block, blocked := p.Blocked(b.Name)
	if !offered && !blocked {
		reason := "skipped by every channel when it was imported"
		if lower := findLowerReplacement(p, b.Name); lower != "" {
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

// findHighestChannel returns the highest channel of the ladder that offers a bundle: it neither skips the bundle nor
// replaces it by a lower version. If no channel offers the bundle, offered is false, and channel is the highest channel
// that contains it.
func findHighestChannel(l *ladder.Ladder, p *catalogs.Package, bundle string) (offered bool, channel string) {
	for _, name := range l.Channels {
		c := p.Channels[name]
		if _, ok := c.Entry(bundle); !ok {
			continue
		}
		isUnoffered := c.Skips(bundle) || slices.ContainsFunc(listDowngrades(p, c), func(d downgrade) bool {
			return d.from.Name == bundle
		})
		switch {
		case !isUnoffered:
			offered, channel = true, name
		case !offered:
			channel = name
		}
	}
	return offered, channel
}

// findLowerReplacement returns the lower version that replaces a bundle in a channel; empty if there is none.
func findLowerReplacement(p *catalogs.Package, bundle string) string {
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		for _, d := range listDowngrades(p, p.Channels[name]) {
			if d.from.Name == bundle {
				return d.to.VersionString()
			}
		}
	}
	return ""
}

// importRemoved adds versions to the ladder, as retired, that the channels or blocks name but whose bundles the catalog
// does not have, because clusters could run them. It also sorts the retired versions.
func importRemoved(l *ladder.Ladder, p *catalogs.Package) {
	isImported := map[string]bool{}
	for _, b := range p.Bundles {
		isImported[b.Version.String()] = true
	}
	for _, name := range listEdgeNames(p) {
		v, ok := catalogs.Installed{Name: name}.SemVer() // not ok if the name contains no version
		if p.Bundles[name] != nil || !ok || isImported[v.String()] {
			continue
		}
		isImported[v.String()] = true
		retired := ladder.Retired{Version: v.String(), Reason: "not in the catalog any more when it was imported"}
		if name != l.BundleName("", v.String()) {
			retired.Name = name
		}
		l.Retired = append(l.Retired, retired)
	}
	for name, b := range p.Blocks {
		if _, err := semver.Parse(b.Version); err == nil && !isImported[b.Version] {
			isImported[b.Version] = true
			retired := ladder.Retired{Version: b.Version, Reason: blockedReasonPrefix + b.Reason}
			if name != l.BundleName("", b.Version) {
				retired.Name = name
			}
			l.Retired = append(l.Retired, retired)
		}
	}
	slices.SortFunc(l.Retired, func(a, b ladder.Retired) int {
		return bundles.CompareVersions(semver.MustParse(a.Version), semver.MustParse(b.Version))
	})
}

// blockedReasonPrefix begins the reason of a version that was blocked and whose bundle is not in the catalog.
const blockedReasonPrefix = "blocked when it was imported: "

// listEdgeNames returns the bundles that entries replace or skip, sorted.
func listEdgeNames(p *catalogs.Package) []string {
	var names []string
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			names = append(append(names, e.Skips...), e.Replaces)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// importDeprecations adds the deprecations of the package and its channels to the ladder. importBundle adds those of
// bundles.
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

// describeOtherChanges returns notes about channels that offer more versions than in the catalog, because a higher
// channel offers these versions, about blocked versions without a bundle, and about the icon.
func describeOtherChanges(l *ladder.Ladder, p *catalogs.Package) []string {
	var notes []string
	for _, name := range l.Channels {
		var more []string
		for _, b := range l.Bundles {
			_, isEntry := p.Channels[name].Entry(l.BundleName(b.Name, b.Version))
			if l.Reaches(b.Channel, name) && !isEntry {
				more = append(more, b.Version)
			}
		}
		if len(more) > 0 {
			notes = append(notes, fmt.Sprintf("channel %s will offer %s as well, since a higher channel does", name,
				strings.Join(more, ", ")))
		}
	}
	for _, r := range l.Retired {
		if strings.HasPrefix(r.Reason, blockedReasonPrefix) {
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
