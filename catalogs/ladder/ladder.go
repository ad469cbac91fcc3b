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

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// What a ladder file says it is.
const (
	APIVersion = "bellwether.dev/v1alpha1"
	Kind       = "CatalogLadder"
)

// DateLayout is how a day is written in a ladder file.
const DateLayout = time.DateOnly

// Errors of this package wrap one of these. Their text says what to do.
var (
	// ErrInvalid says that a ladder file is not written as it must be.
	ErrInvalid = errors.New("invalid ladder")
	// ErrNoVersion says that the ladder has no such version.
	ErrNoVersion = errors.New("no such version")
	// ErrNoChannel says that the ladder has no such channel.
	ErrNoChannel = errors.New("no such channel")
	// ErrExists says that the ladder has that already, and otherwise.
	ErrExists = errors.New("exists already")
	// ErrRefused says that an edit would harm clusters.
	ErrRefused = errors.New("refused")
)

// Ladder is the content of a ladder file. A Ladder that came out of Parse is valid.
type Ladder struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Package is the name of the operator's package, a DNS label.
	Package string `yaml:"package"`
	// Description is Markdown for the people who choose operators.
	Description string `yaml:"description,omitempty"`
	// Icon is the path of a picture (svg, png, jpg, gif), relative to the ladder file.
	Icon string `yaml:"icon,omitempty"`
	// Channels are the rungs, the lowest first. Default: candidate, fast, stable.
	Channels []string `yaml:"channels,omitempty"`
	// DefaultChannel is used if no channel is named. Default: the highest.
	DefaultChannel string `yaml:"defaultChannel,omitempty"`
	Policy         Policy `yaml:"policy,omitempty"`
	// Bundles are the offered versions. Their order in the file means nothing.
	Bundles []Bundle `yaml:"bundles"`
	// Blocks are versions that no cluster may be upgraded to.
	Blocks []Block `yaml:"blocks,omitempty"`
	// Deprecations are warnings. Upgrades lead around a deprecated version as soon as a better one follows.
	Deprecations []Deprecation `yaml:"deprecations,omitempty"`
	// Retired are versions that are not offered any more, and that clusters may still run.
	Retired []Retired `yaml:"retired,omitempty"`
}

// Upgrades says which versions an upgrade passes through.
type Upgrades string

const (
	// Stepwise upgrades pass through every good version of the channel. It is the default.
	Stepwise Upgrades = "Stepwise"
	// Direct upgrades go from any version to the newest one at once.
	Direct Upgrades = "Direct"
)

// Content says what the catalog carries of a bundle.
type Content string

const (
	// Image names the bundle's image, and carries what lists and resolvers need. It is the default.
	Image Content = "Image"
	// Inline carries the manifests as well, so that agents need not fetch the image. A bundle without an image is
	// always inlined.
	Inline Content = "Inline"
)

// Policy says how the catalog is compiled.
type Policy struct {
	Upgrades Upgrades `yaml:"upgrades,omitempty"`
	Content  Content  `yaml:"content,omitempty"`
}

// Bundle is an offered version. Exactly one of Image and Path is set.
type Bundle struct {
	// Version is a semantic version. A new one is plain, X.Y.Z; others come from imported catalogs.
	Version string `yaml:"version"`
	// Name is that of the ClusterServiceVersion. Default: <package>.v<version>.
	Name string `yaml:"name,omitempty"`
	// Image is a bundle image with its digest.
	Image string `yaml:"image,omitempty"`
	// Path is a bundle folder, relative to the ladder file.
	Path string `yaml:"path,omitempty"`
	// Channel is the highest rung that the version has reached.
	Channel string `yaml:"channel"`
}

// Block says that no cluster may be upgraded to a version.
type Block struct {
	Version string `yaml:"version"`
	Reason  string `yaml:"reason"`
	// Expires is the day (2026-12-31) from which on the catalog does not compile until somebody has looked at the block
	// again. Empty means never. It does not end the block.
	Expires string `yaml:"expires,omitempty"`
	// Instead is the version that clusters should go to; it may be a lower one.
	Instead string `yaml:"instead,omitempty"`
}

// Deprecation warns those who use a version, a channel, or the whole package. Exactly one of the three is set.
type Deprecation struct {
	Version string `yaml:"version,omitempty"`
	Channel string `yaml:"channel,omitempty"`
	// Package repeats the name of the ladder's package.
	Package string `yaml:"package,omitempty"`
	Message string `yaml:"message"`
}

// Retired is a version that is not offered any more. Image and Path are kept, if they are known, for comparisons with
// everything that was ever published.
type Retired struct {
	Version string `yaml:"version"`
	Name    string `yaml:"name,omitempty"`
	Image   string `yaml:"image,omitempty"`
	Path    string `yaml:"path,omitempty"`
	// Channel is the highest rung that the version had reached; empty when it was never offered from this file.
	Channel string `yaml:"channel,omitempty"`
	Reason  string `yaml:"reason,omitempty"`
}

// DefaultChannels are the rungs of a ladder that names none.
func DefaultChannels() []string { return []string{"candidate", "fast", "stable"} }

// Rungs are the channels, lowest first, with the default filled in.
func (l *Ladder) Rungs() []string {
	if len(l.Channels) == 0 {
		return DefaultChannels()
	}
	return l.Channels
}

// Default is the default channel, with the default filled in.
func (l *Ladder) Default() string {
	rungs := l.Rungs()
	return cmp.Or(l.DefaultChannel, rungs[len(rungs)-1])
}

// BundleName is the name of a version's ClusterServiceVersion: the given one, or the conventional one.
func (l *Ladder) BundleName(name, version string) string {
	return cmp.Or(name, l.Package+".v"+version)
}

// rung is the position of a channel, -1 if there is none of that name.
func (l *Ladder) rung(channel string) int { return slices.Index(l.Rungs(), channel) }

// Reaches reports whether a version that has reached the channel `reached` is offered in `channel`.
func (l *Ladder) Reaches(reached, channel string) bool {
	at := l.rung(channel)
	return at >= 0 && l.rung(reached) >= at
}

// Bundle returns the offered version. The error wraps ErrNoVersion.
func (l *Ladder) Bundle(version string) (*Bundle, error) {
	for i := range l.Bundles {
		if l.Bundles[i].Version == version {
			return &l.Bundles[i], nil
		}
	}
	if i := slices.IndexFunc(l.Retired, func(r Retired) bool { return r.Version == version }); i >= 0 {
		return nil, fmt.Errorf("%w %s of package %q: it is retired", ErrNoVersion, version, l.Package)
	}
	return nil, fmt.Errorf("%w %s of package %q: %s", ErrNoVersion, version, l.Package, l.offers(version))
}

// offers says which versions there are, the nearest names first where there are many.
func (l *Ladder) offers(wanted string) string {
	if len(l.Bundles) == 0 {
		return "it has none yet"
	}
	versions := make([]string, 0, len(l.Bundles))
	for _, b := range l.Bundles {
		versions = append(versions, b.Version)
	}
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(b, a) })
	const listed = 8
	if len(versions) <= listed {
		return "it has " + strings.Join(versions, ", ")
	}
	slices.SortStableFunc(versions, func(a, b string) int {
		return cmp.Compare(distance(wanted, a),
			distance(wanted, b))
	})
	return fmt.Sprintf("of its %d versions the nearest are %s", len(versions), strings.Join(versions[:3], ", "))
}

// Blocked returns the block of a version, if there is one.
func (l *Ladder) Blocked(version string) (Block, bool) {
	i := slices.IndexFunc(l.Blocks, func(b Block) bool { return b.Version == version })
	if i < 0 {
		return Block{}, false
	}
	return l.Blocks[i], true
}

// Expired returns the blocks whose day has come.
func (l *Ladder) Expired(now time.Time) []Block {
	var out []Block
	for _, b := range l.Blocks {
		if day, err := time.Parse(DateLayout, b.Expires); err == nil && !now.Before(day) {
			out = append(out, b)
		}
	}
	return out
}

// Clone copies a ladder.
func (l *Ladder) Clone() *Ladder {
	out := *l
	out.Channels, out.Bundles, out.Blocks = slices.Clone(l.Channels), slices.Clone(l.Bundles), slices.Clone(l.Blocks)
	out.Deprecations, out.Retired = slices.Clone(l.Deprecations), slices.Clone(l.Retired)
	return &out
}

// IsPlain tells whether a version is X.Y.Z and nothing else, as new versions have to be: ranges of versions leave out
// pre-releases, and OLM v1 orders by build metadata, which OLM v0 does not.
func IsPlain(v semver.Version) bool { return len(v.Pre) == 0 && len(v.Build) == 0 }

// parseVersion reads a version. Catalogs that are imported have versions that are not plain.
func parseVersion(text string) (semver.Version, error) {
	v, err := semver.Parse(text)
	if err == nil {
		return v, nil
	}
	return v, notPlain(text)
}

// notPlain is the error for a version that is not plain.
func notPlain(text string) error {
	if tolerant, err := semver.ParseTolerant(text); err == nil {
		plain := semver.Version{Major: tolerant.Major, Minor: tolerant.Minor, Patch: tolerant.Patch}
		return fmt.Errorf("version %q is not plain X.Y.Z: write %s", text, plain)
	}
	return fmt.Errorf("version %q is not of the form X.Y.Z", text)
}

// compareVersions orders valid versions; what is no version is ordered as text.
func compareVersions(a, b string) int {
	x, errX := semver.Parse(a)
	y, errY := semver.Parse(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return registryv1.CompareVersions(x, y)
}

// VersionNamed returns the version, retired or not, whose bundle has a name.
func (l *Ladder) VersionNamed(name string) (semver.Version, bool) {
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
