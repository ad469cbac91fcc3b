// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos decides what goes wrong in a fleet and when, and judges what was seen of the fleet meanwhile: that no
// limit was exceeded, and that no data was lost.
//
// It disturbs nothing itself, and reads nothing: it has no client and no clock. The end-to-end tests carry out what it
// decides, and report to it what they see.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Part is what something goes wrong with.
type Part string

// The parts of a fleet. All but the first four exist once for each cluster.
const (
	Hub          Part = "hub"
	HubAPIServer Part = "API server of the hub"
	Prometheus   Part = "Prometheus"
	Registry     Part = "registry"
	Agent        Part = "agent"
	OLM          Part = "olm-operator"
	Catalog      Part = "catalog-operator"
	APIServer    Part = "API server"
	Clock        Part = "clock of the agent"
	Connection   Part = "connection of the agent to the hub"
)

// Kind is what goes wrong.
type Kind string

const (
	// Killed processes end by SIGKILL. What starts them again does so, which for API servers is the test itself.
	Killed Kind = "is killed"
	// Stopped processes get SIGSTOP, and later SIGCONT.
	Stopped Kind = "is stopped"
	// Gone servers end, and are started again later.
	Gone Kind = "is gone"
	// Ahead clocks are an hour fast.
	Ahead Kind = "is an hour ahead"
	// Behind clocks are an hour slow.
	Behind Kind = "is an hour behind"
	// Slow connections have a latency.
	Slow Kind = "is slow"
	// Cut connections let nothing pass, and neither side is told.
	Cut Kind = "is cut"
	// Refused connections are closed, and new ones cannot be made.
	Refused Kind = "is refused"
)

// Disturbance is one thing that goes wrong for a while.
type Disturbance struct {
	Part Part
	Kind Kind
	// Cluster is the name of the member; empty for the parts that exist once.
	Cluster string
	// After is how long to wait before it begins, and Lasts how long it lasts.
	After, Lasts time.Duration
	// Among chooses one of several processes.
	Among int
}

// What names the disturbance without cluster and times.
func (d Disturbance) What() string { return string(d.Part) + " " + string(d.Kind) }

// String names the disturbance.
func (d Disturbance) String() string {
	where := ""
	if d.Cluster != "" {
		where = d.Cluster + ": "
	}
	return fmt.Sprintf("%s%s for %s", where, d.What(), d.Lasts.Round(100*time.Millisecond))
}

// Target is what only one disturbance concerns at a time. The clock of an agent is that of its process.
func (d Disturbance) Target() string {
	part := d.Part
	if part == Clock {
		part = Agent
	}
	return d.Cluster + "/" + string(part)
}

// all are the disturbances that there are, without cluster and times.
var all = []Disturbance{
	{Part: Hub, Kind: Killed}, {Part: Hub, Kind: Stopped},
	{Part: HubAPIServer, Kind: Killed}, {Part: HubAPIServer, Kind: Stopped},
	{Part: Prometheus, Kind: Gone}, {Part: Prometheus, Kind: Stopped}, {Part: Registry, Kind: Gone},
	{Part: Agent, Kind: Killed}, {Part: Agent, Kind: Stopped},
	{Part: OLM, Kind: Killed}, {Part: OLM, Kind: Stopped},
	{Part: Catalog, Kind: Killed}, {Part: Catalog, Kind: Stopped},
	{Part: APIServer, Kind: Killed}, {Part: APIServer, Kind: Stopped},
	{Part: Clock, Kind: Ahead}, {Part: Clock, Kind: Behind},
	{Part: Connection, Kind: Slow}, {Part: Connection, Kind: Cut}, {Part: Connection, Kind: Refused},
}

// isOfMember tells whether a part exists once for each cluster.
func isOfMember(p Part) bool {
	switch p {
	case Hub, HubAPIServer, Prometheus, Registry:
		return false
	default:
		return true
	}
}

// All returns what every disturbance is called (Disturbance.What).
func All() []string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.What()
	}
	return names
}

const (
	// maxPause is the longest time between two disturbances, minLasting the shortest that one lasts.
	maxPause   = 3 * time.Second
	minLasting = time.Second
	maxAmong   = 1000
)

// Deck deals disturbances at random. Each is dealt once before any is dealt again.
type Deck struct {
	random   *rand.Rand
	clusters []string
	longest  time.Duration
	left     []Disturbance
}

// NewDeck returns a deck for a fleet of these clusters. No disturbance lasts longer than longest.
func NewDeck(seed uint64, clusters []string, longest time.Duration) *Deck {
	return &Deck{random: rand.New(rand.NewPCG(seed, 0)), clusters: clusters, longest: longest}
}

// Deal returns the next disturbance whose target is not busy; false if there is none.
func (d *Deck) Deal(busy map[string]bool) (Disturbance, bool) {
	if len(d.left) == 0 {
		d.left = d.shuffled()
	}
	for i, next := range d.left {
		if !busy[next.Target()] {
			d.left = append(d.left[:i:i], d.left[i+1:]...)
			return next, true
		}
	}
	return Disturbance{}, false
}

func (d *Deck) shuffled() []Disturbance {
	cards := make([]Disturbance, len(all))
	for i, at := range d.random.Perm(len(all)) {
		card := all[at]
		if isOfMember(card.Part) {
			card.Cluster = d.clusters[d.random.IntN(len(d.clusters))]
		}
		card.After = time.Duration(d.random.Int64N(int64(maxPause)))
		card.Lasts = minLasting + time.Duration(d.random.Int64N(int64(max(d.longest-minLasting, 1))))
		card.Among = d.random.IntN(maxAmong)
		cards[i] = card
	}
	return cards
}
