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

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Errors of this package wrap one of these, or ladder.ErrInvalid. Their text says what to do.
var (
	// ErrNothingToOffer says that all versions of the package, or of its
	// default channel, are blocked or retired.
	ErrNothingToOffer = errors.New("nothing to offer")
	// ErrExpired says that a block has expired and must be reviewed.
	ErrExpired = errors.New("expired block")
	// ErrContent says that a bundle is not the one that the ladder names, or
	// cannot be added to a catalog.
	ErrContent = errors.New("wrong bundle")
	// ErrContinuity says that something which an earlier catalog offered, or which a cluster runs, would be lost.
	ErrContinuity = errors.New("continuity broken")
	// ErrDisagreement says that OLM would not follow the planned upgrade path.
	ErrDisagreement = errors.New("disagreement about the next version")
)

// member is a version that the ladder knows.
type member struct {
	name    string
	version semver.Version
	// reached is the highest channel; empty for what was never offered.
	reached     string
	image       string
	deprecation string
	// retired versions are not offered any more, and blocked ones must not be reached.
	retired, blocked bool
}

func (m member) isOfferable() bool { return !m.retired && !m.blocked }

// members returns all versions of the ladder, the lowest first.
func members(l *ladder.Ladder) ([]member, error) {
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
		m := member{name: l.BundleName(b.Name, b.Version), reached: b.Channel, image: b.Image, blocked: blocked}
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
		m := member{name: l.BundleName(r.Name, r.Version), reached: r.Channel, retired: true}
		if err := add(m, r.Version); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b member) int {
		return cmp.Or(registryv1.CompareVersions(a.version, b.version), strings.Compare(a.name, b.name))
	})
	return out, nil
}

// Graph returns the package that a ladder compiles to, without the content of
// bundles: it has names, versions and edges. A channel without a version to
// offer is left out. Errors wrap ErrNothingToOffer or ladder.ErrInvalid.
func Graph(l *ladder.Ladder) (*catalogs.Package, error) {
	p, _, err := graph(l)
	return p, err
}

// graph also returns notes for the user.
func graph(l *ladder.Ladder) (*catalogs.Package, []string, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	all, err := members(l)
	if err != nil {
		return nil, nil, err
	}
	notes := undeprecateHeads(l, all)
	p := &catalogs.Package{
		Name: l.Package, Description: l.Description,
		Channels: map[string]*catalogs.Channel{}, Bundles: map[string]*catalogs.Bundle{},
		Blocks: map[string]catalogs.Block{},
	}
	for _, name := range l.Rungs() {
		if c := channel(l, name, all); c != nil {
			p.Channels[name] = c
		}
	}
	if p.DefaultChannel, err = defaultChannel(l, p); err != nil {
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
	addLadderNotes(l, p)
	if err := p.Validate(); err != nil {
		return nil, nil, fmt.Errorf("compile ladder: %w", err)
	}
	return p, notes, nil
}

// channel computes the edges of a channel; nil if it has no good version.
//
// The good versions form a chain of replaces. Each takes over what lies between it and the good one below: by name in
// skips, so that OLM v0 never installs it; and by version in skipRange, so that a cluster with a version that nobody
// knows of gets on as well. So everything below the head has the next good version as its only successor, and no rule
// of any OLM for choosing among several can make a difference.
//
// Where there are several, both OLMs choose the highest: with the policy Direct, whose ranges reach down to the lowest
// version; and around deprecated versions, which OLM v1 does not upgrade to from one that is not deprecated.
func channel(l *ladder.Ladder, name string, all []member) *catalogs.Channel {
	c := &catalogs.Channel{Name: name}
	var below, solid *member // the good version before, and the last one that is not deprecated
	var between []string
	var blocked []catalogs.Entry
	for i := range all {
		m := &all[i]
		offered := !m.retired && l.Reaches(m.reached, name)
		if !offered || m.blocked {
			between = append(between, m.name)
			if offered {
				blocked = append(blocked, catalogs.Entry{Name: m.name})
			}
			continue
		}
		// The entries of blocked versions stay, without edges: OLM warns those who run a deprecated bundle only if the
		// channel has it.
		c.Entries = append(append(c.Entries, blocked...), catalogs.Entry{
			Name: m.name, Replaces: nameOf(below), Skips: between, SkipRange: skipRange(l.Policy.Upgrades, solid, m),
		})
		below, between, blocked = m, nil, nil
		if m.deprecation == "" {
			solid = m
		}
	}
	if below == nil {
		return nil
	}
	return c
}

func nameOf(m *member) string {
	if m == nil {
		return ""
	}
	return m.name
}

// skipRange reaches from a version down to solid, or to the lowest version if there is no solid one or upgrades are
// direct.
func skipRange(upgrades ladder.Upgrades, solid, m *member) string {
	top := "<" + m.version.String()
	if !isBound(m.version) {
		top = "<" + core(m.version) + "-0"
	}
	if solid == nil || upgrades == ladder.Direct {
		return top
	}
	if !isBound(solid.version) {
		return ">=" + core(solid.version) + " " + top
	}
	return ">=" + solid.version.String() + " " + top
}

// isBound tells whether a version can be written into a range: build metadata does not count there, and the parser of
// both OLMs takes any x for a wildcard. A range without such a version is narrower, and the names in replaces and skips
// still lead on from all versions that are known.
func isBound(v semver.Version) bool { return len(v.Build) == 0 && !strings.Contains(v.String(), "x") }

// core is the version without pre-release and build metadata.
func core(v semver.Version) string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// undeprecateHeads removes the deprecation of the head of each channel and
// returns a note: OLM v1 does not upgrade from a version that is not deprecated
// to one that is, while OLM v0 does.
func undeprecateHeads(l *ladder.Ladder, all []member) []string {
	heads := map[*member][]string{}
	for _, name := range l.Rungs() {
		for i := range slices.Backward(all) {
			if m := &all[i]; m.isOfferable() && l.Reaches(m.reached, name) {
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

// defaultChannel is the ladder's or, until a version has reached it, the
// highest channel below it that has one. Once a channel has had versions,
// clusters that use the default channel must not be moved to a lower one.
func defaultChannel(l *ladder.Ladder, p *catalogs.Package) (string, error) {
	rungs := l.Rungs()
	upTo := rungs[:1+slices.Index(rungs, l.Default())]
	for _, name := range slices.Backward(upTo) {
		switch {
		case p.Channels[name] != nil:
			return name, nil
		case hadVersions(l, name):
			return "", fmt.Errorf("%w: the default channel %q of package %q has no version left that is not blocked: "+
				"promote one to it",
				ErrNothingToOffer, name, l.Package)
		}
	}
	return "", fmt.Errorf("%w: package %q has no version yet", ErrNothingToOffer, l.Package)
}

func hadVersions(l *ladder.Ladder, channel string) bool {
	return slices.ContainsFunc(l.Bundles, func(b ladder.Bundle) bool { return l.Reaches(b.Channel, channel) }) ||
		slices.ContainsFunc(l.Retired, func(r ladder.Retired) bool { return l.Reaches(r.Channel, channel) })
}

// addLadderNotes adds the ladder's deprecations and blocks.
func addLadderNotes(l *ladder.Ladder, p *catalogs.Package) {
	for _, d := range l.Deprecations {
		switch {
		case d.Package != "":
			p.Deprecation = d.Message
		case d.Channel != "" && p.Channels[d.Channel] != nil:
			p.Channels[d.Channel].Deprecation = d.Message
		}
	}
	for _, block := range l.Blocks {
		name := bundleName(l, block.Version)
		p.Blocks[name] = catalogs.Block{
			Bundle: name, Version: block.Version, Reason: block.Reason, Expires: block.Expires, Instead: block.Instead,
		}
		if b := p.Bundles[name]; b != nil {
			b.Deprecation = blockMessage(block)
		}
	}
}

// blockMessage is the deprecation message that OLM shows for a blocked version.
func blockMessage(b ladder.Block) string {
	if b.Instead == "" {
		return "blocked: " + b.Reason
	}
	return "blocked: " + b.Reason + "; use " + b.Instead + " instead"
}

func bundleName(l *ladder.Ladder, version string) string {
	if b, err := l.Bundle(version); err == nil {
		return l.BundleName(b.Name, version)
	}
	return l.BundleName("", version)
}

// Waiting is a version without an upgrade path in its channel, because every
// version above it is blocked or does not exist yet. Clusters that run it wait
// for a newer one, or are rolled back; the graph has no downgrades.
type Waiting struct {
	Channel string
	Bundle  string
	Version string
	// Blocked is the reason of the block; empty for a retired version.
	Blocked string
}

// WaitingVersions lists the blocked and retired versions above the heads of the channels that they had reached, by
// channel in the order of the ladder and by version.
func WaitingVersions(l *ladder.Ladder) ([]Waiting, error) {
	all, err := members(l)
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, name := range l.Rungs() {
		for _, m := range slices.Backward(all) {
			if !l.Reaches(m.reached, name) {
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
