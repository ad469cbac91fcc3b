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
	"github.com/bellwether-dev/bellwether/phrase"
)

// Continuity reports everything that an earlier catalog offered and the ladder
// removes without saying so: clusters may use it. The error wraps
// ErrContinuity.
func Continuity(previous *catalogs.Package, l *ladder.Ladder) error {
	all, err := members(l)
	if err != nil {
		return err
	}
	known := map[string]member{}
	for _, m := range all {
		known[m.name] = m
	}
	var lost []error
	for _, name := range slices.Sorted(maps.Keys(previous.Channels)) {
		lost = append(lost, lostInChannel(previous.Channels[name], l, known)...)
	}
	for _, name := range slices.Sorted(maps.Keys(previous.Bundles)) {
		if err := checkKept(previous.Bundles[name], known); err != nil {
			lost = append(lost, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(previous.Blocks)) {
		if _, ok := known[name]; !ok {
			lost = append(lost, fmt.Errorf("bundle %s was offered and blocked, and is no longer in the ladder: "+
				""+"add it again", name))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%w for package %q: %w", ErrContinuity, l.Package, errors.Join(lost...))
}

// lostInChannel finds what a channel offered and the ladder has in a lower one only.
func lostInChannel(c *catalogs.Channel, l *ladder.Ladder, known map[string]member) []error {
	if !slices.Contains(l.Rungs(), c.Name) {
		if c.Deprecation != "" {
			return nil
		}
		return []error{fmt.Errorf("channel %s was offered and is no longer a channel of the ladder: deprecate "+
			"it first, "+
			"and remove it once that is published", c.Name)}
	}
	var lost []error
	for _, e := range c.Entries {
		m, ok := known[e.Name]
		if ok && !m.retired && !l.Reaches(m.reached, c.Name) {
			lost = append(lost, fmt.Errorf("version %s was offered in channel %s and is only in %s now: promote it "+
				"again, block it or retire it", m.version, c.Name, m.reached))
		}
	}
	return lost
}

// checkKept checks that the ladder still has a bundle with the version and
// content that were published.
func checkKept(old *catalogs.Bundle, known map[string]member) error {
	m, ok := known[old.Name]
	switch {
	case !ok:
		return fmt.Errorf("bundle %s, version %s, was offered and is no longer in the ladder: add it again, "+"or "+
			"list it under retired",
			old.Name, old.VersionString())
	case old.VersionString() != m.version.String():
		return fmt.Errorf("bundle %s was published as version %s and is %s now: a published version must not change",
			old.Name,
			old.VersionString(), m.version)
	case ladder.Digest(old.Image) != "" && ladder.Digest(m.image) != "" &&
		ladder.Digest(old.Image) != ladder.Digest(m.image):
		return fmt.Errorf("version %s was published as %s and is %s now: a published version must not change; "+
			"publish a new one",
			m.version, phrase.ShortDigest(ladder.Digest(old.Image)), phrase.ShortDigest(ladder.Digest(m.image)))
	}
	return nil
}
