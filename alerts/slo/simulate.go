// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math/rand/v2"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Simulation is what Simulate plays.
type Simulation struct {
	Objective Objective
	// Seed makes the same numbers again.
	Seed uint64
	// Runs is how many periods are played. Default: 200.
	Runs int
}

// Result is what came out.
type Result struct {
	Target  string `json:"target"`
	Period  string `json:"period"`
	Runs    int    `json:"runs"`
	Seed    uint64 `json:"seed"`
	Timings []Time `json:"timings"`
	// Noise is what independent failures do that use up half of the budget: no
	// page is called for. It and Incidents are those of slices of Step.
	Noise Noise `json:"noise"`
	// Incidents is how real ones were found.
	Incidents Incidents `json:"incidents"`
}

// Time compares one tier with its formulas, in a failure of an error ratio.
// Times are in minutes.
type Time struct {
	Tier     string `json:"tier"`
	Severity string `json:"severity"`
	// Ratio is the error ratio of the failure, and Factor the tier's burn rate.
	Ratio  float64 `json:"ratio"`
	Factor float64 `json:"factor"`
	// Formula is threshold / ratio · long window, and Detected what was seen in
	// the simulation; -1 if it is never.
	Formula  float64 `json:"formula"`
	Detected float64 `json:"detected"`
	// ResetFormula is short window · (1 - threshold / ratio), and Reset what was seen.
	ResetFormula float64 `json:"resetFormula"`
	Reset        float64 `json:"reset"`
}

// Noise counts false pages in a period, on average.
type Noise struct {
	Guarded   float64 `json:"guarded"`
	Unguarded float64 `json:"unguarded"`
}

// Incidents counts over all runs. An incident calls for a page if it takes more
// than 2 % of the budget within an hour, or 5 % within six, by its bad scrapes: whether
// the rules could have seen it does not matter.
type Incidents struct {
	Total int `json:"total"`
	// Severe call for a page; Paged of them got one.
	Severe int `json:"severe"`
	Paged  int `json:"paged"`
	// Pages is how many pages there were, and Justified how many of them came
	// with a severe incident.
	Pages     int `json:"pages"`
	Justified int `json:"justified"`
	// Recall is Paged / Severe, and Precision is Justified / Pages; 1 if there was none.
	Recall    float64 `json:"recall"`
	Precision float64 `json:"precision"`
}

const defaultRuns = 200

// scrapesOfSlice is how many scrapes there are in a slice: agents are scraped every 30 s.
const scrapesOfSlice = 2

// Simulate plays an objective's alerts against failures that are drawn from a
// seed: what they find, when, and what they make of noise.
func Simulate(s Simulation) (Result, error) {
	if err := checkObjective(Objective{SLI: "csv", Target: s.Objective.Target, Period: s.Objective.Period},
		nil); err != nil {
		return Result{}, err
	}
	if s.Runs <= 0 {
		s.Runs = defaultRuns
	}
	o := s.Objective
	out := Result{Target: o.Target.String(), Period: duration(o.period()), Runs: s.Runs, Seed: s.Seed}
	for _, ratio := range []float64{1, 0.1, 0.02} {
		for _, t := range append([]Tier{CriticalTier()}, Tiers()...) {
			out.Timings = append(out.Timings, timing(t, o, ratio))
		}
	}
	random := rand.New(rand.NewPCG(s.Seed, 0)) //nolint:gosec // a simulation has to be repeatable
	guarded := NewJudge(o)
	unguarded := guarded
	unguarded.Guard = 1
	length := int(o.period() / Step)
	for range s.Runs {
		noise := Slices(independent(random, scrapesOfSlice*length, o.Target.Budget().Ratio()/2), scrapesOfSlice)
		out.Noise.Guarded += float64(len(pages(guarded.Judge(noise))))
		out.Noise.Unguarded += float64(len(pages(unguarded.Judge(noise))))
		out.Incidents.play(random, guarded, length)
	}
	out.Noise.Guarded /= float64(s.Runs)
	out.Noise.Unguarded /= float64(s.Runs)
	out.Incidents.Recall = share(out.Incidents.Paged, out.Incidents.Severe)
	out.Incidents.Precision = share(out.Incidents.Justified, out.Incidents.Pages)
	return out, nil
}

func share(part, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(part) / float64(of)
}

// timing plays one lasting failure with evenly spread bad slices against a tier.
// The failure lasts as long as the tier's long window, and then ends.
func timing(t Tier, o Objective, ratio float64) Time {
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
		if int(float64(i+1)*ratio+1e-9) > int(float64(i)*ratio+1e-9) {
			timeline[i] = Bad
		}
	}
	for i, firing := range NewJudge(o).tier(t, Slices(timeline, 1)) {
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

// independent failures: each scrape is bad with the same probability.
func independent(random *rand.Rand, length int, probability float64) []Slice {
	out := make([]Slice, length)
	for i := range out {
		if random.Float64() < probability {
			out[i] = Bad
		}
	}
	return out
}

// span is a stretch of slices, from inclusive, to exclusive.
type span struct{ from, to int }

// pages are the stretches in which a page was open. Each is one call of the person
// on duty.
func pages(verdicts []Verdict) []span {
	var out []span
	for i, v := range verdicts {
		switch {
		case !v.Page:
		case i > 0 && verdicts[i-1].Page:
			out[len(out)-1].to = i + 1
		default:
			out = append(out, span{i, i + 1})
		}
	}
	return out
}

// play draws the incidents of one period on top of a tenth of the budget in
// noise, and counts what was found. Incidents begin and end with a scrape, last from one
// minute to eight hours, and are bad in a twentieth to all of their scrapes.
func (n *Incidents) play(random *rand.Rand, j Judge, length int) {
	scrapes := independent(random, scrapesOfSlice*length, j.Target.Budget().Ratio()/10)
	var all []span
	next := func() int { return day2scrapes/2 + random.IntN(4*day2scrapes) }
	for start := random.IntN(2 * day2scrapes); start < len(scrapes); start += next() {
		lasts := scrapesOfSlice << random.IntN(10)
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
		all = append(all, in)
	}
	var severe []span
	for _, in := range all {
		if j.severe(scrapes[in.from:in.to]) {
			severe = append(severe, span{in.from / scrapesOfSlice, (in.to-1)/scrapesOfSlice + 1})
		}
	}
	open := pages(j.Judge(Slices(scrapes, scrapesOfSlice)))
	n.Total += len(all)
	n.Severe += len(severe)
	n.Pages += len(open)
	for _, s := range severe {
		n.Paged += meets(s, open)
	}
	for _, p := range open {
		n.Justified += meets(p, severe)
	}
}

const day2scrapes = scrapesOfSlice * int(day/Step)

// severe is the definition of an incident that calls for a page, in terms of the budget that
// its bad scrapes take, and not of slices, burn rates or what the rules wait for.
func (j Judge) severe(incident []Slice) bool {
	budget := scrapesOfSlice * count(j.Period) * j.Target.Budget().Ratio()
	bad := prefixSums(incident, Slice.isBad)
	for _, t := range Tiers() {
		if t.Severity != series.Page {
			continue
		}
		window := scrapesOfSlice * int(t.Long/Step)
		for i := range incident {
			if spent := bad[i+1] - bad[max(0, i+1-window)]; float64(spent) > budget*t.Share.Ratio() {
				return true
			}
		}
	}
	return false
}

// meets is 1 if any of the spans overlaps.
func meets(s span, others []span) int {
	for _, o := range others {
		if s.from < o.to && o.from < s.to {
			return 1
		}
	}
	return 0
}
