// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Path returns the names of the bundles to install one after another, after from and up to and including to, both
// bundle names, in the channel (empty: the default channel).
//
// Each step obeys OLM v0: a bundle can directly replace what its entry names in replaces or skips and what lies in its
// skipRange. The path is the shortest one that passes through no skipped bundle, because a skipped bundle is one that
// the author wants nobody to install; only where no such path exists may it pass through them. Among equally short
// paths it takes the higher versions first, as OLM does.
//
// An empty from is a fresh install: the path is just to. When from is to the path is empty. from may have left the
// channel or the catalog: its version is then taken from the bundle or from the conventional name "name.v1.2.3".
// Errors wrap ErrNoChannel, ErrNoVersion, ErrNoPath or ErrBlocked.
func (p *Package) Path(channel, from, to string) ([]string, error) {
	return p.PathFrom(channel, Installed{Name: from}, to)
}

// Installed is what a cluster runs: the name of a ClusterServiceVersion and its version, if that is known.
type Installed struct {
	Name    string
	Version string
}

// SemVer returns the version, or else the one in a conventional name; false if there is neither.
func (i Installed) SemVer() (semver.Version, bool) {
	if v, err := semver.ParseTolerant(i.Version); err == nil {
		return v, true
	}
	return registryv1.VersionInName(i.Name)
}

// PathFrom is Path for a bundle whose version is known from the cluster rather than from the catalog.
func (p *Package) PathFrom(channel string, from Installed, to string) ([]string, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	if b, ok := p.Blocks[to]; ok && from.Name != to {
		return nil, errBlocked(p.Name, b)
	}
	if _, ok := c.Entry(to); !ok {
		return nil, fmt.Errorf("%w: bundle %q is not in channel %q of package %q: %s", ErrNoVersion, to, c.Name, p.Name,
			p.offers(c, nil))
	}
	switch from.Name {
	case "":
		return []string{to}, nil
	case to:
		return nil, nil
	}
	g := p.wholeGraph(c, []Installed{from})
	skipped := c.skipped()
	for _, avoid := range []map[string]bool{skipped, nil} {
		if path := g.shortest(from.Name, to, avoid); path != nil {
			return path, nil
		}
	}
	return nil, p.noPath(c, g, from.Name, to)
}

// graph holds the direct upgrades of a channel, best first: what comes earlier in next is the higher version.
type graph struct {
	next map[string][]string
}

// node is a bundle in the graph: skipRange needs its version, and an unknown version is in no range.
type node struct {
	name    string
	version *semver.Version
}

// predicate is OLM v0's candidate rule (ReplacesPredicate or SkipRangeIncludesPredicate of its resolver).
func (e Entry) predicate() func(node) bool {
	// A range that does not parse matches nothing in OLM either; validation reports it.
	inRange, err := semver.ParseRange(e.SkipRange)
	if err != nil || e.SkipRange == "" {
		inRange = func(semver.Version) bool { return false }
	}
	return func(n node) bool {
		return e.Replaces == n.name || slices.Contains(e.Skips, n.name) || (n.version != nil && inRange(*n.version))
	}
}

func (p *Package) versionOf(i Installed) *semver.Version {
	if b, ok := p.Bundles[i.Name]; ok {
		return &b.Version
	}
	if v, ok := i.SemVer(); ok {
		return &v
	}
	return nil
}

func (p *Package) compare(a, b string) int {
	x, y := p.Bundles[a], p.Bundles[b]
	if x == nil || y == nil {
		return strings.Compare(a, b)
	}
	if c := registryv1.CompareVersions(x.Version, y.Version); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// shortest searches breadth first. It passes through no avoided node, but may start and end at one.
func (g graph) shortest(from, to string, avoid map[string]bool) []string {
	cameFrom := map[string]string{from: from}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at == to {
			return walkBack(cameFrom, from, to)
		}
		for _, n := range g.next[at] {
			if _, seen := cameFrom[n]; seen || (avoid[n] && n != to) {
				continue
			}
			cameFrom[n] = at
			queue = append(queue, n)
		}
	}
	return nil
}

func walkBack(cameFrom map[string]string, from, to string) []string {
	var path []string
	for at := to; at != from; at = cameFrom[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

func (p *Package) noPath(c *Channel, g graph, from, to string) error {
	reachable := "no version in the channel replaces " + p.describe(from)
	if next := g.next[from]; len(next) > 0 {
		reachable = p.describe(from) + " can be upgraded to " + p.describeAll(next)
	}
	var sources []string
	for _, e := range c.Entries {
		if slices.Contains(g.next[e.Name], to) {
			sources = append(sources, e.Name)
		}
	}
	origins := "no version in the channel can be upgraded to " + p.describe(to)
	if len(sources) > 0 {
		origins = p.describe(to) + " can be reached from " + p.describeAll(sources)
	}
	return fmt.Errorf("%w in channel %q of package %q from %s to %s: %s; %s", ErrNoPath, c.Name, p.Name,
		p.describe(from), p.describe(to), reachable, origins)
}

func (p *Package) describeAll(names []string) string {
	described := make([]string, 0, len(names))
	for _, n := range names {
		described = append(described, p.describe(n))
	}
	return phrase.First(described, maxListed)
}
