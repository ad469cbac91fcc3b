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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// outcome is the result of one measurement.
type outcome int

const (
	// undecided means that data is missing or not a number.
	undecided outcome = iota
	good
	bad
)

// finding is a measurement with its outcome.
type finding struct {
	outcome
	evidence string
	// final is true if the rest of the window cannot change the outcome.
	final bool
	v1alpha1.GateMeasurement
}

// decideVerdict returns the verdict at a time. A gate passes only after the end of the window. It fails earlier if the
// bad outcome is final.
func (f finding) decideVerdict(at, end time.Time) v1alpha1.GateVerdict {
	over := !at.Before(end)
	switch {
	case f.outcome == good && over:
		return v1alpha1.GatePassed
	case f.outcome == bad && (over || f.final):
		return v1alpha1.GateFailed
	}
	return v1alpha1.GateWaiting
}

// formatEvidence returns the evidence, with the end of the measurement if the window is not over.
func (f finding) formatEvidence(at, end time.Time) string {
	if f.decideVerdict(at, end) == v1alpha1.GateWaiting && at.Before(end) {
		return f.evidence + "; measured until " + phrase.Time(end)
	}
	return f.evidence
}

// judgeAnswer returns the finding on a gate for an answer about the gate's wave. previous is the previous measurement
// in this soak; nil if there is none.
func judgeAnswer(ro *v1alpha1.OperatorRollout, hash string, g v1alpha1.Gate, a Answer,
	previous *v1alpha1.GateMeasurement) finding {
	f := finding{GateMeasurement: v1alpha1.GateMeasurement{At: metav1.Time{Time: a.At.UTC()},
		Window: metav1.Duration{Duration: a.At.Sub(a.Since)}}}
	q := newQuery(ro, hash, a.Wave, a.At.Sub(a.Since), buildShortPattern(a.Clusters))
	e := evidence{Answer: a}
	switch {
	case g.SLO != nil:
		e.judgeSLO(&f, g.SLO, q)
	case g.Baseline != nil:
		e.judgeBaseline(&f, g.Baseline, q)
	default:
		e.judgePromQL(&f, g.PromQL, previous)
		// The number of an invalid query does not count.
		var err error
		if f.Query, err = buildPromQL(g, q); err != nil {
			f.setUndecided("%v", err)
		}
	}
	f.Query = phrase.Truncate(f.Query, maxQuery)
	return f
}

// maxQuery is the API's limit for the length of a query.
const maxQuery = 2560

// evidence reads the results of an answer and judges gates by them.
type evidence struct{ Answer }

var (
	errNoAnswer = errors.New("there is no result")
	errNotANum  = errors.New("the result is not a number")
)

// setUndecided records that there is no verdict, and the reason.
func (f *finding) setUndecided(format string, args ...any) {
	f.outcome, f.final, f.evidence = undecided, false, fmt.Sprintf(format, args...)
}

// readNumbers returns the results of a query by SLI. It is an error if an SLI has several results or a result that is
// not a finite number.
func (e evidence) readNumbers(name string) (map[string]float64, error) {
	samples, err := e.readVector(name)
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

// readVector returns the samples of a query. It is an error if the query failed or its result is not a vector.
func (e evidence) readVector(name string) ([]Sample, error) {
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

// shares are the bad slices and all slices, by SLI. bad and samples are weighed sums over all clusters.
type shares struct {
	guards, bad, samples map[string]float64
	clusters             map[string]clusterMeasurements
}

// readShares reads the shares from the results of the queries with these names: badQuery counts the bad slices, and
// allQuery counts all slices.
func (e evidence) readShares(badQuery, allQuery string) (shares, error) {
	guards, err := e.readNumbers(queryGuards)
	if err != nil {
		return shares{}, err
	}
	s := shares{guards: guards, bad: map[string]float64{}, samples: map[string]float64{}}
	if s.clusters, err = e.readMeasurements(badQuery, allQuery); err != nil {
		return shares{}, err
	}
	for sli, clusters := range s.clusters {
		sum := clusters.sumWeighed()
		s.bad[sli], s.samples[sli] = sum.bad, sum.samples
	}
	return s, nil
}

// explainImpossible lists the clusters that reported impossible measurements. It returns "" if there are none.
func (s shares) explainImpossible() string {
	var all []string
	for _, sli := range slices.Sorted(maps.Keys(s.clusters)) {
		all = append(all, s.clusters[sli].listImpossible(sli)...)
	}
	if len(all) == 0 {
		return ""
	}
	return "measurements that cannot be: " + phrase.First(all, maxNamed)
}

// defaultGuard is the number of slices that can be bad by chance, for SLIs without a recorded guard.
const defaultGuard = 2.5

// isAboveGuard reports whether more slices of the SLI are bad than can be bad by chance.
func (s shares) isAboveGuard(sli string) bool {
	guard, ok := s.guards[sli]
	if !ok {
		guard = defaultGuard
	}
	return s.clusters[sli].sumCounts().bad > guard
}

// judgeSLO sets the finding on an SLO gate. The outcome is bad if the burn rate of an SLI is too high, even if data of
// another SLI is missing. The outcome is undecided if data is missing, else good. q has the clusters for the query that
// the status shows.
func (e evidence) judgeSLO(f *finding, g *v1alpha1.SLOGate, q query) {
	f.Threshold = g.MaxBurnRate
	maxRate, err := strconv.ParseFloat(g.MaxBurnRate, 64)
	if err != nil {
		f.setUndecided("maxBurnRate %q is not a number", g.MaxBurnRate)
		return
	}
	objectives, err := e.readNumbers(queryObjectives)
	if err != nil {
		f.setUndecided("no measurement: %v", err)
		return
	}
	s, err := e.readShares(queryBad, querySamples)
	if err != nil {
		f.setUndecided("no measurement: %v", err)
		return
	}
	worst := findWorstBurn(objectives, s, maxRate)
	if worst.sli != "" {
		f.Query, f.Value = q.buildBurnQuery(worst.sli), formatNumber(worst.rate)
		f.Samples = int64(math.Round(s.clusters[worst.sli].sumCounts().samples))
		f.outcome, f.evidence = good, worst.explainBurn(s, g.MaxBurnRate, f.Window.Duration)
		if s.isAboveGuard(worst.sli) && worst.excess > 1 {
			f.outcome, f.final = bad, s.isFinal(worst, f.Window.Duration, GateWindow(v1alpha1.Gate{SLO: g}))
			return
		}
	}
	switch gap := e.explainSLOGap(objectives, s, g.Objectives); {
	case gap != "":
		f.setUndecided("%s", gap)
	case worst.sli == "":
		f.setUndecided("there are no slices of any SLI with an objective (series %s)", series.SLIBad)
	}
}

// burnRate is the burn rate of an SLI. excess is the rate as a multiple of the permitted rate.
type burnRate struct {
	sli          string
	rate, excess float64
}

// maxShare is the share of bad slices that fails any objective, as in the alert rules: a low objective fails at the
// latest in a total outage.
const maxShare = 0.9

// findWorstBurn returns the burn rate with the largest excess, from the SLIs above their guard if there are any. The
// field sli is empty if no SLI has samples. maxRate is the permitted burn rate.
func findWorstBurn(objectives map[string]float64, s shares, maxRate float64) burnRate {
	var worst burnRate
	for _, sli := range slices.Sorted(maps.Keys(objectives)) {
		budget := 1 - objectives[sli]
		if s.samples[sli] <= 0 || budget <= 0 {
			continue
		}
		share := s.bad[sli] / s.samples[sli]
		b := burnRate{sli: sli, rate: share / budget, excess: share / min(maxRate*budget, maxShare)}
		isAbove, wasAbove := s.isAboveGuard(sli), worst.sli != "" && s.isAboveGuard(worst.sli)
		isFirstAbove := isAbove && !wasAbove
		isWorse := isAbove == wasAbove && b.excess > worst.excess
		if worst.sli == "" || isFirstAbove || isWorse {
			worst = b
		}
	}
	return worst
}

// isFinal reports whether the burn rate stays too high even if no more slices are bad until the end of the window. A
// burn rate over the elapsed time falls in proportion to the time until the end.
func (s shares) isFinal(b burnRate, elapsed, window time.Duration) bool {
	return elapsed >= window || b.excess*elapsed.Seconds()/window.Seconds() > 1
}

// explainBurn describes the burn rate for the evidence of a gate.
func (b burnRate) explainBurn(s shares, maxRate string, window time.Duration) string {
	return fmt.Sprintf("%s: burn rate %s within %s, at most %s passes; %s of %s %smeasurements are bad", b.sli,
		formatNumber(b.rate), window, maxRate, formatNumber(s.bad[b.sli]), formatNumber(s.samples[b.sli]),
		s.describeCounting(b.sli)) +
		s.clusters[b.sli].explainWorst()
}

// describeCounting returns "weighed " if the sums are not the numbers that the clusters reported, else "".
func (s shares) describeCounting(sli string) string {
	if s.samples[sli] == s.clusters[sli].sumCounts().samples {
		return ""
	}
	return "weighed "
}

// explainSLOGap describes the data that is missing for a verdict. It returns "" if no data is missing.
func (e evidence) explainSLOGap(objectives map[string]float64, s shares, requested []string) string {
	if len(objectives) == 0 {
		return "no objective is recorded (series " + series.SLOObjective + "): check that the rules of the " +
			"operator's " +
			"objectives are loaded"
	}
	for _, sli := range requested {
		if _, ok := objectives[sli]; !ok {
			return fmt.Sprintf("there is no objective for SLI %s (series %s)", sli, series.SLOObjective)
		}
		if s.samples[sli] <= 0 {
			return cmp.Or(s.explainImpossible(), fmt.Sprintf("there are no slices of SLI %s (series %s)", sli,
				series.SLIBad))
		}
	}
	return cmp.Or(s.explainImpossible(), e.explainGap())
}

// explainGap lists the clusters without enough measurements or, if there are none, the SLIs without enough
// measurements. It returns "" if all have enough.
func (e evidence) explainGap() string {
	covered, err := e.readVector(queryCovered)
	if err != nil {
		return fmt.Sprintf("no measurement: %v", err)
	}
	isCovered := map[string]bool{}
	for _, s := range covered {
		isCovered[s.Labels[series.Cluster]] = true
	}
	uncovered := slices.DeleteFunc(slices.Clone(e.Clusters), func(c string) bool { return isCovered[c] })
	if len(uncovered) > 0 {
		return fmt.Sprintf("too few measurements of the new release from %s (%s): series %s or %s is missing or "+
			"has gaps",
			phrase.Count(len(uncovered), "cluster"), phrase.First(uncovered, maxNamed), series.SLIBad,
			series.OperatorInfo)
	}
	missing, err := e.readVector(queryMissing)
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

// judgeBaseline compares two proportions: with x bad of n slices of the new release and y bad of m slices of other
// releases, p = (x+y)/(n+m) and
//
//	z = (x/n - y/m) / sqrt(p (1-p) (1/n + 1/m))
//
// is normally distributed if both proportions are the same (NIST/SEMATECH e-Handbook of Statistical Methods, 7.3.3).
// judgeBaseline sets the finding. The outcome is bad if z is above the one-sided quantile of the confidence and more
// slices are bad than can be bad by chance. It is undecided if data is missing, else good.
func (e evidence) judgeBaseline(f *finding, g *v1alpha1.BaselineGate, q query) {
	critical := computeQuantile(float64(*g.Confidence) / 100)
	f.Threshold = formatNumber(critical)
	sli := fmt.Sprintf("%s=%q", series.SLI, g.SLI)
	f.Query = fmt.Sprintf("%s / %s", sumByClusterAndSLI(q.sumBad(sli, q.matchWave())),
		sumByClusterAndSLI(q.sumSamples(sli, q.matchWave())))
	s, err := e.readShares(queryBad, querySamples)
	if err != nil {
		f.setUndecided("no measurement: %v", err)
		return
	}
	baseline, err := e.readShares(queryOldBad, queryOldSamples)
	if err != nil {
		f.setUndecided("no measurement: %v", err)
		return
	}
	x, n, y, m := s.bad[g.SLI], s.samples[g.SLI], baseline.bad[g.SLI], baseline.samples[g.SLI]
	f.Samples, f.BaselineSamples = int64(math.Round(n)), int64(math.Round(m))
	minSamples := float64(*g.MinSamples)
	switch {
	case n < minSamples:
		f.setUndecided("%s", cmp.Or(s.explainImpossible(), explainTooFew(g, f.Samples, "the new release")))
		return
	case m < minSamples:
		f.setUndecided("%s", cmp.Or(baseline.explainImpossible(), explainTooFew(g, f.BaselineSamples,
			"clusters on other releases")))
		return
	}
	z := computeZScore(x, n, y, m)
	f.Value = formatNumber(z)
	f.evidence = fmt.Sprintf("%s: %s %% of %s samples are bad on the new release, %s %% of %s on others; z-score "+
		"%s, at "+
		"most %s passes (%d %% confidence)", g.SLI, formatNumber(100*x/n), formatNumber(n), formatNumber(100*y/m),
		formatNumber(m), f.Value,
		f.Threshold, *g.Confidence) + s.clusters[g.SLI].explainWorst()
	f.outcome = good
	if z > critical && s.isAboveGuard(g.SLI) {
		f.outcome = bad
		return
	}
	if gap := cmp.Or(s.explainImpossible(), baseline.explainImpossible(), e.explainGap()); gap != "" {
		f.setUndecided("%s", gap)
	}
}

// explainTooFew says that a source has only n samples of the SLI.
func explainTooFew(g *v1alpha1.BaselineGate, n int64, source string) string {
	return fmt.Sprintf("%s: %s of %s, at least %d are needed (series %s)", g.SLI, phrase.Count(n, "sample"), source,
		*g.MinSamples, series.SLIBad)
}

// computeZScore returns the z of judgeBaseline. It returns 0 if no slice is bad, or every slice is bad, on both sides.
func computeZScore(x, n, y, m float64) float64 {
	p := (x + y) / (n + m)
	deviation := math.Sqrt(p * (1 - p) * (1/n + 1/m))
	if deviation == 0 || math.IsNaN(deviation) {
		return 0
	}
	return (x/n - y/m) / deviation
}

// computeQuantile returns the quantile of the standard normal distribution.
func computeQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// judgePromQL compares the number that a query returned with the gate's threshold, and sets the finding. The outcome is
// good if the number meets the threshold. It is bad after more than FailureLimit misses in a row, counted after the end
// of the window. Before that, it is undecided.
func (e evidence) judgePromQL(f *finding, g *v1alpha1.PromQLGate, previous *v1alpha1.GateMeasurement) {
	f.Threshold = string(g.Operator) + " " + g.Threshold
	if previous != nil {
		f.Failures = previous.Failures
	}
	threshold, err := strconv.ParseFloat(g.Threshold, 64)
	if err != nil {
		f.setUndecided("threshold %q is not a number", g.Threshold)
		return
	}
	value, err := e.readSingleNumber()
	if err != nil {
		f.setUndecided("no measurement: %v", err)
		return
	}
	f.Value, f.Samples = formatNumber(value), 1
	f.evidence = fmt.Sprintf("the query returned %s, and passes if it is %s", f.Value, f.Threshold)
	if isThresholdMet(value, g.Operator, threshold) {
		f.outcome, f.Failures = good, 0
		return
	}
	if f.At.Time.Before(e.Since.Add(GateWindow(v1alpha1.Gate{PromQL: g}))) {
		f.evidence += ", which it is not yet"
		return // misses before the end of the window do not count
	}
	if previous == nil || f.At.After(previous.At.Time) { // a miss counts once
		f.Failures++
	}
	f.evidence += fmt.Sprintf("; missed %s in a row (failureLimit %d)", phrase.Count(f.Failures, "time"),
		*g.FailureLimit)
	if f.Failures > *g.FailureLimit {
		f.outcome = bad
	}
}

// readSingleNumber returns the result of a query that must return one finite number.
func (e evidence) readSingleNumber() (float64, error) {
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

// isThresholdMet reports whether the value meets the threshold.
func isThresholdMet(value float64, operator v1alpha1.ComparisonOperator, threshold float64) bool {
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

// formatNumber formats a number for people: with four significant digits, or as a whole number from 1000 up to 1e15.
func formatNumber(v float64) string {
	const large, huge = 1000, 1e15
	if abs := math.Abs(v); abs >= large && abs < huge {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
