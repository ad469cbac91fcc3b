// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Errors of this package wrap one of these errors, or ladder.ErrInvalid. Their texts say what to do.
var (
	// ErrNothingToOffer means that all versions of the package, or of its default channel, are blocked or retired.
	ErrNothingToOffer = errors.New("nothing to offer")
	// ErrExpired means that a block has expired and must be reviewed.
	ErrExpired = errors.New("expired block")
	// ErrContent means that a bundle does not match the ladder, or cannot be added to a catalog.
	ErrContent = errors.New("wrong bundle")
	// ErrContinuity means that something that an earlier catalog offered, or that a cluster runs, would be lost.
	ErrContinuity = errors.New("continuity broken")
	// ErrDisagreement means that OLM would not follow the planned upgrade path.
	ErrDisagreement = errors.New("disagreement about the next version")
)

// member is a version in the ladder, including retired versions.
type member struct {
	name    string
	version semver.Version
	// reachedChannel is the highest channel that offered the version; empty if it was never offered.
	reachedChannel string
	image          string
	deprecation    string
	// retired versions are not offered, and clusters must not be upgraded to blocked versions.
	retired, blocked bool
}

func (m member) isOfferable() bool { return !m.retired && !m.blocked }

// listMembers returns all versions of the ladder, including blocked and retired versions, the lowest first. The error
// wraps ladder.ErrInvalid.
func listMembers(l *ladder.Ladder) ([]member, error) {
	out := make([]member, 0, len(l.Bundles)+len(l.Retired))
	add := func(m member, version string) error {
		var err error
		if m.version, err = semver.Parse(version); err != nil {
			return fmt.Errorf("%w: version %q: %w", ladder.ErrInvalid, version, err)
		}
		out = append(out, m)
		return nil
	}
	for _, b := range l.Bundles {
		_, blocked := l.Blocked(b.Version)
		m := member{name: l.BundleName(b.Name, b.Version), reachedChannel: b.Channel, image: b.Image, blocked: blocked}
		for _, d := range l.Deprecations {
			if d.Version == b.Version {
				m.deprecation = d.Message
			}
		}
		if err := add(m, b.Version); err != nil {
			return nil, err
		}
	}
	for _, r := range l.Retired {
		m := member{name: l.BundleName(r.Name, r.Version), reachedChannel: r.Channel, retired: true}
		if err := add(m, r.Version); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b member) int {
		return cmp.Or(bundles.CompareVersions(a.version, b.version), strings.Compare(a.name, b.name))
	})
	return out, nil
}

// Graph returns the package that a ladder compiles to, without the content of bundles: it has names, versions and
// edges. A channel without a version to offer is left out. Errors wrap ErrNothingToOffer or ladder.ErrInvalid.
func Graph(l *ladder.Ladder) (*catalogs.Package, error) {
	p, _, err := buildGraph(l)
	return p, err
}

// buildGraph returns the package of Graph, and notes for the user about deprecations that are not applied and about the
// default channel.
func buildGraph(l *ladder.Ladder) (*catalogs.Package, []string, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	all, err := listMembers(l)
	if err != nil {
		return nil, nil, err
	}
	notes := removeHeadDeprecations(l, all)
	p := &catalogs.Package{
		Name: l.Package, Description: l.Description,
		Channels: map[string]*catalogs.Channel{}, Bundles: map[string]*catalogs.Bundle{},
		Blocks: map[string]catalogs.Block{},
	}
	for _, name := range l.ListChannels() {
		if c := buildChannel(l, name, all); c != nil {
			p.Channels[name] = c
		}
	}
	if p.DefaultChannel, err = chooseDefaultChannel(l, p); err != nil {
		return nil, nil, err
	}
	if p.DefaultChannel != l.Default() {
		notes = append(notes, fmt.Sprintf("no version has reached channel %s yet, so %s is the default channel",
			l.Default(), p.DefaultChannel))
	}
	offered := p.Offered()
	for _, m := range all {
		if offered[m.name] {
			p.Bundles[m.name] = &catalogs.Bundle{Name: m.name, Version: m.version, Image: m.image,
				Deprecation: m.deprecation}
		}
	}
	addDeprecationsAndBlocks(l, p)
	if err := p.Validate(); err != nil {
		return nil, nil, fmt.Errorf("compile ladder: %w", err)
	}
	return p, notes, nil
}

// buildChannel computes the edges of a channel; nil if it has no good version, which is an offered version that is
// not blocked.
//
// The good versions form a chain of replaces. Each good version also replaces the versions between itself and the
// next lower good version: by name in skips, so that OLM v0 never installs them, and by version in skipRange, so that
// a cluster with an unknown version can be upgraded too. So every version below the head has only one successor, and
// the result does not depend on how OLM chooses among several successors.
//
// Several successors exist in two cases, and in both OLM v0 and OLM v1 choose the highest: with the policy Direct,
// whose ranges include all lower versions; and around deprecated versions, because OLM v1 does not upgrade from a
// version that is not deprecated to a deprecated version.
func buildChannel(l *ladder.Ladder, name string, all []member) *catalogs.Channel {
	c := &catalogs.Channel{Name: name}
	// previous is the next lower good version, lastUndeprecated the next lower good version without a deprecation.
	var previous, lastUndeprecated *member
	var between []string
	var blocked []catalogs.Entry
	for i := range all {
		m := &all[i]
		offered := !m.retired && l.Reaches(m.reachedChannel, name)
		if !offered || m.blocked {
			between = append(between, m.name)
			if offered {
				blocked = append(blocked, catalogs.Entry{Name: m.name})
			}
			continue
		}
		// The entries of blocked versions stay, without edges, because OLM reports a deprecated bundle only if the
		// channel contains it.
		c.Entries = append(append(c.Entries, blocked...), catalogs.Entry{
			Name: m.name, Replaces: getMemberName(previous), Skips: between,
			SkipRange: buildSkipRange(l.Policy.Upgrades, lastUndeprecated, m),
		})
		previous, between, blocked = m, nil, nil
		if m.deprecation == "" {
			lastUndeprecated = m
		}
	}
	if previous == nil {
		return nil
	}
	return c
}

func getMemberName(m *member) string {
	if m == nil {
		return ""
	}
	return m.name
}

// buildSkipRange returns the range of versions below m, down to lastUndeprecated. If lastUndeprecated is nil or
// upgrades are direct, the range has no lower bound.
func buildSkipRange(upgrades ladder.Upgrades, lastUndeprecated, m *member) string {
	upperBound := "<" + m.version.String()
	if !canBeRangeBound(m.version) {
		upperBound = "<" + formatCore(m.version) + "-0"
	}
	if lastUndeprecated == nil || upgrades == ladder.Direct {
		return upperBound
	}
	if !canBeRangeBound(lastUndeprecated.version) {
		return ">=" + formatCore(lastUndeprecated.version) + " " + upperBound
	}
	return ">=" + lastUndeprecated.version.String() + " " + upperBound
}

// canBeRangeBound reports whether a version can be written into a range: a range ignores build metadata, and the parser
// of both OLMs reads any x as a wildcard. If it returns false, the range uses other bounds and is narrower, and the
// names in replaces and skips still cover all known versions.
func canBeRangeBound(v semver.Version) bool {
	return len(v.Build) == 0 && !strings.Contains(v.String(), "x")
}

// formatCore returns the version without pre-release and build metadata.
func formatCore(v semver.Version) string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// removeHeadDeprecations removes the deprecations of versions in all that are heads of a channel, and returns a note
// for each. OLM v1 does not upgrade from a version that is not deprecated to a deprecated version, while OLM v0 does.
// all must be sorted, the lowest version first.
func removeHeadDeprecations(l *ladder.Ladder, all []member) []string {
	heads := map[*member][]string{}
	for _, name := range l.ListChannels() {
		for i := range slices.Backward(all) {
			if m := &all[i]; m.isOfferable() && l.Reaches(m.reachedChannel, name) {
				heads[m] = append(heads[m], name)
				break
			}
		}
	}
	var notes []string
	for i := range all {
		m := &all[i]
		if m.deprecation == "" || len(heads[m]) == 0 {
			continue
		}
		notes = append(notes,
			fmt.Sprintf("version %s is not marked as deprecated as long as it is the head of %s: OLM v1 would not "+
				"upgrade to it",
				m.version, strings.Join(heads[m], ", ")))
		m.deprecation = ""
	}
	return notes
}

// chooseDefaultChannel returns the ladder's default channel or, if no version has reached it yet, the highest lower
// channel that has a version. It is an error if one of these channels had versions and has none left, because clusters
// must not be moved to a lower channel.
func chooseDefaultChannel(l *ladder.Ladder, p *catalogs.Package) (string, error) {
	channels := l.ListChannels()
	candidates := channels[:1+slices.Index(channels, l.Default())]
	for _, name := range slices.Backward(candidates) {
		switch {
		case p.Channels[name] != nil:
			return name, nil
		case hasHadVersions(l, name):
			return "", fmt.Errorf("%w: the default channel %q of package %q has no version left that is not blocked: "+
				"promote one to it",
				ErrNothingToOffer, name, l.Package)
		}
	}
	return "", fmt.Errorf("%w: package %q has no version yet", ErrNothingToOffer, l.Package)
}

// hasHadVersions reports whether a channel ever offered a version.
func hasHadVersions(l *ladder.Ladder, channel string) bool {
	return slices.ContainsFunc(l.Bundles, func(b ladder.Bundle) bool { return l.Reaches(b.Channel, channel) }) ||
		slices.ContainsFunc(l.Retired, func(r ladder.Retired) bool { return l.Reaches(r.Channel, channel) })
}

// addDeprecationsAndBlocks adds the ladder's blocks, and its deprecations of the package and of channels, to the
// package. Its bundles already have their deprecations; a block replaces the deprecation of its bundle.
func addDeprecationsAndBlocks(l *ladder.Ladder, p *catalogs.Package) {
	for _, d := range l.Deprecations {
		switch {
		case d.Package != "":
			p.Deprecation = d.Message
		case d.Channel != "" && p.Channels[d.Channel] != nil:
			p.Channels[d.Channel].Deprecation = d.Message
		}
	}
	for _, block := range l.Blocks {
		name := findBundleName(l, block.Version)
		p.Blocks[name] = catalogs.Block{
			Bundle: name, Version: block.Version, Reason: block.Reason, Expires: block.Expires, Instead: block.Instead,
		}
		if b := p.Bundles[name]; b != nil {
			b.Deprecation = formatBlockMessage(block)
		}
	}
}

// formatBlockMessage returns the deprecation message that OLM shows for a blocked version.
func formatBlockMessage(b ladder.Block) string {
	if b.Instead == "" {
		return "blocked: " + b.Reason
	}
	return "blocked: " + b.Reason + "; use " + b.Instead + " instead"
}

// findBundleName returns the bundle name of a version, or the conventional name if the ladder does not have
// the version.
func findBundleName(l *ladder.Ladder, version string) string {
	if b, err := l.Bundle(version); err == nil {
		return l.BundleName(b.Name, version)
	}
	return l.BundleName("", version)
}

// Waiting is a version without an upgrade path in its channel, because every version above it is blocked or does not
// exist yet. Clusters that run it wait for a newer version, or are rolled back; the graph has no downgrades.
type Waiting struct {
	Channel string
	Bundle  string
	Version string
	// Blocked is the reason of the block; empty for a retired version.
	Blocked string
}

// WaitingVersions returns the blocked and retired versions above the heads of the channels that they had reached, by
// channel in the order of the ladder and by version, the highest first.
func WaitingVersions(l *ladder.Ladder) ([]Waiting, error) {
	all, err := listMembers(l)
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, name := range l.ListChannels() {
		for _, m := range slices.Backward(all) {
			if !l.Reaches(m.reachedChannel, name) {
				continue
			}
			if m.isOfferable() {
				break
			}
			block, _ := l.Blocked(m.version.String())
			out = append(out, Waiting{Channel: name, Bundle: m.name, Version: m.version.String(),
				Blocked: block.Reason})
		}
	}
	return out, nil
}
