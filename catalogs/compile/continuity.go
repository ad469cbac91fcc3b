// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// CheckContinuity compares a ladder with the previous catalog, because clusters could use everything that the catalog
// offered. The error wraps ErrContinuity and lists the channels, versions and blocks that the ladder lacks, the
// versions that it offers only in a lower channel, and the versions whose number or image changed. A channel can be
// missing if the previous catalog deprecated it; a version can be listed as retired.
func CheckContinuity(previous *catalogs.Package, l *ladder.Ladder) error {
	all, err := listMembers(l)
	if err != nil {
		return err
	}
	membersByName := map[string]member{}
	for _, m := range all {
		membersByName[m.name] = m
	}
	var lost []error
	for _, name := range slices.Sorted(maps.Keys(previous.Channels)) {
		lost = append(lost, checkChannelKept(previous.Channels[name], l, membersByName)...)
	}
	for _, name := range slices.Sorted(maps.Keys(previous.Bundles)) {
		if err := checkBundleKept(previous.Bundles[name], membersByName); err != nil {
			lost = append(lost, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(previous.Blocks)) {
		if _, ok := membersByName[name]; !ok {
			lost = append(lost, fmt.Errorf("bundle %s was offered and blocked, and is no longer in the ladder: "+
				"add it again", name))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%w for package %q: %w", ErrContinuity, l.Package, errors.Join(lost...))
}

// checkChannelKept returns an error for each version that a channel offered and that the ladder offers only in a
// lower channel, or a single error if the ladder lacks the channel and the channel was not deprecated.
func checkChannelKept(c *catalogs.Channel, l *ladder.Ladder, membersByName map[string]member) []error {
	if !slices.Contains(l.ListChannels(), c.Name) {
		if c.Deprecation != "" {
			return nil
		}
		return []error{fmt.Errorf("channel %s was offered and is no longer a channel of the ladder: deprecate "+
			"it first, and remove it once that is published", c.Name)}
	}
	var lost []error
	for _, e := range c.Entries {
		m, ok := membersByName[e.Name]
		if ok && !m.retired && !l.Reaches(m.reachedChannel, c.Name) {
			lost = append(lost, fmt.Errorf("version %s was offered in channel %s and is only in %s now: promote it "+
				"again, block it or retire it", m.version, c.Name, m.reachedChannel))
		}
	}
	return lost
}

// checkBundleKept returns an error if the ladder lacks the bundle, or has it with another version or image digest.
func checkBundleKept(old *catalogs.Bundle, membersByName map[string]member) error {
	m, ok := membersByName[old.Name]
	switch {
	case !ok:
		return fmt.Errorf("bundle %s, version %s, was offered and is no longer in the ladder: add it again, or "+
			"list it under retired", old.Name, old.VersionString())
	case old.VersionString() != m.version.String():
		return fmt.Errorf("bundle %s was published as version %s and is %s now: a published version must not change",
			old.Name, old.VersionString(), m.version)
	// The content can be compared only if both images have a digest.
	case ladder.Digest(old.Image) != "" && ladder.Digest(m.image) != "" &&
		ladder.Digest(old.Image) != ladder.Digest(m.image):
		return fmt.Errorf("version %s was published as %s and is %s now: a published version must not change; "+
			"publish a new one",
			m.version, phrase.ShortDigest(ladder.Digest(old.Image)), phrase.ShortDigest(ladder.Digest(m.image)))
	}
	return nil
}
