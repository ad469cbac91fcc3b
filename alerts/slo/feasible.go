// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Finding describes behaviour of an objective that users might not expect.
type Finding struct {
	SLI, Tier string
	// Impossible means that the tier can never alert. Otherwise it alerts later than its burn rate suggests.
	Impossible bool
	Message    string
}

// Feasible returns the findings about an objective that is judged by slices,
// tier by tier. The result is empty if everything works as configured.
func Feasible(o Objective) []Finding {
	var out []Finding
	for _, t := range Tiers() {
		errorRatio := t.Factor(o.period()) * o.Target.Budget().Ratio()
		threshold := t.Threshold(o.Target, o.period())
		addFinding := func(impossible bool, format string, args ...any) {
			message := fmt.Sprintf("%s, tier %s: ", o.SLI, t.Name) + fmt.Sprintf(format, args...)
			out = append(out, Finding{SLI: o.SLI, Tier: t.Name, Impossible: impossible, Message: message})
		}
		minBad := math.Floor(threshold*countSlices(t.Long)) + 1
		switch {
		case t.Long > o.period():
			addFinding(true, "its window is longer than the budget's period of %s", formatDuration(o.period()))
		case errorRatio > 1:
			addFinding(false,
				"its burn rate would need %s %% of slices to be bad, which never happens; it alerts at %s %% "+
					"instead", formatNumber(100*errorRatio), MaxThreshold)
		case errorRatio > MaxThreshold.Ratio():
			addFinding(false, "it alerts at %s %% of bad slices instead of %s %%", MaxThreshold,
				formatNumber(100*errorRatio))
		case t == pickFastestTier() && canConfirm(o.SLI):
			if minBad < 2 { // a confirmed slice needs a second bad scrape
				addFinding(false,
					"its burn rate is exceeded after %s, and it alerts when the two newest scrapes were bad, "+
						"because a single bad sample must not alert", phrase.Count(int(minBad), "bad minute"))
			}
		case minBad < Guard:
			addFinding(false,
				"its burn rate is exceeded after %s, and it alerts after %d, because a single bad sample "+
					"must not alert", phrase.Count(int(minBad), "bad minute"), Guard)
		}
	}
	needed := Guard
	if canConfirm(o.SLI) {
		needed = 1 // the two newest scrapes of this minute are bad
	}
	if allowed := countSlices(o.period()) * o.Target.Budget().Ratio(); allowed < float64(needed) {
		out = append(out, Finding{SLI: o.SLI, Impossible: true, Message: fmt.Sprintf(
			"%s: %s %% allows %s of %s, fewer than the %d that it takes to alert: the budget is always gone first; "+
				"lower the target", o.SLI, o.Target, phrase.Count(int(math.Floor(allowed)), "bad minute"),
			formatDuration(o.period()), needed)})
	}
	return out
}

// canConfirm reports whether slices of an SLI can be confirmed,
// so that the fastest tier does not wait for Guard slices.
func canConfirm(name string) bool {
	return slices.ContainsFunc(SLIs(), func(s SLI) bool { return s.Name == name && s.previous != "" })
}

// RetentionFinding describes the problem if Prometheus keeps samples for a shorter time than a
// budget's period. The result is empty if there is no problem. A retention of 0 is no limit.
func RetentionFinding(retention, period time.Duration) string {
	if retention <= 0 || retention >= period {
		return ""
	}
	return fmt.Sprintf("Prometheus deletes samples after %s, and the longest budget is for %s: failures before that "+
		"are not counted. Set --storage.tsdb.retention.time of Prometheus to at least %[2]s, or make the period "+
		"shorter", formatDuration(retention), formatDuration(period))
}

// Timing describes the behaviour of one tier in a permanent failure.
type Timing struct {
	Tier, Severity string
	// Threshold is the error ratio above which the tier alerts.
	Threshold float64
	// Detects is false if the tier never alerts at that error ratio.
	Detects          bool
	Detection, Reset time.Duration
}

// Timings returns the detection and reset times of all tiers at an error ratio.
func Timings(o Objective, ratio float64) []Timing {
	var out []Timing
	for _, t := range Tiers() {
		detection, ok := t.Detection(o.Target, o.period(), ratio)
		out = append(out, Timing{Tier: t.Name, Severity: t.Severity, Threshold: t.Threshold(o.Target, o.period()),
			Detects: ok, Detection: detection, Reset: t.Reset(o.Target, o.period(), ratio)})
	}
	return out
}
