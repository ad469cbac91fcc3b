// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv1 says to which bundle OLM v1 would upgrade a ClusterExtension.
//
// OLM v1's resolver is internal to operator-controller, so its rules are stated here once more, from its
// internal/operator-controller/resolve/catalog.go and catalogmetadata/filter/successors.go:
//
//   - Candidates are the bundles of the chosen channels (of all channels, if none is chosen) whose entry in one of
//     these channels replaces or skips the installed bundle or has its version in skipRange, and besides them the
//     bundles of the installed version itself. What is skipped is a candidate like any other.
//   - Deprecated candidates come last, then the highest version and release come first. The first one is taken.
//   - No candidate is an error, and the installed bundle stays.
//
// The rules are those of the upgrade constraint policy CatalogProvided with no version range, and without the alpha
// feature BundleReleaseSupport. The package is pure: a catalogs.Package in, a name out.
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

// ErrNothing says that OLM v1 finds no bundle, not even the installed one. The ClusterExtension then reports an error
// and keeps what it has.
var ErrNothing = errors.New("OLM v1 finds no bundle")

// Selection is what a ClusterExtension can choose from.
type Selection struct {
	pkg        string
	channels   []string
	candidates []candidate // the best first
}

// candidate is a bundle with all entries that it has in the chosen channels.
type candidate struct {
	name       string
	version    model.VersionRelease
	deprecated bool
	entries    []entry
}

type entry struct {
	catalogs.Entry
	skipRange semver.Range // nil: none, or one that does not parse, which OLM v1 ignores
}

// New prepares the chosen channels (none: all) for queries. The error wraps
// catalogs.ErrNoChannel.
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
			at, known := byName[e.Name]
			if !known {
				at = len(s.candidates)
				byName[e.Name] = at
				s.candidates = append(s.candidates, candidate{name: e.Name, version: versionRelease(b.Version),
					deprecated: b.Deprecation != ""})
			}
			s.candidates[at].entries = append(s.candidates[at].entries, newEntry(e))
		}
	}
	slices.SortStableFunc(s.candidates, compareCandidates)
	return s, nil
}

// Next returns the name of the bundle that OLM v1 would install over the installed one, or "" when it would keep that.
// An installed without a name is a ClusterExtension that has nothing installed yet. An installed version that is not
// known is 0.0.0; OLM v1 itself always knows it. The error wraps ErrNothing.
func (s *Selection) Next(installed catalogs.Installed) (string, error) {
	version, _ := installed.SemVer()
	same := versionRelease(version)
	for i := range s.candidates {
		c := &s.candidates[i]
		if installed.Name != "" && !c.isSuccessorOf(installed.Name, version) && c.version.Compare(&same) != 0 {
			continue
		}
		if c.name == installed.Name {
			return "", nil
		}
		return c.name, nil
	}
	where := "any channel"
	if len(s.channels) > 0 {
		where = "channel " + strings.Join(s.channels, ", ")
	}
	if installed.Name == "" {
		return "", fmt.Errorf("%w of package %q in %s", ErrNothing, s.pkg, where)
	}
	return "", fmt.Errorf("%w of package %q in %s that can follow %s", ErrNothing, s.pkg, where, installed.Name)
}

// Successors returns the bundles whose entries say that they can follow the
// installed one, in OLM v1's order of preference. OLM v0 finds the same ones
// and then leaves out those that are skipped.
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

// HeldBackBy returns the highest successor of the installed bundle if OLM v1
// stays because that successor is deprecated and the installed bundle is not.
// Otherwise it is empty.
func (s *Selection) HeldBackBy(installed catalogs.Installed) string {
	version, _ := installed.SemVer()
	here := versionRelease(version)
	var best *candidate
	for i := range s.candidates {
		c := &s.candidates[i]
		switch {
		case c.name == installed.Name && c.deprecated:
			return ""
		case !c.deprecated || c.version.Compare(&here) <= 0 || !c.isSuccessorOf(installed.Name, version):
		case best == nil || c.version.Compare(&best.version) > 0:
			best = c
		}
	}
	if best == nil {
		return ""
	}
	return best.name
}

// isSuccessorOf is legacySuccessor of operator-controller.
func (c *candidate) isSuccessorOf(name string, version semver.Version) bool {
	return slices.ContainsFunc(c.entries, func(e entry) bool {
		return e.Replaces == name || slices.Contains(e.Skips, name) || (e.skipRange != nil && e.skipRange(version))
	})
}

// compareCandidates orders as OLM v1 does: deprecated last, then highest first.
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

// versionRelease takes build metadata for a release, where it can be one: OLM v1 orders by it, which semver forbids.
func versionRelease(v semver.Version) model.VersionRelease {
	release, err := model.NewRelease(strings.Join(v.Build, "."))
	if err != nil || len(release) == 0 {
		return model.VersionRelease{Version: v}
	}
	v.Build = nil
	return model.VersionRelease{Version: v, Release: release}
}
