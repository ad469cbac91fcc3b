// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Slice is the state of an operator at one evaluation, or the result of one scrape.
type Slice byte

// The values of a Slice. A scrape is never Confirmed.
const (
	Good Slice = iota
	Bad
	Missing
	// Confirmed is bad at the two newest scrapes.
	Confirmed
)

func (s Slice) isBad() bool { return s == Bad || s == Confirmed }

func (s Slice) isConfirmed() bool { return s == Confirmed }

// Slices returns the slices at each evaluation, for perSlice scrapes between two evaluations; the last scrape
// is right before the evaluation. A slice has the state of its last scrape, or is Confirmed if the previous
// scrape was bad too. It is for SLIs that read gauges of the agent.
func Slices(scrapes []Slice, perSlice int) []Slice {
	out := make([]Slice, len(scrapes)/perSlice)
	for i := range out {
		newest := (i+1)*perSlice - 1
		out[i] = scrapes[newest]
		if scrapes[newest] == Bad && findPreviousScrape(scrapes[:newest], perSlice) == Bad {
			out[i] = Confirmed
		}
	}
	return out
}

// findPreviousScrape returns the newest scrape that is not missing and not older than twoScrapes, or Missing.
func findPreviousScrape(scrapes []Slice, perSlice int) Slice {
	for back := 1; back <= len(scrapes) && back < perSlice*int(twoScrapes/Step); back++ {
		if s := scrapes[len(scrapes)-back]; s != Missing {
			return s
		}
	}
	return Missing
}

// Judge does in Go what the rules do in PromQL, for one operator, cluster and
// SLI that is judged by slices. Simulations use it, and the generated tests of
// the rules expect its verdicts, so that each implementation checks the other.
type Judge struct {
	Target PPM
	Period time.Duration
	// Guard is the minimum number of bad slices in the long window.
	Guard int
}

// Verdict contains the alerts that fire after one slice. Page and Ticket are never both true.
type Verdict struct{ Page, Ticket bool }

// NewJudge returns a Judge for an objective with the guard of the rules.
func NewJudge(o Objective) Judge { return Judge{Target: o.Target, Period: o.period(), Guard: Guard} }

// Judge returns the verdict after each slice. It assumes that all slices
// before the first one were good, and that no release or cluster is blamed.
func (j Judge) Judge(timeline []Slice) []Verdict {
	burns, recorded := j.computeBurns(timeline)
	out := make([]Verdict, len(timeline))
	const never = math.MinInt32
	paged, begins := never, []int{}
	for i := range out {
		if burns[series.Page][i] {
			paged = i
		}
		out[i].Page = paged == i || j.isHeld(recorded[:i], begins)
		out[i].Ticket = burns[series.Ticket][i] && i-paged >= int(pageMemory/Step)
		if recorded[i] && (i == 0 || !recorded[i-1]) {
			begins = append(begins, i)
		}
	}
	return out
}

// computeBurns returns after which slices the alerts of each severity read
// a burn rate, and after which slices a burn rate is recorded for a page.
func (j Judge) computeBurns(timeline []Slice) (burning map[string][]bool, recorded []bool) {
	burning = map[string][]bool{series.Page: make([]bool, len(timeline)), series.Ticket: make([]bool, len(timeline))}
	recorded = make([]bool, len(timeline))
	for _, t := range Tiers() {
		// Alerts are evaluated with the fastest tier, so they read the other tiers' values of the previous evaluation.
		delay := 1
		if t == pickFastestTier() {
			delay = 0
		}
		for i, above := range j.evaluateTier(t, timeline) {
			recorded[i] = recorded[i] || above && t.Severity == series.Page
			if i+delay < len(timeline) {
				burning[t.Severity][i+delay] = burning[t.Severity][i+delay] || above
			}
		}
	}
	return burning, recorded
}

// isHeld reports whether a page continues after its burn rate: the burn rate was recorded within recurringHold,
// and began at least minBegins times within recurrenceWindow. begins are the indexes of the slices at which it began.
func (Judge) isHeld(recorded []bool, begins []int) bool {
	now := len(recorded)
	if len(begins) < minBegins || begins[len(begins)-minBegins] <= now-int(recurrenceWindow/Step) {
		return false
	}
	return slices.Contains(recorded[max(0, now-int(recurringHold/Step)+1):], true)
}

// evaluateTier returns after which of its slices one tier alerts: the shares of bad slices in both windows are above
// the threshold, and enough slices are bad, or one is confirmed in the short window of the fastest tier.
func (j Judge) evaluateTier(t Tier, timeline []Slice) []bool {
	bad, confirmed := countBefore(timeline, Slice.isBad), countBefore(timeline, Slice.isConfirmed)
	threshold := t.Threshold(j.Target, j.Period)
	long, short := int(t.Long/t.Slice), int(t.Short/t.Slice)
	out := make([]bool, len(timeline))
	for i := range out {
		inLong := bad[i+1] - bad[max(0, i+1-long)]
		inShort := bad[i+1] - bad[max(0, i+1-short)]
		scrapes := inLong + confirmed[i+1] - confirmed[max(0, i+1-long)]
		hasGuard := inLong >= j.Guard && (!t.needsScrapes() || scrapes >= countGuardScrapes(j.Guard))
		hasConfirmed := t == pickFastestTier() && confirmed[i+1] > confirmed[max(0, i+1-short)]
		out[i] = (hasGuard || hasConfirmed) && float64(inLong)/float64(long) > threshold &&
			float64(inShort)/float64(short) > threshold
	}
	return out
}

// countBefore counts the matching slices before each slice. The last element counts all of them.
func countBefore(timeline []Slice, matches func(Slice) bool) []int {
	out := make([]int, len(timeline)+1)
	for i, s := range timeline {
		out[i+1] = out[i]
		if matches(s) {
			out[i+1]++
		}
	}
	return out
}
