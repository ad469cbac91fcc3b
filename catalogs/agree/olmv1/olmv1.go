// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv1 computes to which bundle OLM v1 would upgrade a ClusterExtension.
//
// OLM v1's resolver is internal to operator-controller, so this package repeats its rules, from its
// internal/operator-controller/resolve/catalog.go and catalogmetadata/filter/successors.go:
//
//   - Candidates are the bundles of the chosen channels (of all channels, if none is chosen) whose entry in one of
//     these channels replaces or skips the installed bundle or has its version in skipRange, and the bundles of the
//     installed version itself. Skipped bundles are candidates too.
//   - Deprecated candidates come last, then the highest version and release come first. The first candidate is used.
//   - No candidate is an error, and the installed bundle stays.
//
// The rules are those of the upgrade constraint policy CatalogProvided without a version range, and without the alpha
// feature BundleReleaseSupport. The package is pure: its input is a catalogs.Package, its output a name.
package olmv1

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/model"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// ErrNothing means that OLM v1 finds no bundle, not even the installed bundle. The ClusterExtension then reports an
// error and stays unchanged.
var ErrNothing = errors.New("OLM v1 finds no bundle")

// Selection contains the bundles from which OLM v1 chooses for a ClusterExtension.
type Selection struct {
	pkg        string
	channels   []string
	candidates []candidate // the best first
}

// candidate is a bundle with all its entries in the chosen channels.
type candidate struct {
	name       string
	version    model.VersionRelease
	deprecated bool
	entries    []entry
}

type entry struct {
	catalogs.Entry
	skipRange semver.Range // nil if there is none, or if it does not parse, because OLM v1 then ignores it
}

// New prepares the chosen channels (none: all) for queries. The error wraps catalogs.ErrNoChannel.
func New(p *catalogs.Package, channels ...string) (*Selection, error) {
	s := &Selection{pkg: p.Name, channels: channels}
	if len(channels) == 0 {
		channels = slices.Sorted(maps.Keys(p.Channels))
	}
	byName := map[string]int{}
	for _, name := range channels {
		c, err := p.Channel(name)
		if err != nil {
			return nil, err
		}
		for _, e := range c.Entries {
			b := p.Bundles[e.Name]
			if b == nil {
				continue
			}
			index, exists := byName[e.Name]
			if !exists {
				index = len(s.candidates)
				byName[e.Name] = index
				s.candidates = append(s.candidates, candidate{name: e.Name, version: toVersionRelease(b.Version),
					deprecated: b.Deprecation != ""})
			}
			s.candidates[index].entries = append(s.candidates[index].entries, newEntry(e))
		}
	}
	slices.SortStableFunc(s.candidates, compareCandidates)
	return s, nil
}

// Next returns the name of the bundle that OLM v1 would install over the installed bundle, or "" if it would keep the
// installed bundle. An installed without a name is a ClusterExtension that has nothing installed yet. An unknown
// version is 0.0.0; OLM v1 itself always has the version. The error wraps ErrNothing.
func (s *Selection) Next(installed catalogs.Installed) (string, error) {
	version, _ := installed.SemVer()
	installedRelease := toVersionRelease(version)
	for i := range s.candidates {
		c := &s.candidates[i]
		isFreshInstall := installed.Name == ""
		isSameVersion := c.version.Compare(&installedRelease) == 0
		if !isFreshInstall && !isSameVersion && !c.isSuccessorOf(installed.Name, version) {
			continue
		}
		if c.name == installed.Name {
			return "", nil
		}
		return c.name, nil
	}
	place := "any channel"
	if len(s.channels) > 0 {
		place = "channel " + strings.Join(s.channels, ", ")
	}
	if installed.Name == "" {
		return "", fmt.Errorf("%w of package %q in %s", ErrNothing, s.pkg, place)
	}
	return "", fmt.Errorf("%w of package %q in %s that can follow %s", ErrNothing, s.pkg, place, installed.Name)
}

// Successors returns the bundles whose entries can follow the installed bundle, in OLM v1's order of preference. OLM
// v0 finds the same bundles and then leaves out skipped bundles.
func (s *Selection) Successors(installed catalogs.Installed) []string {
	version, _ := installed.SemVer()
	var names []string
	for i := range s.candidates {
		if c := &s.candidates[i]; c.name != installed.Name && c.isSuccessorOf(installed.Name, version) {
			names = append(names, c.name)
		}
	}
	return names
}

// FindDeprecatedStop returns the highest successor of the installed bundle if OLM v1 stays because that successor is
// deprecated and the installed bundle is not. Otherwise it is empty.
func (s *Selection) FindDeprecatedStop(installed catalogs.Installed) string {
	version, _ := installed.SemVer()
	installedRelease := toVersionRelease(version)
	var best *candidate
	for i := range s.candidates {
		c := &s.candidates[i]
		switch {
		case c.name == installed.Name && c.deprecated: // OLM v1 then upgrades to deprecated bundles too
			return ""
		case !c.deprecated || c.version.Compare(&installedRelease) <= 0 || !c.isSuccessorOf(installed.Name, version):
			// Only a higher deprecated successor can be the reason.
		case best == nil || c.version.Compare(&best.version) > 0:
			best = c
		}
	}
	if best == nil {
		return ""
	}
	return best.name
}

// isSuccessorOf reports whether an entry of the candidate replaces or skips the named bundle, or has its version in the
// skipRange. It repeats legacySuccessor of operator-controller.
func (c *candidate) isSuccessorOf(name string, version semver.Version) bool {
	return slices.ContainsFunc(c.entries, func(e entry) bool {
		return e.Replaces == name || slices.Contains(e.Skips, name) || (e.skipRange != nil && e.skipRange(version))
	})
}

// compareCandidates orders as OLM v1 does: deprecated bundles last, then the highest first.
func compareCandidates(a, b candidate) int {
	if a.deprecated != b.deprecated {
		if a.deprecated {
			return 1
		}
		return -1
	}
	return cmp.Or(b.version.Compare(&a.version), cmp.Compare(a.name, b.name))
}

func newEntry(e catalogs.Entry) entry {
	out := entry{Entry: e}
	if e.SkipRange == "" {
		return out
	}
	if r, err := semver.ParseRange(e.SkipRange); err == nil {
		out.skipRange = r
	}
	return out
}

// toVersionRelease converts build metadata to a release if possible, because OLM v1 orders by it although semver
// forbids that.
func toVersionRelease(v semver.Version) model.VersionRelease {
	release, err := model.NewRelease(strings.Join(v.Build, "."))
	if err != nil || len(release) == 0 {
		return model.VersionRelease{Version: v}
	}
	v.Build = nil
	return model.VersionRelease{Version: v, Release: release}
}
