// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw draws the upgrade graph of a package: as SVG, as Mermaid, as DOT and as text.
//
// Its input is a package of a catalog, the number of clusters by version, and the differences between OLM v0 and v1.
// It is pure: the same input gives the same bytes. It decides nothing about upgrades; the routes that it shows are
// computed by package catalogs.
package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Options select what is shown.
type Options struct {
	// Channel is the only channel to show; empty means all channels.
	Channel string
	// Installed are the bundles that clusters run, including versions that left the catalog; nil if unknown.
	Installed []Installed
	// Differences are the bundles for which OLM v0 and v1 differ.
	Differences []Difference
	// Whole shows every version of a long graph, instead of folding plain versions.
	Whole bool
}

// Installed is the number of clusters that run a bundle.
type Installed struct {
	catalogs.Installed
	Clusters int
}

// Difference is a bundle that OLM v0 and v1 upgrade differently.
type Difference struct {
	Channel, From string
	// Text describes both upgrades in a few words.
	Text string
}

// Graph is an upgrade graph, laid out as a list: a row for each version, the highest first, and a lane for
// each channel.
type Graph struct {
	Package     string
	Deprecation string
	Lanes       []Lane
	Rows        []Row
	// Clusters is the number of all clusters, or -1 if unknown.
	Clusters int
	// Versions is the number of bundles in the catalog.
	Versions int

	// versionNames are the versions by bundle, including folded versions.
	versionNames map[string]string
}

// Lane is a channel.
type Lane struct {
	Name        string
	Default     bool
	Head        string
	Deprecation string
	Edges       []Edge
}

// Edges returns the number of edges that Mermaid and DOT draw.
func (g *Graph) Edges() int {
	n := 0
	for l := range g.Lanes {
		n += len(g.listDrawnEdges(l))
	}
	return n
}

// Kind is the kind of an edge.
type Kind int

// Kinds of edges.
const (
	Replaces Kind = iota
	Skips
	// Ranges are combined: one edge from the lowest version in the skipRange represents all of them.
	Ranges
)

func (k Kind) String() string { return [...]string{"replaces", "skips", "skipRange"}[k] }

// Edge is an upgrade from one row to another row, both by index.
type Edge struct {
	Kind     Kind
	From, To int
	// Range is the text of the skipRange.
	Range string
	// Back is the rollback along the edge; its Class is empty if unknown.
	Back bundles.Rollback
}

// Role is the role of a version in a channel.
type Role int

// Roles of versions, from the least to the most important.
const (
	// Absent versions are not in the channel.
	Absent Role = iota
	// Gone versions are not entries of the channel, but the channel has an upgrade from them.
	Gone
	// Skipped versions are entries to which no cluster is upgraded.
	Skipped
	// Offered versions are other entries.
	Offered
	// Head is the version to which all upgrades of the channel lead.
	Head
)

// Place is the place of a version in a channel.
type Place struct {
	Role Role
	// Route is the upgrade path to the channel's head. It has no meaning if Role is Absent and no cluster runs
	// the version.
	Route catalogs.Route
}

// Row is a version, or several folded versions.
type Row struct {
	Bundle, Version string
	// Listed is true if the catalog has the bundle.
	Listed      bool
	Deprecation string
	Block       *catalogs.Block
	Clusters    int
	// Stranded is true if clusters run the version, and no channel has an upgrade path from it.
	Stranded    bool
	Places      []Place
	Back        []bundles.Rollback
	Differences []Difference
	// Folded is the number of versions that the row represents. If it is more than 1, Version is the highest of them
	// and Lowest the lowest.
	Folded int
	Lowest string

	semver *semver.Version
}

// Build returns the graph of a valid package. The error wraps ErrNoChannel or ErrInvalidPackage of package catalogs.
func Build(p *catalogs.Package, o Options) (*Graph, error) {
	channels, err := selectChannels(p, o.Channel)
	if err != nil {
		return nil, err
	}
	g := &Graph{Package: p.Name, Deprecation: p.Deprecation, Rows: buildRows(p, channels, o),
		Clusters: countClusters(o.Installed), versionNames: map[string]string{}}
	index := make(map[string]int, len(g.Rows))
	for i, r := range g.Rows {
		index[r.Bundle], g.versionNames[r.Bundle] = i, r.Version
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
		g.Rows[i].Stranded = g.Rows[i].isStranded(g)
	}
	for _, d := range o.Differences {
		if i, ok := index[d.From]; ok && (o.Channel == "" || o.Channel == d.Channel) {
			g.Rows[i].Differences = append(g.Rows[i].Differences, d)
		}
	}
	if !o.Whole {
		g.foldRows()
	}
	return g, nil
}

// countClusters returns the number of clusters; -1 if unknown.
func countClusters(installed []Installed) int {
	if installed == nil {
		return -1
	}
	n := 0
	for _, i := range installed {
		n += i.Clusters
	}
	return n
}

// selectChannels returns the channels to draw, the default channel first. If channel is not empty, it
// returns only that channel.
func selectChannels(p *catalogs.Package, channel string) ([]*catalogs.Channel, error) {
	if channel != "" {
		c, err := p.Channel(channel)
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

// buildRows returns a row for each version of the channels, and for each version from which they have an upgrade or
// that clusters run, the highest first.
func buildRows(p *catalogs.Package, channels []*catalogs.Channel, o Options) []Row {
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
		out = append(out, buildRow(p, name, installed[name]))
	}
	slices.SortStableFunc(out, func(a, b Row) int { return compareRows(b, a) })
	return out
}

// buildRow returns the row of a bundle, without its places in channels.
func buildRow(p *catalogs.Package, name string, i Installed) Row {
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

// compareRows orders rows by version; versions that are not semantic come first.
func compareRows(a, b Row) int {
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

// addLane adds a channel to the graph: its edges, and the place of each row in it.
func (g *Graph) addLane(p *catalogs.Package, c *catalogs.Channel, index map[string]int, installed []Installed) error {
	head, err := c.Head()
	if err != nil {
		return err
	}
	// Routes are also needed for versions that are not entries of the channel.
	var otherBundles []catalogs.Installed
	for _, i := range installed {
		otherBundles = append(otherBundles, i.Installed)
	}
	for name := range index {
		if _, ok := c.Entry(name); !ok && !slices.ContainsFunc(otherBundles,
			func(i catalogs.Installed) bool { return i.Name == name }) {
			otherBundles = append(otherBundles, catalogs.Installed{Name: name})
		}
	}
	routes, err := p.Routes(c.Name, otherBundles...)
	if err != nil {
		return err
	}
	lane := Lane{Name: c.Name, Default: c.Name == p.DefaultChannel, Head: head, Deprecation: c.Deprecation}
	lane.Edges = buildEdges(p, c, g.Rows, index)
	hasDirectEdge := map[int]bool{}
	for _, e := range lane.Edges {
		hasDirectEdge[e.From] = hasDirectEdge[e.From] || e.Kind != Ranges
	}
	for i := range g.Rows {
		r := &g.Rows[i]
		role := findRole(c, r.Bundle, head)
		// A version of another channel that is only in a skipRange gets no mark here. A version that left the catalog
		// gets a mark if clusters run it.
		isUpgradable := r.Clusters > 0 && !r.Listed && routes[r.Bundle].Hops > 0
		if role == Absent && (hasDirectEdge[i] || isUpgradable) {
			role = Gone
		}
		r.Places = append(r.Places, Place{Role: role, Route: routes[r.Bundle]})
	}
	g.Lanes = append(g.Lanes, lane)
	return nil
}

// listDrawnEdges returns the edges of a lane without redundant edges: of the edges of kind Ranges that begin at the
// same row, only the edge to the highest version is drawn, because further lines would hide other edges.
func (g *Graph) listDrawnEdges(lane int) []Edge {
	var out []Edge
	for _, e := range g.Lanes[lane].Edges {
		// Edges are sorted by their target, the highest version first.
		isSame := func(o Edge) bool { return o.Kind == Ranges && o.From == e.From }
		if e.Kind != Ranges || !slices.ContainsFunc(out, isSame) {
			out = append(out, e)
		}
	}
	return out
}

// findRole returns the role of a bundle in a channel, but never Gone: addLane decides between Absent and Gone.
func findRole(c *catalogs.Channel, bundle, head string) Role {
	_, isEntry := c.Entry(bundle)
	switch {
	case bundle == head:
		return Head
	case !isEntry:
		return Absent
	case c.Skips(bundle):
		return Skipped
	}
	return Offered
}

// buildEdges returns the edges of a channel, sorted by their target.
func buildEdges(p *catalogs.Package, c *catalogs.Channel, rows []Row, index map[string]int) []Edge {
	isNamed := map[string]bool{}
	for _, e := range c.Entries {
		for _, name := range append([]string{e.Name, e.Replaces}, e.Skips...) {
			isNamed[name] = true
		}
	}
	var out []Edge
	for _, e := range c.Entries {
		direct, ends := buildDirectEdges(p, e, index)
		out = append(out, direct...)
		if from, ok := findLowestInRange(e.SkipRange, rows, isNamed, ends); ok {
			out = append(out, Edge{Kind: Ranges, From: from, To: index[e.Name], Range: e.SkipRange})
		}
	}
	slices.SortStableFunc(out, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From))
	})
	return out
}

// buildDirectEdges returns the edges for replaces and skips of an entry. ends are the rows at both ends of
// these edges.
func buildDirectEdges(p *catalogs.Package, e catalogs.Entry, index map[string]int) (out []Edge, ends map[int]bool) {
	rollbacks := map[string]bundles.Rollback{}
	if b := p.Bundles[e.Name]; b != nil {
		for _, rollback := range b.Rollbacks() {
			rollbacks[rollback.From] = rollback
		}
	}
	to := index[e.Name]
	ends = map[int]bool{to: true}
	add := func(kind Kind, name string) {
		if from, ok := index[name]; ok && !ends[from] {
			out = append(out, Edge{Kind: kind, From: from, To: to, Back: rollbacks[name]})
			ends[from] = true
		}
	}
	add(Replaces, e.Replaces)
	for _, name := range slices.Sorted(slices.Values(e.Skips)) {
		add(Skips, name)
	}
	return out, ends
}

// findLowestInRange returns the index of the lowest row in a skipRange that has no direct edge; false if there is
// none. It considers versions that the channel names, and versions that left the catalog and that clusters run.
func findLowestInRange(text string, rows []Row, isNamed map[string]bool, isDirect map[int]bool) (int, bool) {
	inRange, err := semver.ParseRange(text)
	if text == "" || err != nil {
		return 0, false
	}
	for i, r := range slices.Backward(rows) {
		isShown := isNamed[r.Bundle] || (!r.Listed && r.Clusters > 0)
		if r.semver != nil && isShown && !isDirect[i] && inRange(*r.semver) {
			return i, true
		}
	}
	return 0, false
}

// isStranded reports whether clusters run the version and no channel has an upgrade path from it.
func (r Row) isStranded(g *Graph) bool {
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

// HeadOf returns the channels of which the version is the head.
func (g *Graph) HeadOf(r Row) []string {
	var out []string
	for l, lane := range g.Lanes {
		if r.Places[l].Role == Head {
			out = append(out, lane.Name)
		}
	}
	return out
}

// Next describes the next version: with the number of hops to the head if all channels have the same next version, or
// else by channel. It is empty if there is no upgrade, and at the head.
func (g *Graph) Next(r Row) string {
	var order []string
	lanes, hops := map[string][]string{}, map[string][]int{}
	for l, lane := range g.Lanes {
		place := r.Places[l]
		// A cluster with a version that left the catalog can be subscribed to any channel.
		leftCatalog := r.Clusters > 0 && !r.Listed
		isOtherChannel := place.Role == Absent && !leftCatalog
		if place.Route.Hops <= 0 || isOtherChannel {
			continue
		}
		next := g.formatVersion(place.Route.Next)
		if lanes[next] == nil {
			order = append(order, next)
		}
		lanes[next], hops[next] = append(lanes[next], lane.Name), append(hops[next], place.Route.Hops)
	}
	var parts []string
	for _, next := range order {
		if len(order) == 1 {
			return next + formatHops(slices.Min(hops[next]), slices.Max(hops[next]))
		}
		parts = append(parts, next+" in "+strings.Join(lanes[next], ", "))
	}
	return strings.Join(parts, "; ")
}

func formatHops(minHops, maxHops int) string {
	switch {
	case minHops != maxHops:
		return fmt.Sprintf(", %d to %d hops", minHops, maxHops)
	case maxHops > 1:
		return fmt.Sprintf(", %d hops", maxHops)
	}
	return ""
}

// formatVersion returns the version of a bundle, or its name if the version is unknown.
func (g *Graph) formatVersion(bundle string) string { return cmp.Or(g.versionNames[bundle], bundle) }
