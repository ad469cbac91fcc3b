// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "slices"

// Route is the upgrade path of an installed bundle to the head of a channel.
type Route struct {
	// Next is the bundle of the first upgrade; empty at the head, and where there is no path.
	Next string
	// Hops is the number of upgrades to the head: 0 at the head, -1 where there is no path.
	Hops int
}

// Routes returns, by bundle name, the way to the head of a channel (empty: the default channel) from each of its
// entries and from each of installed. A route is what PathFrom answers, without the path: asking for all of them at
// once costs about as much as one PathFrom. The error wraps ErrNoChannel or ErrInvalidPackage.
func (p *Package) Routes(channel string, installed ...Installed) (map[string]Route, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	g := p.wholeGraph(c, installed)
	skipped := c.skipped()
	avoidingSkipped, throughSkipped := g.distances(head, skipped), g.distances(head, nil)
	routes := make(map[string]Route, len(c.Entries)+len(installed))
	add := func(name string) {
		if _, ok := avoidingSkipped[name]; ok {
			routes[name] = g.route(name, avoidingSkipped, skipped)
		} else {
			routes[name] = g.route(name, throughSkipped, nil)
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

// wholeGraph is the graph with several bundles that need not be entries.
func (p *Package) wholeGraph(c *Channel, installed []Installed) graph {
	nodes := make([]node, 0, len(c.Entries)+len(installed))
	seen := map[string]bool{}
	for _, i := range installed {
		if !seen[i.Name] {
			nodes = append(nodes, node{name: i.Name, version: p.versionOf(i)})
		}
		seen[i.Name] = true
	}
	for _, e := range c.Entries {
		if !seen[e.Name] {
			nodes = append(nodes, node{name: e.Name, version: p.versionOf(Installed{Name: e.Name})})
		}
	}
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return p.compare(b.Name, a.Name) })
	g := graph{next: make(map[string][]string, len(nodes))}
	for _, e := range entries {
		replaces := e.predicate()
		for _, n := range nodes {
			if n.name != e.Name && replaces(n) {
				g.next[n.name] = append(g.next[n.name], e.Name)
			}
		}
	}
	return g
}

// distances counts the hops to a bundle along paths that pass through no avoided one, which may start at one.
func (g graph) distances(to string, avoid map[string]bool) map[string]int {
	previous := map[string][]string{}
	for from, next := range g.next {
		for _, n := range next {
			previous[n] = append(previous[n], from)
		}
	}
	hops := map[string]int{to: 0}
	for queue := []string{to}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != to && avoid[at] {
			continue // a path may start here, but not pass through here
		}
		for _, n := range previous[at] {
			if _, seen := hops[n]; !seen {
				hops[n] = hops[at] + 1
				queue = append(queue, n)
			}
		}
	}
	return hops
}

// route takes the highest of the next bundles that are nearest to the end, which is the path that shortest finds.
func (g graph) route(from string, hops map[string]int, avoid map[string]bool) Route {
	left, ok := hops[from]
	switch {
	case !ok:
		return Route{Hops: -1}
	case left == 0:
		return Route{}
	}
	for _, n := range g.next[from] {
		if d, ok := hops[n]; ok && d == left-1 && !avoid[n] {
			return Route{Next: n, Hops: left}
		}
	}
	return Route{Hops: -1}
}
