// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
)

// The type of a ladder file.
const (
	APIVersion = "bellwether.dev/v1alpha1"
	Kind       = "CatalogLadder"
)

// DateLayout is the format of a day in a ladder file.
const DateLayout = time.DateOnly

// Errors of this package wrap one of these errors. Their texts say what to do.
var (
	// ErrInvalid means that a ladder file breaks a rule.
	ErrInvalid = errors.New("invalid ladder")
	// ErrNoVersion means that the ladder does not have the version.
	ErrNoVersion = errors.New("no such version")
	// ErrNoChannel means that the ladder does not have the channel.
	ErrNoChannel = errors.New("no such channel")
	// ErrExists means that the ladder already has the version, with other content.
	ErrExists = errors.New("exists already")
	// ErrRefused means that an edit would harm clusters, or would have no effect.
	ErrRefused = errors.New("refused")
)

// Ladder is the content of a ladder file. A Ladder that Parse returned is valid.
type Ladder struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Package is the name of the operator's package, a DNS label.
	Package string `yaml:"package"`
	// Description is Markdown for users who choose operators.
	Description string `yaml:"description,omitempty"`
	// Icon is the path of a picture (svg, png, jpg, gif), relative to the ladder file.
	Icon string `yaml:"icon,omitempty"`
	// Channels are the rungs, the lowest first. Default: candidate, fast, stable.
	Channels []string `yaml:"channels,omitempty"`
	// DefaultChannel is used if no channel is named. Default: the highest channel.
	DefaultChannel string `yaml:"defaultChannel,omitempty"`
	Policy         Policy `yaml:"policy,omitempty"`
	// Bundles are the offered versions. Their order in the file has no meaning.
	Bundles []Bundle `yaml:"bundles"`
	// Blocks are versions to which no cluster must be upgraded.
	Blocks []Block `yaml:"blocks,omitempty"`
	// Deprecations are warnings. Upgrades avoid a deprecated version as soon as a higher version exists that is
	// not deprecated.
	Deprecations []Deprecation `yaml:"deprecations,omitempty"`
	// Retired are versions that are not offered, but that clusters can still run.
	Retired []Retired `yaml:"retired,omitempty"`
}

// Upgrades defines which versions an upgrade passes through.
type Upgrades string

const (
	// Stepwise upgrades pass through every good version of the channel. It is the default.
	Stepwise Upgrades = "Stepwise"
	// Direct upgrades go directly from any version to the newest version.
	Direct Upgrades = "Direct"
)

// Content defines which content of a bundle the catalog contains.
type Content string

const (
	// Image names the bundle's image, and includes the content that lists and resolvers need. It is the default.
	Image Content = "Image"
	// Inline includes the manifests too, so that agents need not fetch the image. A bundle without an image is
	// always inlined.
	Inline Content = "Inline"
)

// Policy defines how the catalog is compiled.
type Policy struct {
	Upgrades Upgrades `yaml:"upgrades,omitempty"`
	Content  Content  `yaml:"content,omitempty"`
}

// Bundle is an offered version. Exactly one of Image and Path is set.
type Bundle struct {
	// Version is a semantic version. New versions are plain, X.Y.Z; other versions come from imported catalogs.
	Version string `yaml:"version"`
	// Name is the name of the ClusterServiceVersion. Default: <package>.v<version>.
	Name string `yaml:"name,omitempty"`
	// Image is a bundle image with its digest.
	Image string `yaml:"image,omitempty"`
	// Path is a bundle folder, relative to the ladder file.
	Path string `yaml:"path,omitempty"`
	// Channel is the highest rung that the version has reached.
	Channel string `yaml:"channel"`
}

// Block is a version to which no cluster must be upgraded.
type Block struct {
	Version string `yaml:"version"`
	Reason  string `yaml:"reason"`
	// Expires is the first day (2026-12-31) on which the catalog does not compile until a user has reviewed the
	// block. Empty means never. The block does not end on that day.
	Expires string `yaml:"expires,omitempty"`
	// Instead is the version that clusters should use; it can be lower.
	Instead string `yaml:"instead,omitempty"`
}

// Deprecation is a warning for users of a version, a channel, or the whole package. Exactly one of the three is set.
type Deprecation struct {
	Version string `yaml:"version,omitempty"`
	Channel string `yaml:"channel,omitempty"`
	// Package repeats the name of the ladder's package.
	Package string `yaml:"package,omitempty"`
	Message string `yaml:"message"`
}

// Retired is a version that is not offered. Image and Path are kept, if they are known, for comparisons with
// everything that was ever published.
type Retired struct {
	Version string `yaml:"version"`
	Name    string `yaml:"name,omitempty"`
	Image   string `yaml:"image,omitempty"`
	Path    string `yaml:"path,omitempty"`
	// Channel is the highest rung that the version had reached; empty if it was never offered from this file.
	Channel string `yaml:"channel,omitempty"`
	Reason  string `yaml:"reason,omitempty"`
}

// DefaultChannels returns the rungs of a ladder that does not name channels.
func DefaultChannels() []string { return []string{"candidate", "fast", "stable"} }

// ListChannels returns the channels, the lowest first, or the default channels if the ladder names none.
func (l *Ladder) ListChannels() []string {
	if len(l.Channels) == 0 {
		return DefaultChannels()
	}
	return l.Channels
}

// Default returns the name of the default channel, or the highest channel if the ladder names none.
func (l *Ladder) Default() string {
	channels := l.ListChannels()
	return cmp.Or(l.DefaultChannel, channels[len(channels)-1])
}

// BundleName returns the name of a version's ClusterServiceVersion: name, or the conventional name if that is empty.
func (l *Ladder) BundleName(name, version string) string {
	return cmp.Or(name, l.Package+".v"+version)
}

// findChannelIndex returns the position of a channel, -1 if the ladder does not have it.
func (l *Ladder) findChannelIndex(channel string) int { return slices.Index(l.ListChannels(), channel) }

// Reaches reports whether a version that has reached the channel `reached` is offered in `channel`.
func (l *Ladder) Reaches(reached, channel string) bool {
	index := l.findChannelIndex(channel)
	return index >= 0 && l.findChannelIndex(reached) >= index
}

// Bundle returns the entry of an offered version. The error wraps ErrNoVersion.
func (l *Ladder) Bundle(version string) (*Bundle, error) {
	for i := range l.Bundles {
		if l.Bundles[i].Version == version {
			return &l.Bundles[i], nil
		}
	}
	if i := slices.IndexFunc(l.Retired, func(r Retired) bool { return r.Version == version }); i >= 0 {
		return nil, fmt.Errorf("%w %s of package %q: it is retired", ErrNoVersion, version, l.Package)
	}
	return nil, fmt.Errorf("%w %s of package %q: %s", ErrNoVersion, version, l.Package, l.describeVersions(version))
}

// describeVersions lists the versions for messages; if there are many, only those with the most similar names.
func (l *Ladder) describeVersions(wanted string) string {
	if len(l.Bundles) == 0 {
		return "it has none yet"
	}
	versions := make([]string, 0, len(l.Bundles))
	for _, b := range l.Bundles {
		versions = append(versions, b.Version)
	}
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(b, a) })
	const maxListed = 8
	if len(versions) <= maxListed {
		return "it has " + strings.Join(versions, ", ")
	}
	slices.SortStableFunc(versions, func(a, b string) int {
		return cmp.Compare(countEdits(wanted, a),
			countEdits(wanted, b))
	})
	return fmt.Sprintf("of its %d versions the nearest are %s", len(versions), strings.Join(versions[:3], ", "))
}

// Blocked returns the block of a version; false if there is none.
func (l *Ladder) Blocked(version string) (Block, bool) {
	i := slices.IndexFunc(l.Blocks, func(b Block) bool { return b.Version == version })
	if i < 0 {
		return Block{}, false
	}
	return l.Blocks[i], true
}

// Expired returns the blocks that have expired at the time now.
func (l *Ladder) Expired(now time.Time) []Block {
	var out []Block
	for _, b := range l.Blocks {
		if day, err := time.Parse(DateLayout, b.Expires); err == nil && !now.Before(day) {
			out = append(out, b)
		}
	}
	return out
}

// Clone returns a copy of a ladder.
func (l *Ladder) Clone() *Ladder {
	out := *l
	out.Channels, out.Bundles, out.Blocks = slices.Clone(l.Channels), slices.Clone(l.Bundles), slices.Clone(l.Blocks)
	out.Deprecations, out.Retired = slices.Clone(l.Deprecations), slices.Clone(l.Retired)
	return &out
}

// IsPlain reports whether a version is X.Y.Z and nothing else. New versions must be plain, because ranges of versions
// exclude pre-releases, and OLM v1 orders by build metadata, but OLM v0 does not.
func IsPlain(v semver.Version) bool { return len(v.Pre) == 0 && len(v.Build) == 0 }

// parseVersion parses a version. It accepts versions that are not plain, because imported catalogs have them.
func parseVersion(text string) (semver.Version, error) {
	v, err := semver.Parse(text)
	if err == nil {
		return v, nil
	}
	return v, newNotPlainError(text)
}

// newNotPlainError returns the error for a version that is not plain.
func newNotPlainError(text string) error {
	if tolerant, err := semver.ParseTolerant(text); err == nil {
		plain := semver.Version{Major: tolerant.Major, Minor: tolerant.Minor, Patch: tolerant.Patch}
		return fmt.Errorf("version %q is not plain X.Y.Z: write %s", text, plain)
	}
	return fmt.Errorf("version %q is not of the form X.Y.Z", text)
}

// compareVersions orders valid versions; other texts are ordered as text.
func compareVersions(a, b string) int {
	x, errX := semver.Parse(a)
	y, errY := semver.Parse(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return bundles.CompareVersions(x, y)
}

// FindVersion returns the version, offered or retired, whose bundle has the name; false if there is none.
func (l *Ladder) FindVersion(name string) (semver.Version, bool) {
	for _, b := range l.Bundles {
		if l.BundleName(b.Name, b.Version) == name {
			return semver.MustParse(b.Version), true
		}
	}
	for _, r := range l.Retired {
		if l.BundleName(r.Name, r.Version) == name {
			return semver.MustParse(r.Version), true
		}
	}
	return semver.Version{}, false
}
