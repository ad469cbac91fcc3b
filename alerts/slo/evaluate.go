// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Slice is what is known of an operator at one evaluation, or what one scrape said.
type Slice byte

// What a slice can be. A scrape is never Confirmed.
const (
	Good Slice = iota
	Bad
	Missing
	// Confirmed is bad, by the two newest scrapes.
	Confirmed
)

func (s Slice) isBad() bool { return s == Bad || s == Confirmed }

func (s Slice) isConfirmed() bool { return s == Confirmed }

// Slices are what is known at each evaluation if there are as many scrapes between two of
// them, the last one right before. It is for SLIs that look at gauges of the agent.
func Slices(scrapes []Slice, each int) []Slice {
	out := make([]Slice, len(scrapes)/each)
	for i := range out {
		newest := (i+1)*each - 1
		out[i] = scrapes[newest]
		if scrapes[newest] == Bad && scrapeBeforeThat(scrapes[:newest], each) == Bad {
			out[i] = Confirmed
		}
	}
	return out
}

// scrapeBeforeThat is the newest of some scrapes, if it is found within twoScrapes.
func scrapeBeforeThat(scrapes []Slice, each int) Slice {
	for back := 1; back <= len(scrapes) && back < each*int(twoScrapes/Step); back++ {
		if s := scrapes[len(scrapes)-back]; s != Missing {
			return s
		}
	}
	return Missing
}

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
	burns, recorded := j.burns(timeline)
	out := make([]Verdict, len(timeline))
	const never = math.MinInt32
	paged, begins := never, []int{}
	for i := range out {
		if burns[series.Page][i] {
			paged = i
		}
		out[i].Page = paged == i || j.holds(recorded[:i], begins)
		out[i].Ticket = burns[series.Ticket][i] && i-paged >= int(pageMemory/Step)
		if recorded[i] && (i == 0 || !recorded[i-1]) {
			begins = append(begins, i)
		}
	}
	return out
}

// burns says after which slices the alerts of each severity see a burn rate, and after which one
// is recorded for a page.
func (j Judge) burns(timeline []Slice) (seen map[string][]bool, recorded []bool) {
	seen = map[string][]bool{series.Page: make([]bool, len(timeline)), series.Ticket: make([]bool, len(timeline))}
	recorded = make([]bool, len(timeline))
	for _, t := range Tiers() {
		// Alerts are evaluated with the fastest tier, and see what another group recorded before that.
		later := 1
		if t == fastest() {
			later = 0
		}
		for i, above := range j.tier(t, timeline) {
			recorded[i] = recorded[i] || above && t.Severity == series.Page
			if i+later < len(timeline) {
				seen[t.Severity][i+later] = seen[t.Severity][i+later] || above
			}
		}
	}
	return seen, recorded
}

// holds tells whether a page goes on after its burn rate: that was recorded lately, and began
// twice.
func (Judge) holds(recorded []bool, begins []int) bool {
	now := len(recorded)
	if len(begins) < leastBegins || begins[len(begins)-leastBegins] <= now-int(recurs/Step) {
		return false
	}
	return slices.Contains(recorded[max(0, now-int(recurringHold/Step)+1):], true)
}

// tier says after which of its slices one tier alerts.
func (j Judge) tier(t Tier, timeline []Slice) []bool {
	bad, confirmed := prefixSums(timeline, Slice.isBad), prefixSums(timeline, Slice.isConfirmed)
	threshold := t.Threshold(j.Target, j.Period)
	long, short := int(t.Long/t.Slice), int(t.Short/t.Slice)
	out := make([]bool, len(timeline))
	for i := range out {
		inLong := bad[i+1] - bad[max(0, i+1-long)]
		inShort := bad[i+1] - bad[max(0, i+1-short)]
		scrapes := inLong + confirmed[i+1] - confirmed[max(0, i+1-long)]
		enough := inLong >= j.Guard && (!t.looksAtScrapes() || scrapes >= guardScrapes(j.Guard)) ||
			t == fastest() && confirmed[i+1] > confirmed[max(0, i+1-short)]
		out[i] = enough && float64(inLong)/float64(long) > threshold && float64(inShort)/float64(short) > threshold
	}
	return out
}

// prefixSums counts the slices of a kind before each one, and at last all of them.
func prefixSums(timeline []Slice, is func(Slice) bool) []int {
	out := make([]int, len(timeline)+1)
	for i, s := range timeline {
		out[i+1] = out[i]
		if is(s) {
			out[i+1]++
		}
	}
	return out
}
