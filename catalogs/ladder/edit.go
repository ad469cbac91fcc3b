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

// Edits leave the ladder as it is when they fail.

// Add offers a new version in a channel, the lowest one if b names none. Adding what is there already changes nothing.
// Errors wrap ErrExists, ErrNoChannel or ErrInvalid.
func (l *Ladder) Add(b Bundle) error {
	b.Channel = cmp.Or(b.Channel, l.Rungs()[0])
	if b.Name == l.BundleName("", b.Version) {
		b.Name = ""
	}
	if v, err := semver.Parse(b.Version); err == nil && !IsPlain(v) {
		return fmt.Errorf("add version: %w: %w", ErrInvalid, notPlain(b.Version))
	}
	if l.rung(b.Channel) < 0 {
		return fmt.Errorf("add version: %w %q: %s", ErrNoChannel, b.Channel, nearest(b.Channel, l.Rungs()))
	}
	if i := slices.IndexFunc(l.Retired, func(r Retired) bool { return r.Version == b.Version }); i >= 0 {
		return fmt.Errorf("add version: %s %w: it is retired, and a version never comes back; publish a new one",
			b.Version, ErrExists)
	}
	if old, err := l.Bundle(b.Version); err == nil {
		if l.BundleName(old.Name, old.Version) == l.BundleName(b.Name, b.Version) && sameContent(*old, b) {
			return nil
		}
		return fmt.Errorf("add version: %s %w, as %s: a version never changes; publish a new one", b.Version, ErrExists,
			cmp.Or(old.Image, old.Path))
	}
	return l.try(func(next *Ladder) { next.Bundles = append(next.Bundles, b) })
}

// sameContent reports whether two entries mean the same bundle; registries do not matter, digests do.
func sameContent(a, b Bundle) bool {
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

// Promote lets a version reach a higher channel: that of to, or the next one if to is empty. It returns the channel
// that the version has reached. Errors wrap ErrNoVersion, ErrNoChannel or ErrRefused.
func (l *Ladder) Promote(version, to string) (string, error) {
	b, err := l.Bundle(version)
	if err != nil {
		return "", fmt.Errorf("promote: %w", err)
	}
	if block, ok := l.Blocked(version); ok {
		return "", fmt.Errorf("promote: %w: version %s is blocked: %s", ErrRefused, version, block.Reason)
	}
	rungs := l.Rungs()
	from := l.rung(b.Channel)
	switch {
	case to == "" && from == len(rungs)-1:
		return "", fmt.Errorf("promote: %w: version %s is in %s, the highest channel, already", ErrRefused, version,
			b.Channel)
	case to == "":
		to = rungs[from+1]
	case l.rung(to) < 0:
		return "", fmt.Errorf("promote: %w %q: %s", ErrNoChannel, to, nearest(to, rungs))
	case l.rung(to) <= from:
		return "", fmt.Errorf("promote: %w: version %s is in %s already, which %s is not above", ErrRefused, version,
			b.Channel, to)
	}
	b.Channel = to
	return to, nil
}

// Demote takes a version back to a lower channel. It is for mistakes that no cluster has got: a version that was
// published in a channel stays there until it is blocked or retired, and package compile holds that. Errors wrap
// ErrNoVersion, ErrNoChannel or ErrRefused.
func (l *Ladder) Demote(version, to string) error {
	b, err := l.Bundle(version)
	switch {
	case err != nil:
		return fmt.Errorf("demote: %w", err)
	case l.rung(to) < 0:
		return fmt.Errorf("demote: %w %q: %s", ErrNoChannel, to, nearest(to, l.Rungs()))
	case l.rung(to) >= l.rung(b.Channel):
		return fmt.Errorf("demote: %w: version %s is in %s, and %s is not below", ErrRefused, version, b.Channel, to)
	}
	b.Channel = to
	return nil
}

// Block takes a version out of every upgrade. Blocking it again replaces the reason. now is today. Errors wrap
// ErrNoVersion, ErrInvalid, or ErrRefused for a block that has expired already.
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
	return l.try(func(next *Ladder) {
		if i := slices.IndexFunc(next.Blocks, func(o Block) bool { return o.Version == b.Version }); i >= 0 {
			next.Blocks[i] = b
			return
		}
		next.Blocks = append(next.Blocks, b)
	})
}

// Unblock ends a block. The error wraps ErrNoVersion.
func (l *Ladder) Unblock(version string) error {
	if _, ok := l.Blocked(version); !ok {
		if _, err := l.Bundle(version); err != nil {
			return fmt.Errorf("unblock: %w", err)
		}
		return fmt.Errorf("unblock: %w: version %s is not blocked", ErrRefused, version)
	}
	return l.try(func(next *Ladder) {
		next.Blocks = slices.DeleteFunc(next.Blocks, func(b Block) bool { return b.Version == version })
	})
}

// Deprecate warns those who use a version, a channel or the package. Doing it again replaces the message. The error
// wraps ErrNoVersion or ErrInvalid.
func (l *Ladder) Deprecate(d Deprecation) error {
	if d.Version != "" {
		if _, err := l.Bundle(d.Version); err != nil {
			return fmt.Errorf("deprecate: %w", err)
		}
	}
	if err := l.checkDeprecation(d); err != nil {
		return fmt.Errorf("deprecate: %w: %w", ErrInvalid, err)
	}
	return l.try(func(next *Ladder) {
		if i := slices.IndexFunc(next.Deprecations, d.sameSubject); i >= 0 {
			next.Deprecations[i] = d
			return
		}
		next.Deprecations = append(next.Deprecations, d)
	})
}

// Retire stops offering a version, without saying that it is bad; clusters that run it are still brought on. It is
// refused where nothing would follow: in some channel that offers the version no good higher one is there. Errors wrap
// ErrNoVersion or ErrRefused.
func (l *Ladder) Retire(version, reason string) error {
	b, err := l.Bundle(version)
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	if !l.followed(*b) {
		return fmt.Errorf("retire: %w: no higher good version is in channel %s, so clusters that run %s would have "+
			"no upgrade path; "+
			"promote a newer one first, or block %s if it is bad", ErrRefused, b.Channel, version, version)
	}
	for _, o := range l.Blocks {
		if o.Instead == version {
			return fmt.Errorf("retire: %w: the block of %s sends clusters to %s", ErrRefused, o.Version, version)
		}
	}
	gone := Retired{Version: b.Version, Name: b.Name, Image: b.Image, Path: b.Path, Channel: b.Channel, Reason: reason}
	return l.try(func(next *Ladder) {
		next.Bundles = slices.DeleteFunc(next.Bundles, func(o Bundle) bool { return o.Version == version })
		next.Blocks = slices.DeleteFunc(next.Blocks, func(o Block) bool { return o.Version == version })
		next.Deprecations = slices.DeleteFunc(next.Deprecations,
			func(o Deprecation) bool { return o.Version == version })
		next.Retired = append(next.Retired, gone)
	})
}

// followed reports whether the highest channel of a version, and so every other one that offers it, has a good higher
// version.
func (l *Ladder) followed(b Bundle) bool {
	return slices.ContainsFunc(l.Bundles, func(o Bundle) bool {
		_, blocked := l.Blocked(o.Version)
		return !blocked && l.Reaches(o.Channel, b.Channel) && compareVersions(o.Version, b.Version) > 0
	})
}

// try applies an edit if the ladder is a valid one afterwards.
func (l *Ladder) try(edit func(next *Ladder)) error {
	next := l.Clone()
	edit(next)
	if err := next.Check(); err != nil {
		return err
	}
	*l = *next
	return nil
}
