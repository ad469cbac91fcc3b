// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// outcome is what a measurement says.
type outcome int

const (
	// undecided says nothing: data is missing, or is no number.
	undecided outcome = iota
	good
	bad
)

// finding is a measurement and what follows from it.
type finding struct {
	outcome
	evidence string
	// final says that the rest of the window cannot change it.
	final bool
	v1alpha1.GateMeasurement
}

// verdict is given when the window is over; a bad one earlier, if it is final.
func (f finding) verdict(at, end time.Time) v1alpha1.GateVerdict {
	over := !at.Before(end)
	switch {
	case f.outcome == good && over:
		return v1alpha1.GatePassed
	case f.outcome == bad && (over || f.final):
		return v1alpha1.GateFailed
	}
	return v1alpha1.GateWaiting
}

func (f finding) text(at, end time.Time) string {
	if f.verdict(at, end) == v1alpha1.GateWaiting && at.Before(end) {
		return f.evidence + "; measured until " + phrase.Time(end)
	}
	return f.evidence
}

// find says what an answer means for a gate. was is the measurement before; nil if
// there was none in this soak.
func (p *pass) find(s *waveState, g v1alpha1.Gate, a Answer, was *v1alpha1.GateMeasurement) finding {
	f := finding{GateMeasurement: v1alpha1.GateMeasurement{At: metav1.Time{Time: a.At.UTC()},
		Window: metav1.Duration{Duration: a.At.Sub(a.Since)}}}
	q := p.queryOf(s.Name, a.At.Sub(a.Since), abbreviate(a.Clusters))
	e := evidence{Answer: a}
	switch {
	case g.SLO != nil:
		e.judgeSLO(&f, g.SLO, q)
	case g.Baseline != nil:
		e.judgeBaseline(&f, g.Baseline, q)
	default:
		e.judgePromQL(&f, g.PromQL, was)
		var err error
		if f.Query, err = p.promQL(s, g, q); err != nil {
			f.undecided("%v", err)
		}
	}
	f.Query = phrase.Truncate(f.Query, maxQuery)
	return f
}

// maxQuery is the API's limit.
const maxQuery = 2560

// evidence is an answer that is being judged.
type evidence struct{ Answer }

var (
	errNoAnswer = errors.New("there is no result")
	errNotANum  = errors.New("the result is not a number")
)

// undecided says why there is no verdict.
func (f *finding) undecided(format string, args ...any) {
	f.outcome, f.final, f.evidence = undecided, false, fmt.Sprintf(format, args...)
}

// numbers reads the results of a query by SLI. Anything but one finite number for
// each is an error.
func (e evidence) numbers(name string) (map[string]float64, error) {
	samples, err := e.vector(name)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, s := range samples {
		sli := s.Labels[series.SLI]
		if _, twice := out[sli]; twice {
			return nil, fmt.Errorf("query %q has several results for SLI %q", name, sli)
		}
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			return nil, fmt.Errorf("query %q for SLI %q: %w: %v", name, sli, errNotANum, s.Value)
		}
		out[sli] = s.Value
	}
	return out, nil
}

func (e evidence) vector(name string) ([]Sample, error) {
	if e.Failure != "" {
		return nil, errors.New(e.Failure)
	}
	result, ok := e.Results[name]
	if !ok {
		return nil, fmt.Errorf("query %q: %w", name, errNoAnswer)
	}
	if result.Type != "vector" {
		return nil, fmt.Errorf("query %q: the result is a %s and not a vector", name, cmp.Or(result.Type, "nothing"))
	}
	return result.Samples, nil
}

// shares are bad slices and all slices by SLI, weighed, and those of each cluster.
type shares struct {
	guards, bad, samples map[string]float64
	clusters             map[string]byCluster
}

func (e evidence) shares(bad, all string) (shares, error) {
	guards, err := e.numbers(queryGuards)
	if err != nil {
		return shares{}, err
	}
	s := shares{guards: guards, bad: map[string]float64{}, samples: map[string]float64{}}
	if s.clusters, err = e.measurements(bad, all); err != nil {
		return shares{}, err
	}
	for sli, clusters := range s.clusters {
		sum := clusters.weighed()
		s.bad[sli], s.samples[sli] = sum.bad, sum.samples
	}
	return s, nil
}

// impossible says which clusters measured what cannot be; empty for none.
func (s shares) impossible() string {
	var all []string
	for _, sli := range slices.Sorted(maps.Keys(s.clusters)) {
		all = append(all, s.clusters[sli].impossible(sli)...)
	}
	if len(all) == 0 {
		return ""
	}
	return "measurements that cannot be: " + phrase.First(all, maxNamed)
}

// defaultGuard is how many slices are bad at most by chance, where no guard is
// recorded.
const defaultGuard = 2.5

func (s shares) isAboveGuard(sli string) bool {
	guard, ok := s.guards[sli]
	if !ok {
		guard = defaultGuard
	}
	return s.clusters[sli].total().bad > guard
}

// judgeSLO fails if the burn rate of an SLI is too high. What is bad is bad even
// where data of something else is missing.
func (e evidence) judgeSLO(f *finding, g *v1alpha1.SLOGate, q query) {
	f.Threshold = g.MaxBurnRate
	most, err := strconv.ParseFloat(g.MaxBurnRate, 64)
	if err != nil {
		f.undecided("maxBurnRate %q is not a number", g.MaxBurnRate)
		return
	}
	objectives, err := e.numbers(queryObjectives)
	if err != nil {
		f.undecided("no measurement: %v", err)
		return
	}
	s, err := e.shares(queryBad, querySamples)
	if err != nil {
		f.undecided("no measurement: %v", err)
		return
	}
	worst := worstBurn(objectives, s, most)
	if worst.sli != "" {
		f.Query, f.Value = q.burn(worst.sli), format(worst.rate)
		f.Samples = int64(math.Round(s.clusters[worst.sli].total().samples))
		f.outcome, f.evidence = good, worst.text(s, g.MaxBurnRate, f.Window.Duration)
		if s.isAboveGuard(worst.sli) && worst.excess > 1 {
			f.outcome, f.final = bad, s.isFinal(worst, f.Window.Duration, GateWindow(v1alpha1.Gate{SLO: g}))
			return
		}
	}
	switch gap := e.gapOfSLO(objectives, s, g.Objectives); {
	case gap != "":
		f.undecided("%s", gap)
	case worst.sli == "":
		f.undecided("there are no slices of any SLI with an objective (series %s)", series.SLIBad)
	}
}

// burn is a burn rate, and how much of what is permitted that is.
type burn struct {
	sli          string
	rate, excess float64
}

// maxShare is the share of bad slices that fails any objective, as the rules have
// it: a low objective fails at least on a total outage.
const maxShare = 0.9

// worstBurn prefers what is above its guard.
func worstBurn(objectives map[string]float64, s shares, most float64) burn {
	var worst burn
	for _, sli := range slices.Sorted(maps.Keys(objectives)) {
		budget := 1 - objectives[sli]
		if s.samples[sli] <= 0 || budget <= 0 {
			continue
		}
		share := s.bad[sli] / s.samples[sli]
		b := burn{sli, share / budget, share / min(most*budget, maxShare)}
		isAbove, wasAbove := s.isAboveGuard(sli), worst.sli != "" && s.isAboveGuard(worst.sli)
		if worst.sli == "" || isAbove && !wasAbove || isAbove == wasAbove && b.excess > worst.excess {
			worst = b
		}
	}
	return worst
}

// isFinal tells whether the burn rate stays too high if nothing is bad any more
// until the window is over.
func (s shares) isFinal(b burn, elapsed, window time.Duration) bool {
	return elapsed >= window || b.excess*elapsed.Seconds()/window.Seconds() > 1
}

func (b burn) text(s shares, most string, window time.Duration) string {
	return fmt.Sprintf("%s: burn rate %s within %s, at most %s passes; %s of %s %smeasurements are bad", b.sli,
		format(b.rate), window, most, format(s.bad[b.sli]), format(s.samples[b.sli]), s.howCounted(b.sli)) +
		s.clusters[b.sli].worst()
}

// howCounted says that numbers are not those that clusters reported.
func (s shares) howCounted(sli string) string {
	if s.samples[sli] == s.clusters[sli].total().samples {
		return ""
	}
	return "weighed "
}

// gapOfSLO says what is missing for a verdict; empty if nothing is.
func (e evidence) gapOfSLO(objectives map[string]float64, s shares, wanted []string) string {
	if len(objectives) == 0 {
		return "no objective is recorded (series " + series.SLOObjective + "): check that the rules of the " +
			"operator's " +
			"objectives are loaded"
	}
	for _, sli := range wanted {
		if _, ok := objectives[sli]; !ok {
			return fmt.Sprintf("there is no objective for SLI %s (series %s)", sli, series.SLOObjective)
		}
		if s.samples[sli] <= 0 {
			return cmp.Or(s.impossible(), fmt.Sprintf("there are no slices of SLI %s (series %s)", sli, series.SLIBad))
		}
	}
	return cmp.Or(s.impossible(), e.gap())
}

// gap names the clusters and SLIs that were not measured; empty if all were.
func (e evidence) gap() string {
	covered, err := e.vector(queryCovered)
	if err != nil {
		return fmt.Sprintf("no measurement: %v", err)
	}
	has := map[string]bool{}
	for _, s := range covered {
		has[s.Labels[series.Cluster]] = true
	}
	lost := slices.DeleteFunc(slices.Clone(e.Clusters), func(c string) bool { return has[c] })
	if len(lost) > 0 {
		return fmt.Sprintf("too few measurements of the new release from %s (%s): series %s or %s is missing or "+
			"has gaps",
			phrase.Count(len(lost), "cluster"), phrase.First(lost, maxNamed), series.SLIBad, series.OperatorInfo)
	}
	missing, err := e.vector(queryMissing)
	if err != nil {
		return fmt.Sprintf("no measurement: %v", err)
	}
	var names []string
	for _, s := range missing {
		names = append(names, s.Labels[series.SLI]+" on "+s.Labels[series.Cluster])
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("too few slices of %s: series %s is missing or has gaps", phrase.First(names, maxNamed),
		series.SLIBad)
}

// judgeBaseline compares two proportions: with x bad of n slices of the new release
// and y bad of m slices of the others, p = (x+y)/(n+m) and
//
//	z = (x/n - y/m) / sqrt(p (1-p) (1/n + 1/m))
//
// is normally distributed if both are the same (NIST/SEMATECH e-Handbook of
// Statistical Methods, 7.3.3). The new release fails if z is above the quantile of
// the confidence, one-sided.
func (e evidence) judgeBaseline(f *finding, g *v1alpha1.BaselineGate, q query) {
	critical := quantile(float64(*g.Confidence) / 100)
	f.Threshold = format(critical)
	sli := fmt.Sprintf("%s=%q", series.SLI, g.SLI)
	f.Query = fmt.Sprintf("%s / %s", byClusterAndSLI(q.bad(sli, q.inWave())),
		byClusterAndSLI(q.samples(sli, q.inWave())))
	s, err := e.shares(queryBad, querySamples)
	if err != nil {
		f.undecided("no measurement: %v", err)
		return
	}
	others, err := e.shares(queryOldBad, queryOldSamples)
	if err != nil {
		f.undecided("no measurement: %v", err)
		return
	}
	x, n, y, m := s.bad[g.SLI], s.samples[g.SLI], others.bad[g.SLI], others.samples[g.SLI]
	f.Samples, f.BaselineSamples = int64(math.Round(n)), int64(math.Round(m))
	least := float64(*g.MinSamples)
	switch {
	case n < least:
		f.undecided("%s", cmp.Or(s.impossible(), tooFew(g, f.Samples, "the new release")))
		return
	case m < least:
		f.undecided("%s", cmp.Or(others.impossible(), tooFew(g, f.BaselineSamples, "clusters on other releases")))
		return
	}
	z := zScore(x, n, y, m)
	f.Value = format(z)
	f.evidence = fmt.Sprintf("%s: %s %% of %s samples are bad on the new release, %s %% of %s on others; z-score "+
		"%s, at "+
		"most %s passes (%d %% confidence)", g.SLI, format(100*x/n), format(n), format(100*y/m), format(m), f.Value,
		f.Threshold, *g.Confidence) + s.clusters[g.SLI].worst()
	f.outcome = good
	if z > critical && s.isAboveGuard(g.SLI) {
		f.outcome = bad
		return
	}
	if gap := cmp.Or(s.impossible(), others.impossible(), e.gap()); gap != "" {
		f.undecided("%s", gap)
	}
}

func tooFew(g *v1alpha1.BaselineGate, n int64, of string) string {
	return fmt.Sprintf("%s: %s of %s, at least %d are needed (series %s)", g.SLI, phrase.Count(n, "sample"), of,
		*g.MinSamples, series.SLIBad)
}

// zScore is 0 where nothing, or everything, is bad on both sides.
func zScore(x, n, y, m float64) float64 {
	p := (x + y) / (n + m)
	deviation := math.Sqrt(p * (1 - p) * (1/n + 1/m))
	if deviation == 0 || math.IsNaN(deviation) {
		return 0
	}
	return (x/n - y/m) / deviation
}

// quantile of the standard normal distribution.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// judgePromQL compares the one number that a query must come to.
func (e evidence) judgePromQL(f *finding, g *v1alpha1.PromQLGate, was *v1alpha1.GateMeasurement) {
	f.Threshold = string(g.Operator) + " " + g.Threshold
	if was != nil {
		f.Failures = was.Failures
	}
	threshold, err := strconv.ParseFloat(g.Threshold, 64)
	if err != nil {
		f.undecided("threshold %q is not a number", g.Threshold)
		return
	}
	value, err := e.single()
	if err != nil {
		f.undecided("no measurement: %v", err)
		return
	}
	f.Value, f.Samples = format(value), 1
	f.evidence = fmt.Sprintf("the query returned %s, and passes if it is %s", f.Value, f.Threshold)
	if compare(value, g.Operator, threshold) {
		f.outcome, f.Failures = good, 0
		return
	}
	if f.At.Time.Before(e.Since.Add(GateWindow(v1alpha1.Gate{PromQL: g}))) {
		f.evidence += ", which it is not so far"
		return // it is not counted before the window is over
	}
	if was == nil || f.At.After(was.At.Time) {
		f.Failures++
	}
	f.evidence += fmt.Sprintf("; missed %s in a row (failureLimit %d)", phrase.Count(f.Failures, "time"),
		*g.FailureLimit)
	if f.Failures > *g.FailureLimit {
		f.outcome = bad
	}
}

// single is the result of a query that is one finite number.
func (e evidence) single() (float64, error) {
	if e.Failure != "" {
		return 0, errors.New(e.Failure)
	}
	result := e.Results[queryValue]
	switch {
	case result.Type != "scalar" && result.Type != "vector":
		return 0, fmt.Errorf("%w: it is a %s", errNotANum, cmp.Or(result.Type, "missing result"))
	case len(result.Samples) == 0:
		return 0, fmt.Errorf("%w: the query matches no series", errNoAnswer)
	case len(result.Samples) > 1:
		return 0, errors.New("the query returned several series and not one: aggregate them, as with sum() or max()")
	}
	value := result.Samples[0].Value
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%w: %v", errNotANum, value)
	}
	return value, nil
}

func compare(value float64, operator v1alpha1.ComparisonOperator, threshold float64) bool {
	switch operator {
	case v1alpha1.LessThan:
		return value < threshold
	case v1alpha1.LessOrEqual:
		return value <= threshold
	case v1alpha1.GreaterThan:
		return value > threshold
	case v1alpha1.GreaterOrEqual:
		return value >= threshold
	}
	return false
}

// format writes a number for people, with at least four significant digits.
func format(v float64) string {
	const large, huge = 1000, 1e15
	if abs := math.Abs(v); abs >= large && abs < huge {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
