// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Slice is what is known of an operator at one evaluation.
type Slice byte

// What a slice can be.
const (
	Good Slice = iota
	Bad
	Missing
)

// Judge does in Go what the rules do in PromQL, for one operator, cluster and
// SLI that is judged by the slice. Simulations run on it, and the generated
// tests of the rules expect what it says: each checks the other.
type Judge struct {
	Target PPM
	Period time.Duration
	// Guard is how many slices of the long window have to be bad at least.
	Guard int
}

// Verdict is what fires after one slice. Page and ticket never do at once.
type Verdict struct{ Page, Ticket bool }

// NewJudge judges an objective as the rules do, guard included.
func NewJudge(o Objective) Judge { return Judge{o.Target, o.period(), Guard} }

// Judge returns the verdict after each slice. What was before the first slice was
// good, and no release or cluster is to blame.
func (j Judge) Judge(timeline []Slice) []Verdict {
	bad := prefixSums(timeline)
	burns := map[string][]bool{series.Page: make([]bool, len(timeline)), series.Ticket: make([]bool, len(timeline))}
	for _, t := range Tiers() {
		// Alerts are evaluated with the fastest tier, and see what another group recorded before that.
		later := 1
		if t == fastest() {
			later = 0
		}
		for i, above := range j.tier(t, bad)[:max(0, len(timeline)-later)] {
			burns[t.Severity][i+later] = burns[t.Severity][i+later] || above
		}
	}
	out := make([]Verdict, len(timeline))
	const never = math.MinInt32
	paged := never
	for i := range out {
		if burns[series.Page][i] {
			paged = i
		}
		out[i].Page = i-paged <= int(keepFiring/Step)
		out[i].Ticket = burns[series.Ticket][i] && i-paged >= int(pageMemory/Step)
	}
	return out
}

// tier says after which of its slices one tier alerts.
func (j Judge) tier(t Tier, bad []int) []bool {
	threshold := t.Threshold(j.Target, j.Period)
	long, short := int(t.Long/t.Slice), int(t.Short/t.Slice)
	out := make([]bool, len(bad)-1)
	for i := range out {
		inLong := bad[i+1] - bad[max(0, i+1-long)]
		inShort := bad[i+1] - bad[max(0, i+1-short)]
		out[i] = inLong >= j.Guard && float64(inLong)/float64(long) > threshold &&
			float64(inShort)/float64(short) > threshold
	}
	return out
}

// prefixSums counts the bad slices before each one, and at last all of them.
func prefixSums(timeline []Slice) []int {
	out := make([]int, len(timeline)+1)
	for i, s := range timeline {
		out[i+1] = out[i]
		if s == Bad {
			out[i+1]++
		}
	}
	return out
}
