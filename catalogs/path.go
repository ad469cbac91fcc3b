// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Path returns the names of the bundles to install one after another, after from and up to and including to, in the
// channel (empty: the default channel). from and to are bundle names.
//
// Each step obeys OLM v0: a bundle can directly replace the bundles that its entry names in replaces or skips, and
// the bundles whose version is in its skipRange. The path is the shortest path that passes through no skipped bundle,
// because the author wants no cluster to install a skipped bundle. If there is no such path, the path can pass
// through skipped bundles. Among equally short paths it prefers higher versions, as OLM does.
//
// An empty from is a fresh install: the path contains only to. If from and to are equal, the path is empty. If from
// left the channel or the catalog, its version is read from the bundle or from the conventional name "name.v1.2.3".
// Errors wrap ErrNoChannel, ErrNoVersion, ErrNoPath or ErrBlocked.
func (p *Package) Path(channel, from, to string) ([]string, error) {
	return p.PathFrom(channel, Installed{Name: from}, to)
}

// PathFrom is like Path for a bundle whose version is known from the cluster instead of the catalog.
func (p *Package) PathFrom(channel string, from Installed, to string) ([]string, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	if b, ok := p.Blocks[to]; ok && from.Name != to {
		return nil, newBlockedError(p.Name, b)
	}
	if _, ok := c.Entry(to); !ok {
		return nil, fmt.Errorf("%w: bundle %q is not in channel %q of package %q: %s", ErrNoVersion, to, c.Name, p.Name,
			p.describeVersions(c, nil))
	}
	switch from.Name {
	case "":
		return []string{to}, nil
	case to:
		return nil, nil
	}
	g := p.buildGraph(c, []Installed{from})
	skipped := c.listSkipped()
	// The path can pass through skipped bundles only if there is no other path.
	for _, avoid := range []map[string]bool{skipped, nil} {
		if path := g.findShortestPath(from.Name, to, avoid); path != nil {
			return path, nil
		}
	}
	return nil, p.newNoPathError(c, g, from.Name, to)
}

// graph holds the direct upgrades of a channel by bundle name, the highest version first.
type graph struct {
	next map[string][]string
}

// node is a bundle in the graph. skipRange needs its version; an unknown version (nil) is in no range.
type node struct {
	name    string
	version *semver.Version
}

// newUpgradePredicate returns a function that reports whether a bundle can be upgraded directly to e. It is OLM v0's
// candidate rule (ReplacesPredicate or SkipRangeIncludesPredicate of its resolver).
func (e Entry) newUpgradePredicate() func(node) bool {
	// A range that does not parse matches nothing in OLM either; Validate reports it.
	inRange, err := semver.ParseRange(e.SkipRange)
	if err != nil || e.SkipRange == "" {
		inRange = func(semver.Version) bool { return false }
	}
	return func(n node) bool {
		return e.Replaces == n.name || slices.Contains(e.Skips, n.name) || (n.version != nil && inRange(*n.version))
	}
}

// findVersion returns the version of an installed bundle; nil if it is unknown.
func (p *Package) findVersion(i Installed) *semver.Version {
	if b, ok := p.Bundles[i.Name]; ok {
		return &b.Version
	}
	if v, ok := i.SemVer(); ok {
		return &v
	}
	return nil
}

// compareBundles orders two bundles by version, then by name; by name only if one of them has no bundle in
// the package.
func (p *Package) compareBundles(a, b string) int {
	x, y := p.Bundles[a], p.Bundles[b]
	if x == nil || y == nil {
		return strings.Compare(a, b)
	}
	if c := bundles.CompareVersions(x.Version, y.Version); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// findShortestPath searches breadth first. The path does not pass through avoided nodes, but can start and end at an
// avoided node. It returns nil if there is no path.
func (g graph) findShortestPath(from, to string, avoid map[string]bool) []string {
	cameFrom := map[string]string{from: from}
	queue := []string{from}
	for len(queue) > 0 {
		current := queue[0]
		queue = queue[1:]
		if current == to {
			return tracePath(cameFrom, from, to)
		}
		for _, n := range g.next[current] {
			if _, isReached := cameFrom[n]; isReached || (avoid[n] && n != to) {
				continue
			}
			cameFrom[n] = current
			queue = append(queue, n)
		}
	}
	return nil
}

// tracePath returns the path from from (excluded) to to. cameFrom has the predecessor of each bundle on it.
func tracePath(cameFrom map[string]string, from, to string) []string {
	var path []string
	for at := to; at != from; at = cameFrom[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// newNoPathError returns an error that describes which upgrades exist from one bundle and to the other.
func (p *Package) newNoPathError(c *Channel, g graph, from, to string) error {
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
