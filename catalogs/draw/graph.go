// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw shows the upgrade graph of a package: as SVG, as Mermaid, as DOT and as text.
//
// Its input is a package of a catalog, how many clusters run which version, and where OLM v0 and v1 part ways. It is
// pure: the same input gives the same bytes. It decides nothing about upgrades; the routes it shows are those of
// package catalogs.
package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Options say what to show.
type Options struct {
	// Channel is the only one to show; empty means all.
	Channel string
	// Installed are what clusters run; versions that left the catalog are shown too. nil if that is unknown.
	Installed []Installed
	// Differences are where OLM v0 and v1 part ways.
	Differences []Difference
	// Whole keeps every version of a long graph, instead of folding those with nothing to tell.
	Whole bool
}

// Installed is how many clusters run a bundle.
type Installed struct {
	catalogs.Installed
	Clusters int
}

// Difference is that OLM v0 and v1 do not do the same from a bundle.
type Difference struct {
	Channel, From string
	// Text says what each does, in a few words.
	Text string
}

// Graph is an upgrade graph, laid out as a list: a row for each version, the highest first, and a lane for each
// channel.
type Graph struct {
	Package     string
	Deprecation string
	Lanes       []Lane
	Rows        []Row
	// Clusters is how many there are altogether, or -1 if unknown.
	Clusters int
	// Versions is the number of bundles in the catalog.
	Versions int

	// named are the versions by bundle, folded ones too.
	named map[string]string
}

// Lane is a channel.
type Lane struct {
	Name        string
	Default     bool
	Head        string
	Deprecation string
	Edges       []Edge
}

// Edges is the number of edges that Mermaid and DOT draw.
func (g *Graph) Edges() int {
	n := 0
	for l := range g.Lanes {
		n += len(g.bundled(l))
	}
	return n
}

// Kind tells edges apart.
type Kind int

// Kinds of edges.
const (
	Replaces Kind = iota
	Skips
	// Ranges are bundled: one edge from the lowest version in the skipRange represents all of them.
	Ranges
)

func (k Kind) String() string { return [...]string{"replaces", "skips", "skipRange"}[k] }

// Edge is an upgrade from one row to another one, both by index.
type Edge struct {
	Kind     Kind
	From, To int
	// Range is the text of the skipRange.
	Range string
	// Back is the rollback along the edge; its Class is empty if unknown.
	Back registryv1.Rollback
}

// Role is what a version is in a channel.
type Role int

// Roles, from the least to the most.
const (
	// Absent versions are not in the channel.
	Absent Role = iota
	// Gone versions are no entry of the channel, but there is a way from them into it.
	Gone
	// Skipped versions are entries that no cluster is upgraded to.
	Skipped
	// Offered versions are entries.
	Offered
	// Head is what the channel leads to.
	Head
)

// Place is a version's place in a channel.
type Place struct {
	Role Role
	// Route is the upgrade path to the channel's head. It has no meaning if Role is Absent and no cluster runs the
	// version.
	Route catalogs.Route
}

// Row is a version; or several, folded into one row.
type Row struct {
	Bundle, Version string
	// Listed tells that the catalog has the bundle.
	Listed      bool
	Deprecation string
	Block       *catalogs.Block
	Clusters    int
	// Stranded tells that clusters run it and no channel leads anywhere from it.
	Stranded    bool
	Places      []Place
	Back        []registryv1.Rollback
	Differences []Difference
	// Folded is how many versions the row represents, and Lowest the last of them; Version is the first.
	Folded int
	Lowest string

	semver *semver.Version
}

// Build makes the graph of a valid package. The error wraps ErrNoChannel or ErrInvalidPackage of package catalogs.
func Build(p *catalogs.Package, o Options) (*Graph, error) {
	channels, err := shown(p, o.Channel)
	if err != nil {
		return nil, err
	}
	g := &Graph{Package: p.Name, Deprecation: p.Deprecation, Rows: rows(p, channels, o), Clusters: count(o.Installed),
		named: map[string]string{}}
	index := make(map[string]int, len(g.Rows))
	for i, r := range g.Rows {
		index[r.Bundle], g.named[r.Bundle] = i, r.Version
		if r.Listed {
			g.Versions++
		}
	}
	for _, c := range channels {
		if err := g.addLane(p, c, index, o.Installed); err != nil {
			return nil, err
		}
	}
	for i := range g.Rows {
		g.Rows[i].Stranded = g.Rows[i].stranded(g)
	}
	for _, d := range o.Differences {
		if i, ok := index[d.From]; ok && (o.Channel == "" || o.Channel == d.Channel) {
			g.Rows[i].Differences = append(g.Rows[i].Differences, d)
		}
	}
	if !o.Whole {
		g.fold()
	}
	return g, nil
}

// count is how many clusters there are; -1 if unknown.
func count(installed []Installed) int {
	if installed == nil {
		return -1
	}
	n := 0
	for _, i := range installed {
		n += i.Clusters
	}
	return n
}

// shown returns the channels to draw, the default one first.
func shown(p *catalogs.Package, only string) ([]*catalogs.Channel, error) {
	if only != "" {
		c, err := p.Channel(only)
		return []*catalogs.Channel{c}, err
	}
	channels := slices.Collect(maps.Values(p.Channels))
	slices.SortFunc(channels, func(a, b *catalogs.Channel) int {
		if (a.Name == p.DefaultChannel) != (b.Name == p.DefaultChannel) {
			if a.Name == p.DefaultChannel {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return channels, nil
}

// rows are all versions that have something to do with the channels, the highest first.
func rows(p *catalogs.Package, channels []*catalogs.Channel, o Options) []Row {
	installed := map[string]Installed{}
	names := map[string]bool{}
	for _, i := range o.Installed {
		if i.Clusters > 0 {
			installed[i.Name], names[i.Name] = i, true
		}
	}
	for _, c := range channels {
		for _, e := range c.Entries {
			names[e.Name] = true
			for _, from := range append([]string{e.Replaces}, e.Skips...) {
				names[from] = true
			}
		}
	}
	if o.Channel == "" {
		for name := range p.Bundles {
			names[name] = true
		}
		for name := range p.Blocks {
			names[name] = true
		}
	}
	delete(names, "")
	out := make([]Row, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, row(p, name, installed[name]))
	}
	slices.SortStableFunc(out, func(a, b Row) int { return compare(b, a) })
	return out
}

func row(p *catalogs.Package, name string, i Installed) Row {
	r := Row{Bundle: name, Version: name, Clusters: i.Clusters, Folded: 1}
	if b, ok := p.Bundles[name]; ok {
		r.Version, r.Listed, r.Deprecation, r.semver = b.VersionString(), true, b.Deprecation, &b.Version
		r.Back = b.Rollbacks()
	} else if v, ok := (catalogs.Installed{Name: name, Version: i.Version}).SemVer(); ok {
		r.Version, r.semver = v.String(), &v
	}
	if b, ok := p.Blocked(name); ok {
		r.Block = &b
	}
	return r
}

func compare(a, b Row) int {
	switch {
	case a.semver == nil && b.semver == nil:
		return strings.Compare(a.Bundle, b.Bundle)
	case a.semver == nil:
		return -1
	case b.semver == nil:
		return 1
	}
	return cmp.Or(a.semver.Compare(*b.semver), strings.Compare(a.Bundle, b.Bundle))
}

func (g *Graph) addLane(p *catalogs.Package, c *catalogs.Channel, index map[string]int, installed []Installed) error {
	head, err := c.Head()
	if err != nil {
		return err
	}
	var gone []catalogs.Installed
	for _, i := range installed {
		gone = append(gone, i.Installed)
	}
	for name := range index {
		if _, ok := c.Entry(name); !ok && !slices.ContainsFunc(gone,
			func(i catalogs.Installed) bool { return i.Name == name }) {
			gone = append(gone, catalogs.Installed{Name: name})
		}
	}
	routes, err := p.Routes(c.Name, gone...)
	if err != nil {
		return err
	}
	lane := Lane{Name: c.Name, Default: c.Name == p.DefaultChannel, Head: head, Deprecation: c.Deprecation}
	lane.Edges = edges(p, c, g.Rows, index)
	touched := map[int]bool{}
	for _, e := range lane.Edges {
		touched[e.From] = touched[e.From] || e.Kind != Ranges
	}
	for i := range g.Rows {
		r := &g.Rows[i]
		role := roleOf(c, r.Bundle, head)
		// A version of another channel that merely lies in a skipRange gets no mark here, unless a cluster runs it.
		if role == Absent && (touched[i] || (r.Clusters > 0 && !r.Listed && routes[r.Bundle].Hops > 0)) {
			role = Gone
		}
		r.Places = append(r.Places, Place{Role: role, Route: routes[r.Bundle]})
	}
	g.Lanes = append(g.Lanes, lane)
	return nil
}

// bundled are a lane's edges with those of kind Ranges that begin together drawn as one, to the highest version: where
// edges cannot share a line, each one more would only hide the others.
func (g *Graph) bundled(lane int) []Edge {
	var out []Edge
	for _, e := range g.Lanes[lane].Edges {
		// Edges are sorted by what they lead to, the highest version first.
		same := func(o Edge) bool { return o.Kind == Ranges && o.From == e.From }
		if e.Kind != Ranges || !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	return out
}

func roleOf(c *catalogs.Channel, bundle, head string) Role {
	_, entry := c.Entry(bundle)
	switch {
	case bundle == head:
		return Head
	case !entry:
		return Absent
	case c.Skips(bundle):
		return Skipped
	}
	return Offered
}

// edges are sorted by what they lead to.
func edges(p *catalogs.Package, c *catalogs.Channel, rows []Row, index map[string]int) []Edge {
	named := map[string]bool{}
	for _, e := range c.Entries {
		for _, name := range append([]string{e.Name, e.Replaces}, e.Skips...) {
			named[name] = true
		}
	}
	var out []Edge
	for _, e := range c.Entries {
		direct, here := directEdges(p, e, index)
		out = append(out, direct...)
		if from, ok := lowestInRange(e.SkipRange, rows, named, here); ok {
			out = append(out, Edge{Kind: Ranges, From: from, To: index[e.Name], Range: e.SkipRange})
		}
	}
	slices.SortStableFunc(out, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From))
	})
	return out
}

// directEdges are what an entry names in replaces and skips; ends are the rows at either end of them.
func directEdges(p *catalogs.Package, e catalogs.Entry, index map[string]int) (out []Edge, ends map[int]bool) {
	back := map[string]registryv1.Rollback{}
	if b := p.Bundles[e.Name]; b != nil {
		for _, way := range b.Rollbacks() {
			back[way.From] = way
		}
	}
	to := index[e.Name]
	ends = map[int]bool{to: true}
	add := func(kind Kind, name string) {
		if from, ok := index[name]; ok && !ends[from] {
			out = append(out, Edge{Kind: kind, From: from, To: to, Back: back[name]})
			ends[from] = true
		}
	}
	add(Replaces, e.Replaces)
	for _, name := range slices.Sorted(slices.Values(e.Skips)) {
		add(Skips, name)
	}
	return out, ends
}

// lowestInRange finds the last row that only the skipRange leads away from, among those that the channel names and
// those that left the catalog and still run somewhere.
func lowestInRange(text string, rows []Row, named map[string]bool, direct map[int]bool) (int, bool) {
	inRange, err := semver.ParseRange(text)
	if text == "" || err != nil {
		return 0, false
	}
	for i, r := range slices.Backward(rows) {
		here := named[r.Bundle] || (!r.Listed && r.Clusters > 0)
		if r.semver != nil && here && !direct[i] && inRange(*r.semver) {
			return i, true
		}
	}
	return 0, false
}

func (r Row) stranded(g *Graph) bool {
	if r.Clusters == 0 {
		return false
	}
	for l := range g.Lanes {
		if r.Places[l].Route.Hops >= 0 {
			return false
		}
	}
	return true
}

// DeadEnd reports whether the version is in a channel whose head cannot be reached from it.
func (r Row) DeadEnd(lane int) bool {
	role := r.Places[lane].Role
	return (role == Offered || role == Skipped) && r.Places[lane].Route.Hops < 0
}

// HeadOf names the channels that lead to the version.
func (g *Graph) HeadOf(r Row) []string {
	var out []string
	for l, lane := range g.Lanes {
		if r.Places[l].Role == Head {
			out = append(out, lane.Name)
		}
	}
	return out
}

// Next says where the version goes next: with the number of hops to the head where the channels agree on the version,
// and by channel where they do not. It is empty if it goes nowhere, and at the head.
func (g *Graph) Next(r Row) string {
	var order []string
	lanes, hops := map[string][]string{}, map[string][]int{}
	for l, lane := range g.Lanes {
		place := r.Places[l]
		// A cluster with a version that a channel does not have may still be subscribed to it.
		if place.Route.Hops <= 0 || (place.Role == Absent && (r.Clusters == 0 || r.Listed)) {
			continue
		}
		next := g.version(place.Route.Next)
		if lanes[next] == nil {
			order = append(order, next)
		}
		lanes[next], hops[next] = append(lanes[next], lane.Name), append(hops[next], place.Route.Hops)
	}
	var parts []string
	for _, next := range order {
		if len(order) == 1 {
			return next + hopText(slices.Min(hops[next]), slices.Max(hops[next]))
		}
		parts = append(parts, next+" in "+strings.Join(lanes[next], ", "))
	}
	return strings.Join(parts, "; ")
}

func hopText(least, most int) string {
	switch {
	case least != most:
		return fmt.Sprintf(", %d to %d hops", least, most)
	case most > 1:
		return fmt.Sprintf(", %d hops", most)
	}
	return ""
}

// version is what people call a bundle.
func (g *Graph) version(bundle string) string { return cmp.Or(g.named[bundle], bundle) }
