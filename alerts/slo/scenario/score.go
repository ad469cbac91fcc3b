// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"
)

// Score is how a rule set did in a scenario.
type Score struct {
	Scenario string `json:"scenario"`
	// Failures call for a page each; Found of them got one.
	Failures int `json:"failures"`
	Found    int `json:"found"`
	// Pages is how often a person was paged. The first page of a failure is justified,
	// and no other.
	Pages int `json:"pages"`
	// Lost is how many of the first pages resolved before their failure ended.
	Lost int `json:"lost"`
	// Detection has the minutes from the beginning of each failure that was found to
	// its first page, and Reset those from its end to the end of the last page about
	// it, if the scenario does not end before.
	Detection []int `json:"detection,omitempty"`
	Reset     []int `json:"reset,omitempty"`
}

// Recall is the share of failures that got a page, and 1 if there was none.
func (s Score) Recall() float64 { return share(s.Found, s.Failures) }

// Precision is the share of pages that are justified, and 1 if there was none.
func (s Score) Precision() float64 { return share(s.Found, s.Pages) }

func share(part, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(part) / float64(of)
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

// Median of some minutes. It is false if there are none.
func Median(minutes []int) (float64, bool) {
	if len(minutes) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(minutes))
	n := len(sorted)
	return float64(sorted[(n-1)/2]+sorted[n/2]) / 2, true
}

// late is how many minutes after the end of a failure a page about it may begin.
const late = 5

// Score compares the pages of a scenario with its failures. A page is about a
// failure if it names no other cluster and no other SLI. An SLI is named by the
// label sli, or by sloth_slo. A page that fits several failures is about the first
// one that has none.
func (s Scenario) Score(pages []Page) Score {
	out := Score{Scenario: s.Name, Failures: len(s.Failures), Pages: len(pages)}
	first := make([]*Page, len(s.Failures))
	end := make([]int, len(s.Failures))
	for i := range pages {
		about := s.about(pages[i], first)
		if about < 0 {
			continue
		}
		if first[about] == nil {
			first[about] = &pages[i]
		}
		end[about] = max(end[about], pages[i].When.To)
	}
	for i, f := range s.Failures {
		if first[i] == nil {
			continue
		}
		out.Found++
		out.Detection = append(out.Detection, first[i].When.From-f.When.From)
		if first[i].When.To < f.When.To {
			out.Lost++
		}
		if f.When.To < s.Minutes && end[i] < s.Minutes {
			out.Reset = append(out.Reset, max(0, end[i]-f.When.To))
		}
	}
	return out
}

// about is the index of the failure that a page is about, or -1.
func (s Scenario) about(page Page, first []*Page) int {
	found := -1
	for i, f := range s.Failures {
		if !f.fits(page) {
			continue
		}
		if first[i] == nil {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

func (f Failure) fits(page Page) bool {
	isOther := func(name, value string) bool {
		label := page.Labels[name]
		return label != "" && value != "" && label != value
	}
	return page.When.From >= f.When.From && page.When.From < f.When.To+late &&
		!isOther("cluster", f.Cluster) && !isOther("sli", f.SLI) && !isOther("sloth_slo", f.SLI)
}
