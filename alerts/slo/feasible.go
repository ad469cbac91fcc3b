// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Finding is something about an objective that will not work as one may think.
type Finding struct {
	SLI, Tier string
	// Impossible: the tier can never alert. Else it alerts later than its burn rate says.
	Impossible bool
	Message    string
}

// Feasible says what cannot work of an objective that is judged by the slice,
// tier by tier. Nothing means that all does.
func Feasible(o Objective) []Finding {
	var out []Finding
	for _, t := range Tiers() {
		factor := t.Factor(o.period()) * o.Target.Budget().Ratio()
		threshold := t.Threshold(o.Target, o.period())
		find := func(impossible bool, format string, args ...any) {
			out = append(out, Finding{o.SLI, t.Name, impossible, fmt.Sprintf("%s, tier %s: ", o.SLI, t.Name) +
				fmt.Sprintf(format, args...)})
		}
		least := math.Floor(threshold*count(t.Long)) + 1
		switch {
		case t.Long > o.period():
			find(true, "its window is longer than the budget's period of %s", duration(o.period()))
		case factor > 1:
			find(false, "its burn rate would need %s %% of slices to be bad, which never happens; it alerts at %s %% "+
				"instead", number(100*factor), MaxThreshold)
		case factor > MaxThreshold.Ratio():
			find(false, "it alerts at %s %% of bad slices instead of %s %%", MaxThreshold, number(100*factor))
		case t == fastest() && isConfirmed(o.SLI):
			if least < 2 {
				find(false, "its burn rate is exceeded after %s, and it alerts when the two newest scrapes were bad, "+
					"because a single bad sample must not alert", phrase.Count(int(least), "bad minute"))
			}
		case least < Guard:
			find(false, "its burn rate is exceeded after %s, and it alerts after %d, because a single bad sample "+
				"must not alert", phrase.Count(int(least), "bad minute"), Guard)
		}
	}
	needed := Guard
	if isConfirmed(o.SLI) {
		needed = 1 // of which the two newest scrapes are bad
	}
	if allowed := count(o.period()) * o.Target.Budget().Ratio(); allowed < float64(needed) {
		out = append(out, Finding{o.SLI, "", true, fmt.Sprintf(
			"%s: %s %% allows %s of %s, fewer than the %d that it takes to alert: the budget is always gone first; "+
				"lower the target", o.SLI, o.Target, phrase.Count(int(math.Floor(allowed)), "bad minute"),
			duration(o.period()), needed)})
	}
	return out
}

// isConfirmed tells whether slices of an SLI can be confirmed, so that the fastest tier does not wait for Guard of
// them.
func isConfirmed(name string) bool {
	return slices.ContainsFunc(SLIs(), func(s SLI) bool { return s.Name == name && s.before != "" })
}

// RetentionFinding says what does not work where Prometheus keeps samples for a
// shorter time than a budget's period. Nothing means that all does; a retention of
// 0 is no limit.
func RetentionFinding(retention, period time.Duration) string {
	if retention <= 0 || retention >= period {
		return ""
	}
	return fmt.Sprintf("Prometheus deletes samples after %s, and the longest budget is for %s: failures before that "+
		"are not counted. Set --storage.tsdb.retention.time of Prometheus to at least %[2]s, or make the period "+
		"shorter", duration(retention), duration(period))
}

// Timing is how one tier behaves in a lasting failure.
type Timing struct {
	Tier, Severity string
	// Threshold is the error ratio above which it alerts.
	Threshold float64
	// Detects is false if it never does at that error ratio.
	Detects          bool
	Detection, Reset time.Duration
}

// Timings are the detection and reset times of all tiers at an error ratio.
func Timings(o Objective, ratio float64) []Timing {
	var out []Timing
	for _, t := range Tiers() {
		detection, ok := t.Detection(o.Target, o.period(), ratio)
		out = append(out, Timing{t.Name, t.Severity, t.Threshold(o.Target, o.period()), ok, detection,
			t.Reset(o.Target, o.period(), ratio)})
	}
	return out
}
