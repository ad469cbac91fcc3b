// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
)

// A failed edit leaves the ladder unchanged.

// Add offers a new version in the channel b.Channel, or in the lowest channel if that is empty. Adding a version
// again with the same content changes nothing. Errors wrap ErrExists, ErrNoChannel or ErrInvalid.
func (l *Ladder) Add(b Bundle) error {
	b.Channel = cmp.Or(b.Channel, l.ListChannels()[0])
	if b.Name == l.BundleName("", b.Version) { // the file does not repeat the conventional name
		b.Name = ""
	}
	if v, err := semver.Parse(b.Version); err == nil && !IsPlain(v) {
		return fmt.Errorf("add version: %w: %w", ErrInvalid, newNotPlainError(b.Version))
	}
	if l.findChannelIndex(b.Channel) < 0 {
		return fmt.Errorf("add version: %w %q: %s", ErrNoChannel, b.Channel, suggestName(b.Channel, l.ListChannels()))
	}
	if i := slices.IndexFunc(l.Retired, func(r Retired) bool { return r.Version == b.Version }); i >= 0 {
		return fmt.Errorf("add version: %s %w: it is retired, and a version never comes back; publish a new one",
			b.Version, ErrExists)
	}
	if old, err := l.Bundle(b.Version); err == nil {
		if l.BundleName(old.Name, old.Version) == l.BundleName(b.Name, b.Version) && hasSameContent(*old, b) {
			return nil
		}
		return fmt.Errorf("add version: %s %w, as %s: a version never changes; publish a new one", b.Version, ErrExists,
			cmp.Or(old.Image, old.Path))
	}
	return l.apply(func(next *Ladder) { next.Bundles = append(next.Bundles, b) })
}

// hasSameContent reports whether two entries have the same bundle. It compares the digests of images, not
// their registries.
func hasSameContent(a, b Bundle) bool {
	if a.Image == "" || b.Image == "" {
		return a.Image == b.Image && a.Path == b.Path
	}
	return Digest(a.Image) == Digest(b.Image)
}

// Digest returns the digest of an image reference; empty if it has none.
func Digest(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// Promote moves a version to the higher channel to, or to the next higher channel if to is empty. It returns the new
// channel. Errors wrap ErrNoVersion, ErrNoChannel or ErrRefused.
func (l *Ladder) Promote(version, to string) (string, error) {
	b, err := l.Bundle(version)
	if err != nil {
		return "", fmt.Errorf("promote: %w", err)
	}
	if block, ok := l.Blocked(version); ok {
		return "", fmt.Errorf("promote: %w: version %s is blocked: %s", ErrRefused, version, block.Reason)
	}
	channels := l.ListChannels()
	from := l.findChannelIndex(b.Channel)
	switch {
	case to == "" && from == len(channels)-1:
		return "", fmt.Errorf("promote: %w: version %s is in %s, the highest channel, already", ErrRefused, version,
			b.Channel)
	case to == "":
		to = channels[from+1]
	case l.findChannelIndex(to) < 0:
		return "", fmt.Errorf("promote: %w %q: %s", ErrNoChannel, to, suggestName(to, channels))
	case l.findChannelIndex(to) <= from:
		return "", fmt.Errorf("promote: %w: version %s is in %s already, which %s is not above", ErrRefused, version,
			b.Channel, to)
	}
	b.Channel = to
	return to, nil
}

// Demote moves a version back to a lower channel. Use it to undo mistakes that were not published: package compile
// refuses a ladder in which a published version is no longer in its channel, unless the version is retired. Errors
// wrap ErrNoVersion, ErrNoChannel or ErrRefused.
func (l *Ladder) Demote(version, to string) error {
	b, err := l.Bundle(version)
	switch {
	case err != nil:
		return fmt.Errorf("demote: %w", err)
	case l.findChannelIndex(to) < 0:
		return fmt.Errorf("demote: %w %q: %s", ErrNoChannel, to, suggestName(to, l.ListChannels()))
	case l.findChannelIndex(to) >= l.findChannelIndex(b.Channel):
		return fmt.Errorf("demote: %w: version %s is in %s, and %s is not below", ErrRefused, version, b.Channel, to)
	}
	b.Channel = to
	return nil
}

// Block removes a version from every upgrade. Blocking it again replaces the reason. now is today. Errors wrap
// ErrNoVersion, ErrInvalid, or ErrRefused if the block has already expired.
func (l *Ladder) Block(b Block, now time.Time) error {
	if _, err := l.Bundle(b.Version); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	if err := l.checkBlock(b); err != nil {
		return fmt.Errorf("block: %w: %w", ErrInvalid, err)
	}
	if day, err := time.Parse(DateLayout, b.Expires); err == nil && !now.Before(day) {
		return fmt.Errorf("block: %w: %s, the day on which the block of %s would expire, is not in the future",
			ErrRefused, b.Expires, b.Version)
	}
	return l.apply(func(next *Ladder) {
		if i := slices.IndexFunc(next.Blocks, func(o Block) bool { return o.Version == b.Version }); i >= 0 {
			next.Blocks[i] = b
			return
		}
		next.Blocks = append(next.Blocks, b)
	})
}

// Unblock ends a block. The error wraps ErrNoVersion or ErrRefused.
func (l *Ladder) Unblock(version string) error {
	if _, ok := l.Blocked(version); !ok {
		if _, err := l.Bundle(version); err != nil {
			return fmt.Errorf("unblock: %w", err)
		}
		return fmt.Errorf("unblock: %w: version %s is not blocked", ErrRefused, version)
	}
	return l.apply(func(next *Ladder) {
		next.Blocks = slices.DeleteFunc(next.Blocks, func(b Block) bool { return b.Version == version })
	})
}

// Deprecate adds a warning for users of a version, a channel or the package. Deprecating it again replaces the
// message. The error wraps ErrNoVersion or ErrInvalid.
func (l *Ladder) Deprecate(d Deprecation) error {
	if d.Version != "" {
		if _, err := l.Bundle(d.Version); err != nil {
			return fmt.Errorf("deprecate: %w", err)
		}
	}
	if err := l.checkDeprecation(d); err != nil {
		return fmt.Errorf("deprecate: %w: %w", ErrInvalid, err)
	}
	return l.apply(func(next *Ladder) {
		if i := slices.IndexFunc(next.Deprecations, d.hasSameSubject); i >= 0 {
			next.Deprecations[i] = d
			return
		}
		next.Deprecations = append(next.Deprecations, d)
	})
}

// Retire stops offering a version that is not bad; clusters that run it are still upgraded. It is refused if a
// channel that offers the version has no good higher version. Errors wrap ErrNoVersion or ErrRefused.
func (l *Ladder) Retire(version, reason string) error {
	b, err := l.Bundle(version)
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	if !l.hasSuccessor(*b) {
		return fmt.Errorf("retire: %w: no higher good version is in channel %s, so clusters that run %s would have "+
			"no upgrade path; "+
			"promote a newer one first, or block %s if it is bad", ErrRefused, b.Channel, version, version)
	}
	for _, o := range l.Blocks {
		if o.Instead == version {
			return fmt.Errorf("retire: %w: the block of %s sends clusters to %s", ErrRefused, o.Version, version)
		}
	}
	retired := Retired{Version: b.Version, Name: b.Name, Image: b.Image, Path: b.Path, Channel: b.Channel,
		Reason: reason}
	return l.apply(func(next *Ladder) {
		next.Bundles = slices.DeleteFunc(next.Bundles, func(o Bundle) bool { return o.Version == version })
		next.Blocks = slices.DeleteFunc(next.Blocks, func(o Block) bool { return o.Version == version })
		next.Deprecations = slices.DeleteFunc(next.Deprecations,
			func(o Deprecation) bool { return o.Version == version })
		next.Retired = append(next.Retired, retired)
	})
}

// hasSuccessor reports whether the highest channel of a version has a good higher version. All lower channels then
// have it too.
func (l *Ladder) hasSuccessor(b Bundle) bool {
	return slices.ContainsFunc(l.Bundles, func(o Bundle) bool {
		_, blocked := l.Blocked(o.Version)
		return !blocked && l.Reaches(o.Channel, b.Channel) && compareVersions(o.Version, b.Version) > 0
	})
}

// apply applies an edit if the resulting ladder is valid.
func (l *Ladder) apply(edit func(next *Ladder)) error {
	next := l.Clone()
	edit(next)
	if err := next.Check(); err != nil {
		return err
	}
	*l = *next
	return nil
}
