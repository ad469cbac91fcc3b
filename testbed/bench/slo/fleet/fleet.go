// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet makes up a fleet of clusters with operators, and trouble: what their exporters would have said, minute
// by minute, for some days. The same size and seed give the same fleet.
//
// It is pure: it neither serves nor writes what it makes up, and knows no clock; minutes count from the begin of
// history.
package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// SLI is one of the indicators that the trouble is in.
type SLI int

// The indicators, each of which Bellwether, sloth and pyrra can express.
const (
	CSV SLI = iota
	Catalog
	Probe
	Reconcile
	Latency
	Available
	Panic
	Queue
	Leader
	Webhook
	Operands
	slis
)

// trouble says how an SLI fails by chance.
var trouble = [slis]struct {
	// share of all minutes that are bad: a third of the budget of the default profile's target.
	share float64
	// length of an incident in minutes, on average.
	length float64
}{
	CSV:       {0.005 / 3, 10},
	Catalog:   {0.01 / 3, 20},
	Probe:     {0.001 / 3, 2},
	Reconcile: {0.01 / 3, 10},
	Latency:   {0.01 / 3, 10},
	Available: {0.001 / 3, 5},
	Panic:     {0.001 / 3, 2},
	Queue:     {0.01 / 3, 20},
	Leader:    {0.001 / 3, 3},
	Webhook:   {0.001 / 3, 3},
	Operands:  {0.01 / 3, 20},
}

const (
	// unstable operators have worse times as many incidents as the others. With more, chance alone would spend whole
	// budgets on each cluster: they would have tens of thousands of tickets that nobody has who keeps an objective.
	unstable = 2
	worse    = 2
	// fixedRelease is an operator whose release was bad on half of the clusters for some hours, until it was fixed.
	fixedRelease, fixedFrom, fixedFor = 2, 20 * 60, 6 * 60
	// badRelease is an operator whose release has been bad for some minutes on a few clusters, and goes on.
	badRelease, badFrom = 3, 90
	// badCluster has had no ready catalogs for some minutes, and goes on.
	badCluster, darkFrom = 1, 120
)

// LeastOperators and LeastClusters are how many it takes for all of the trouble.
const (
	LeastOperators = 4
	LeastClusters  = 4
)

// Size of a fleet.
type Size struct {
	Operators, Clusters int
	// History is the number of minutes that are past; Ahead is how many more are made up.
	History, Ahead int
	Seed           uint64
}

// Fleet is what was made up.
type Fleet struct {
	size Size
	// bad[cluster][operator][sli] are the bad minutes.
	bad [][][slis][]Span
}

// Span is the minutes from From up to and without To.
type Span struct{ From, To int }

// New makes up a fleet.
func New(s Size) (*Fleet, error) {
	if s.Operators < LeastOperators || s.Clusters < LeastClusters || s.History < 1 || s.Ahead < 0 {
		return nil, fmt.Errorf("make up fleet: it takes %d operators on %d clusters, and a minute of history",
			LeastOperators, LeastClusters)
	}
	f := &Fleet{size: s, bad: make([][][slis][]Span, s.Clusters)}
	for c := range f.bad {
		f.bad[c] = make([][slis][]Span, s.Operators)
		for o := range f.bad[c] {
			for sli := range slis {
				f.bad[c][o][sli] = f.incidents(c, o, sli)
			}
		}
	}
	return f, nil
}

// Size returns what the fleet was made from.
func (f *Fleet) Size() Size { return f.size }

func (f *Fleet) minutes() int { return f.size.History + f.size.Ahead }

// Cluster is the name of a cluster, from 0.
func Cluster(i int) string { return fmt.Sprintf("cluster-%04d", i) }

// Namespace is the namespace of all operators on the hub.
const Namespace = "fleet"

// ReleaseOf is the short hash of the release that brings a version.
func ReleaseOf(version string) string { return "release-" + version }

// Operator is the name of an operator, from 0. Its namespace has the same name.
func Operator(i int) string { return fmt.Sprintf("operator-%02d", i) }

// Bad returns the minutes in which an SLI is bad, in order and apart.
func (f *Fleet) Bad(cluster, operator int, sli SLI) []Span { return f.bad[cluster][operator][sli] }

// incidents are those of chance and those of the releases and of the cluster that are bad.
func (f *Fleet) incidents(cluster, operator int, sli SLI) []Span {
	t := trouble[sli]
	if operator < unstable {
		t.share *= worse
	}
	id := uint64((cluster*f.size.Operators+operator)*int(slis) + int(sli))
	random := rand.New(rand.NewPCG(f.size.Seed, id))
	var all []Span
	for at := 0.0; ; {
		at += random.ExpFloat64() * t.length * (1 - t.share) / t.share
		length := 1 + random.ExpFloat64()*(t.length-1)
		if int(at) >= f.minutes() {
			break
		}
		all = append(all, Span{int(at), min(int(at+length), f.minutes())})
		at += length
	}
	for _, r := range f.releases(cluster, operator) {
		if r.Bad && (sli == CSV || sli == Reconcile) {
			all = append(all, r.Span)
		}
	}
	if cluster == badCluster && sli == Catalog {
		all = append(all, Span{max(0, f.size.History-darkFrom), f.minutes()})
	}
	return union(all)
}

// union sorts spans and joins those that meet.
func union(all []Span) []Span {
	slices.SortFunc(all, func(a, b Span) int { return a.From - b.From })
	var out []Span
	for _, s := range all {
		switch {
		case s.To <= s.From:
		case len(out) > 0 && s.From <= out[len(out)-1].To:
			out[len(out)-1].To = max(out[len(out)-1].To, s.To)
		default:
			out = append(out, s)
		}
	}
	return out
}

// Release is a version, and when it ran.
type Release struct {
	Span

	Version string
	// Bad releases make SLIs bad for as long as they run.
	Bad bool
}

// Releases are the versions of an operator on a cluster, in order.
func (f *Fleet) Releases(cluster, operator int) []Release { return f.releases(cluster, operator) }

func (f *Fleet) releases(cluster, operator int) []Release {
	end := f.minutes()
	switch {
	case operator == fixedRelease && cluster < f.size.Clusters/2:
		from, to := max(0, f.size.History-fixedFrom), max(0, f.size.History-fixedFrom+fixedFor)
		return []Release{{Span{0, from}, "1.0.0", false}, {Span{from, to}, "1.1.0", true},
			{Span{to, end}, "1.1.1", false}}
	case operator == badRelease && cluster < max(2, f.size.Clusters/8):
		from := max(0, f.size.History-badFrom)
		return []Release{{Span{0, from}, "1.0.0", false}, {Span{from, end}, "1.1.0", true}}
	}
	return []Release{{Span{0, end}, "1.0.0", false}}
}
