// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Behaviour says how hollow clusters behave. The zero value is a fleet whose OLM takes no time and never fails.
type Behaviour struct {
	// Seed that everything is drawn from.
	Seed uint64
	// Connect is how long OLM takes to connect to a catalog view, Resolve how long it then takes to make an
	// InstallPlan, and Install how long from its approval to the end of the installation.
	Connect, Resolve, Install Delay
	// FailureShare is how many installations fail, from 0 to 1: a step of their InstallPlan fails, each time that it is
	// tried.
	FailureShare float64
	// Bad are the names of bundles whose installation fails on every cluster.
	Bad []string
	// Existing are names of bundles that others have installed before: each cluster has one of them; none: nothing.
	Existing []string
	// Latency is added to each request of an agent to the hub.
	Latency Delay
}

// Delay is a log-normal distribution of durations, as those of many machines that do the same work are.
type Delay struct {
	Median time.Duration
	// Spread is the standard deviation of the duration's logarithm: 0 is always the median; with 0.5 one of twenty
	// takes longer than 2.3 times the median.
	Spread float64
}

// Installation is what becomes of a bundle on a cluster.
type Installation struct {
	Cluster, Bundle           string
	Connect, Resolve, Install time.Duration
	Fails                     bool
}

// Of draws what becomes of a bundle on a cluster.
func (b Behaviour) Of(cluster, bundle string) Installation {
	random := b.source("installation", cluster, bundle)
	return Installation{
		Cluster: cluster, Bundle: bundle,
		Connect: b.Connect.draw(random), Resolve: b.Resolve.draw(random), Install: b.Install.draw(random),
		Fails: random.Float64() < b.FailureShare || slices.Contains(b.Bad, bundle),
	}
}

// existing draws what others have installed on a cluster; empty for nothing.
func (b Behaviour) existing(cluster string) string {
	if len(b.Existing) == 0 {
		return ""
	}
	return b.Existing[b.source("existing", cluster).IntN(len(b.Existing))]
}

// Trouble cuts clusters off from the hub.
type Trouble struct {
	// Share of the clusters that are cut off, from 0 to 1.
	Share float64
	// Down is how long a cluster is cut off, and Up how long it is then connected again, in turn. A zero Down cuts it
	// off for good.
	Up, Down Delay
}

// Outage is when a cluster is cut off, from the beginning of the trouble.
type Outage struct {
	From, Until time.Duration
}

// Hit returns which of the clusters a trouble hits, in their order: the share is exact but for rounding.
func (b Behaviour) Hit(t Trouble, clusters []string) []string {
	drawn := map[string]uint64{}
	for _, c := range clusters {
		drawn[c] = b.source("hit", c).Uint64()
	}
	order := slices.SortedFunc(slices.Values(clusters),
		func(x, y string) int { return cmp.Compare(drawn[x], drawn[y]) })
	for _, spared := range order[int(math.Round(t.Share*float64(len(order)))):] {
		delete(drawn, spared)
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c string) bool {
		_, hit := drawn[c]
		return !hit
	})
}

// Outages returns those of a cluster that trouble hits, up to a time. The first begins within the first Up, so that
// clusters do not fall silent together. An outage for good ends with the time.
func (b Behaviour) Outages(t Trouble, cluster string, until time.Duration) []Outage {
	if t.Down.Median == 0 {
		return []Outage{{0, until}}
	}
	random := b.source("outages", cluster)
	var all []Outage
	for at := time.Duration(random.Float64() * float64(t.Up.Median)); at < until; {
		end := at + t.Down.draw(random)
		all = append(all, Outage{at, min(end, until)})
		at = end + max(t.Up.draw(random), time.Millisecond)
	}
	return all
}

// source is a stream of random numbers that depends on the seed and the words alone.
func (b Behaviour) source(words ...string) *rand.Rand {
	hash := fnv.New64a()
	for _, word := range words {
		_, _ = hash.Write(append([]byte(word), 0))
	}
	return rand.New(rand.NewPCG(b.Seed, hash.Sum64()))
}

func (d Delay) draw(random *rand.Rand) time.Duration {
	return time.Duration(float64(d.Median) * math.Exp(d.Spread*random.NormFloat64()))
}
