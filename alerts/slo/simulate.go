// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math/rand/v2"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Simulation is the input of Simulate.
type Simulation struct {
	Objective Objective
	// Seed makes the random numbers repeatable.
	Seed uint64
	// Runs is the number of periods that are simulated. Default: 200.
	Runs int
}

// Result is the result of a simulation.
type Result struct {
	Target  string `json:"target"`
	Period  string `json:"period"`
	Runs    int    `json:"runs"`
	Seed    uint64 `json:"seed"`
	Timings []Time `json:"timings"`
	// Noise is the effect of independent failures that use up half of the budget
	// and need no page. Noise and Incidents are computed from slices of Step.
	Noise Noise `json:"noise"`
	// Incidents counts how real incidents were detected.
	Incidents Incidents `json:"incidents"`
}

// Time compares one tier with its formulas, in a failure with an error ratio. Times are in minutes.
type Time struct {
	Tier     string `json:"tier"`
	Severity string `json:"severity"`
	// Ratio is the error ratio of the failure, and Factor the tier's burn rate.
	Ratio  float64 `json:"ratio"`
	Factor float64 `json:"factor"`
	// Formula is threshold / ratio · long window, and Detected the
	// time in the simulation. Both are -1 if the tier never alerts.
	Formula  float64 `json:"formula"`
	Detected float64 `json:"detected"`
	// ResetFormula is short window · (1 - threshold / ratio), and Reset the time in the simulation.
	ResetFormula float64 `json:"resetFormula"`
	Reset        float64 `json:"reset"`
}

// Noise counts false pages in a period, on average.
type Noise struct {
	Guarded   float64 `json:"guarded"`
	Unguarded float64 `json:"unguarded"`
}

// Incidents are counts over all runs. An incident needs a page if its bad scrapes take more than 2 % of the
// budget within an hour, or 5 % within six hours. It does not matter whether the rules could detect it.
type Incidents struct {
	Total int `json:"total"`
	// Severe is the number of incidents that need a page. Paged is how many of them got a page.
	Severe int `json:"severe"`
	Paged  int `json:"paged"`
	// Pages is the number of pages, and Justified the number of pages during a severe incident.
	Pages     int `json:"pages"`
	Justified int `json:"justified"`
	// Recall is Paged / Severe, and Precision is Justified / Pages. Each is 1 if its divisor is 0.
	Recall    float64 `json:"recall"`
	Precision float64 `json:"precision"`
}

const defaultRuns = 200

// scrapesPerSlice is the number of scrapes in a slice: agents are scraped every 30 s.
const scrapesPerSlice = 2

// Simulate simulates an objective's alerts in random failures from a seed. The result has the detection and
// reset times of each tier, the average number of false pages from noise in a period, with and without the
// guard, and the incidents that were paged in all runs. It uses only the target and the period of the
// objective, and returns an error if the target or the period is invalid.
func Simulate(s Simulation) (Result, error) {
	// The SLI does not affect the simulation: csv is one that every operator has.
	if err := checkObjective(Objective{SLI: "csv", Target: s.Objective.Target, Period: s.Objective.Period},
		nil); err != nil {
		return Result{}, err
	}
	if s.Runs <= 0 {
		s.Runs = defaultRuns
	}
	o := s.Objective
	out := Result{Target: o.Target.String(), Period: formatDuration(o.period()), Runs: s.Runs, Seed: s.Seed}
	for _, ratio := range []float64{1, 0.1, 0.02} {
		for _, t := range append([]Tier{CriticalTier()}, Tiers()...) {
			out.Timings = append(out.Timings, measureTiming(t, o, ratio))
		}
	}
	random := rand.New(rand.NewPCG(s.Seed, 0)) //nolint:gosec // a simulation must be repeatable
	guarded := NewJudge(o)
	unguarded := guarded
	unguarded.Guard = 1
	length := int(o.period() / Step)
	for range s.Runs {
		// Half of the budget is noise that a healthy operator may have, so each of its pages is false.
		noise := Slices(drawIndependent(random, scrapesPerSlice*length, o.Target.Budget().Ratio()/2), scrapesPerSlice)
		out.Noise.Guarded += float64(len(listPages(guarded.Judge(noise))))
		out.Noise.Unguarded += float64(len(listPages(unguarded.Judge(noise))))
		out.Incidents.addPeriod(random, guarded, length)
	}
	out.Noise.Guarded /= float64(s.Runs)
	out.Noise.Unguarded /= float64(s.Runs)
	out.Incidents.Recall = computeShare(out.Incidents.Paged, out.Incidents.Severe)
	out.Incidents.Precision = computeShare(out.Incidents.Justified, out.Incidents.Pages)
	return out, nil
}

// computeShare returns part / of, or 1 if of is 0.
func computeShare(part, total int) float64 {
	if total == 0 {
		return 1
	}
	return float64(part) / float64(total)
}

// measureTiming simulates one long failure with evenly distributed bad slices for a tier. The failure lasts as
// long as the tier's long window, and then ends. All times are -1 if the tier never alerts at the error ratio.
func measureTiming(t Tier, o Objective, ratio float64) Time {
	threshold := t.Threshold(o.Target, o.period())
	out := Time{Tier: t.Name, Severity: t.Severity, Ratio: ratio, Factor: t.Factor(o.period()), Formula: -1,
		Detected: -1, ResetFormula: -1, Reset: -1}
	if _, ok := t.Detection(o.Target, o.period(), ratio); !ok {
		return out
	}
	out.Formula = threshold / ratio * t.Long.Minutes()
	out.ResetFormula = t.Short.Minutes() * (1 - threshold/ratio)
	failure := int(t.Long / t.Slice)
	timeline := make([]Slice, 2*failure)
	for i := range failure {
		// The slice is bad if the expected number of bad slices reaches the next integer; 1e-9 allows for rounding.
		if int(float64(i+1)*ratio+1e-9) > int(float64(i)*ratio+1e-9) {
			timeline[i] = Bad
		}
	}
	for i, firing := range NewJudge(o).evaluateTier(t, Slices(timeline, 1)) {
		if firing && out.Detected < 0 {
			out.Detected = float64(i+1) * t.Slice.Minutes()
		}
		if firing && i >= failure {
			out.Reset = float64(i+1-failure) * t.Slice.Minutes()
		}
	}
	if out.Detected >= 0 {
		out.Reset = max(out.Reset, 0)
	}
	return out
}

// drawIndependent returns scrapes. Each scrape is bad with the given probability.
func drawIndependent(random *rand.Rand, length int, probability float64) []Slice {
	out := make([]Slice, length)
	for i := range out {
		if random.Float64() < probability {
			out[i] = Bad
		}
	}
	return out
}

// span is a range of slices, from inclusive, to exclusive.
type span struct{ from, to int }

// listPages returns the ranges in which a page was open. Each range is one call of the person on duty.
func listPages(verdicts []Verdict) []span {
	var out []span
	for i, v := range verdicts {
		switch {
		case !v.Page: // no page is open
		case i > 0 && verdicts[i-1].Page:
			out[len(out)-1].to = i + 1
		default:
			out = append(out, span{i, i + 1})
		}
	}
	return out
}

// addPeriod simulates one period of length slices with random incidents and noise of a tenth of the budget, and
// adds its incidents and pages to the counts. Incidents begin and end with a scrape, last from one minute
// to more than eight hours, and are bad in a twentieth to all of their scrapes.
func (n *Incidents) addPeriod(random *rand.Rand, j Judge, length int) {
	scrapes := drawIndependent(random, scrapesPerSlice*length, j.Target.Budget().Ratio()/10)
	var incidents []span
	drawPause := func() int { return scrapesPerDay/2 + random.IntN(4*scrapesPerDay) }
	for start := random.IntN(2 * scrapesPerDay); start < len(scrapes); start += drawPause() {
		lasts := scrapesPerSlice << random.IntN(10)
		ratio := 1.0
		if random.IntN(2) == 0 {
			ratio = 0.05 + 0.95*random.Float64()
		}
		in := span{start, min(len(scrapes), start+lasts)}
		for i := in.from; i < in.to; i++ {
			if random.Float64() < ratio {
				scrapes[i] = Bad
			}
		}
		incidents = append(incidents, in)
	}
	var severe []span
	for _, in := range incidents {
		if j.isSevere(scrapes[in.from:in.to]) {
			severe = append(severe, span{in.from / scrapesPerSlice, (in.to-1)/scrapesPerSlice + 1})
		}
	}
	pages := listPages(j.Judge(Slices(scrapes, scrapesPerSlice)))
	n.Total += len(incidents)
	n.Severe += len(severe)
	n.Pages += len(pages)
	for _, s := range severe {
		n.Paged += countOverlap(s, pages)
	}
	for _, p := range pages {
		n.Justified += countOverlap(p, severe)
	}
}

const scrapesPerDay = scrapesPerSlice * int(day/Step)

// isSevere reports whether an incident needs a page, by the budget that its bad scrapes
// use. The definition does not depend on slices, burn rates or delays of the rules.
func (j Judge) isSevere(incident []Slice) bool {
	budget := scrapesPerSlice * countSlices(j.Period) * j.Target.Budget().Ratio()
	bad := countBefore(incident, Slice.isBad)
	for _, t := range Tiers() {
		if t.Severity != series.Page {
			continue
		}
		window := scrapesPerSlice * int(t.Long/Step)
		for i := range incident {
			if spent := bad[i+1] - bad[max(0, i+1-window)]; float64(spent) > budget*t.Share.Ratio() {
				return true
			}
		}
	}
	return false
}

// countOverlap returns 1 if the span overlaps any of the other spans, and otherwise 0.
func countOverlap(s span, otherSpans []span) int {
	for _, o := range otherSpans {
		if s.from < o.to && o.from < s.to {
			return 1
		}
	}
	return 0
}
