// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"
)

// Score is the result of a rule set in a scenario.
type Score struct {
	Scenario string `json:"scenario"`
	// Failures is the number of failures. Each failure needs a page. Found is how many of them got a page.
	Failures int `json:"failures"`
	Found    int `json:"found"`
	// Pages is the number of pages. The first page of a failure is justified, and further pages are not.
	Pages int `json:"pages"`
	// Lost is how many of the first pages resolved before their failure ended.
	Lost int `json:"lost"`
	// Detection has the minutes from the start of each detected failure to its first page. Reset has the
	// minutes from the end of the failure to the end of its last page, if the scenario does not end earlier.
	Detection []int `json:"detection,omitempty"`
	Reset     []int `json:"reset,omitempty"`
}

// Recall returns the share of failures that got a page, or 1 if there were no failures.
func (s Score) Recall() float64 { return computeShare(s.Found, s.Failures) }

// Precision returns the share of pages that are justified, or 1 if there were no pages.
func (s Score) Precision() float64 { return computeShare(s.Found, s.Pages) }

// computeShare returns part / total, or 1 if total is 0.
func computeShare(part, total int) float64 {
	if total == 0 {
		return 1
	}
	return float64(part) / float64(total)
}

// Sum adds up scores.
func Sum(scores []Score) Score {
	out := Score{Scenario: "all"}
	for _, s := range scores {
		out.Failures += s.Failures
		out.Found += s.Found
		out.Pages += s.Pages
		out.Lost += s.Lost
		out.Detection = append(out.Detection, s.Detection...)
		out.Reset = append(out.Reset, s.Reset...)
	}
	return out
}

// Median returns the median of minutes. It returns false if there are none.
func Median(minutes []int) (float64, bool) {
	if len(minutes) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(minutes))
	n := len(sorted)
	return float64(sorted[(n-1)/2]+sorted[n/2]) / 2, true
}

// lateMinutes is how many minutes after the end of a failure a page about it may begin.
const lateMinutes = 5

// Score compares the pages of a scenario with its failures. A page belongs to a failure if it begins during the
// failure, or up to lateMinutes after it, and names no other cluster or SLI. The SLI is in the label sli or
// sloth_slo. A page that belongs to several failures counts for the first failure without a page. The
// result counts a failure as found if any page belongs to it. Other pages only increase Score.Pages.
func (s Scenario) Score(pages []Page) Score {
	out := Score{Scenario: s.Name, Failures: len(s.Failures), Pages: len(pages)}
	firstPages := make([]*Page, len(s.Failures)) // nil: no page belongs to the failure
	lastEnds := make([]int, len(s.Failures))     // the latest end of a page of the failure
	for i := range pages {
		failure := s.findFailure(pages[i], firstPages)
		if failure < 0 {
			continue
		}
		if firstPages[failure] == nil {
			firstPages[failure] = &pages[i]
		}
		lastEnds[failure] = max(lastEnds[failure], pages[i].When.To)
	}
	for i, f := range s.Failures {
		if firstPages[i] == nil {
			continue
		}
		out.Found++
		out.Detection = append(out.Detection, firstPages[i].When.From-f.When.From)
		if firstPages[i].When.To < f.When.To { // it resolved before the failure ended
			out.Lost++
		}
		// If the failure or its last page continues until the end of the scenario, the reset time is unknown.
		if f.When.To < s.Minutes && lastEnds[i] < s.Minutes {
			out.Reset = append(out.Reset, max(0, lastEnds[i]-f.When.To))
		}
	}
	return out
}

// findFailure returns the index of the failure that a page
// belongs to, or -1. first are the first pages of the failures.
func (s Scenario) findFailure(page Page, firstPages []*Page) int {
	found := -1
	for i, f := range s.Failures {
		if !f.isAbout(page) {
			continue
		}
		if firstPages[i] == nil {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

// isAbout reports whether a page began during the failure, or up
// to lateMinutes after it, and names no other cluster or SLI.
func (f Failure) isAbout(page Page) bool {
	isOther := func(name, value string) bool {
		label := page.Labels[name]
		return label != "" && value != "" && label != value
	}
	return page.When.From >= f.When.From && page.When.From < f.When.To+lateMinutes &&
		!isOther("cluster", f.Cluster) && !isOther("sli", f.SLI) && !isOther("sloth_slo", f.SLI)
}
