// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "slices"

// Route is the upgrade path of an installed bundle to the head of a channel.
type Route struct {
	// Next is the bundle of the first upgrade; empty at the head, and if there is no path.
	Next string
	// Hops is the number of upgrades to the head: 0 at the head, -1 if there is no path.
	Hops int
}

// Routes returns, by bundle name, the upgrade path to the head of a channel (empty: the default channel) from
// each of its entries and from each installed bundle. A route has the first step and the length of the path
// that PathFrom returns. Computing all routes costs about as much as one PathFrom. The error wraps ErrNoChannel
// or ErrInvalidPackage.
func (p *Package) Routes(channel string, installed ...Installed) (map[string]Route, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	g := p.buildGraph(c, installed)
	skipped := c.listSkipped()
	avoidingSkipped, throughSkipped := g.countHops(head, skipped), g.countHops(head, nil)
	routes := make(map[string]Route, len(c.Entries)+len(installed))
	// As in PathFrom, a path passes through skipped bundles only if there is no other path.
	add := func(name string) {
		if _, ok := avoidingSkipped[name]; ok {
			routes[name] = g.findRoute(name, avoidingSkipped, skipped)
		} else {
			routes[name] = g.findRoute(name, throughSkipped, nil)
		}
	}
	for _, e := range c.Entries {
		add(e.Name)
	}
	for _, i := range installed {
		add(i.Name)
	}
	return routes, nil
}

// buildGraph returns the upgrade graph of a channel. It also has the upgrades from installed bundles that are not
// entries of the channel.
func (p *Package) buildGraph(c *Channel, installed []Installed) graph {
	nodes := make([]node, 0, len(c.Entries)+len(installed))
	isNode := map[string]bool{}
	for _, i := range installed {
		if !isNode[i.Name] {
			nodes = append(nodes, node{name: i.Name, version: p.findVersion(i)})
		}
		isNode[i.Name] = true
	}
	for _, e := range c.Entries {
		if !isNode[e.Name] {
			nodes = append(nodes, node{name: e.Name, version: p.findVersion(Installed{Name: e.Name})})
		}
	}
	// The highest entry comes first, so that the upgrades of each bundle have the same order.
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return p.compareBundles(b.Name, a.Name) })
	g := graph{next: make(map[string][]string, len(nodes))}
	for _, e := range entries {
		canReplace := e.newUpgradePredicate()
		for _, n := range nodes {
			if n.name != e.Name && canReplace(n) {
				g.next[n.name] = append(g.next[n.name], e.Name)
			}
		}
	}
	return g
}

// countHops returns the number of hops to a bundle, by bundle name. Paths do not pass through avoided bundles, but
// can start at an avoided bundle. Bundles without a path are not in the map.
func (g graph) countHops(to string, avoid map[string]bool) map[string]int {
	previous := map[string][]string{}
	for from, next := range g.next {
		for _, n := range next {
			previous[n] = append(previous[n], from)
		}
	}
	hops := map[string]int{to: 0}
	for queue := []string{to}; len(queue) > 0; queue = queue[1:] {
		current := queue[0]
		if current != to && avoid[current] {
			continue // a path can start here, but not pass through here
		}
		for _, n := range previous[current] {
			if _, isReached := hops[n]; !isReached {
				hops[n] = hops[current] + 1
				queue = append(queue, n)
			}
		}
	}
	return hops
}

// findRoute returns the first step and the length of the path that findShortestPath finds. The first step is the
// highest version among the direct upgrades with the fewest hops. hops is the result of countHops.
func (g graph) findRoute(from string, hops map[string]int, avoid map[string]bool) Route {
	remaining, ok := hops[from]
	switch {
	case !ok:
		return Route{Hops: -1}
	case remaining == 0:
		return Route{}
	}
	for _, n := range g.next[from] {
		if d, ok := hops[n]; ok && d == remaining-1 && !avoid[n] {
			return Route{Next: n, Hops: remaining}
		}
	}
	return Route{Hops: -1}
}
