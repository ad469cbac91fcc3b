// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Step is the length of a slice: how often SLIs are evaluated.
const Step = time.Minute

// CriticalStep is the length of further slices that critical operators have.
const CriticalStep = 15 * time.Second

// MaxThreshold bounds a tier's threshold, so that a total outage alerts however
// low the target is.
const MaxThreshold = 900_000 * PPM(1)

// Guard is how many slices of a long window have to be bad before a tier
// alerts, if its SLI is judged by the slice: one bad sample never pages. For the
// fastest tier one slice that is Confirmed is enough, since it has two bad samples.
const Guard = 3

// guardConfirmed is that in a total outage, whose first slice cannot be confirmed if there
// is one scrape for each slice.
const guardConfirmed = 2

// Tier is one multi-window burn-rate condition: the budget burns faster than a
// factor, over a long window and still over a short one of a twelfth of it.
// The default ones are those of the SRE workbook (chapter 5, table 5-8).
type Tier struct {
	// Name is the long window, as in 1h.
	Name string
	Long time.Duration
	// Short is Long / 12.
	Short time.Duration
	// Share is the part of the period's budget that is gone when it alerts.
	Share    PPM
	Severity string
	// Interval is how often it is evaluated.
	Interval time.Duration
	// Slice is the length of the slices that it counts.
	Slice time.Duration
}

// Tiers are the conditions, the fastest first.
func Tiers() []Tier {
	return []Tier{
		{"1h", time.Hour, 5 * time.Minute, 20_000, series.Page, time.Minute, Step},
		{"6h", 6 * time.Hour, 30 * time.Minute, 50_000, series.Page, 2 * time.Minute, Step},
		{"1d", day, 2 * time.Hour, 100_000, series.Ticket, 4 * time.Minute, Step},
		{"3d", 3 * day, 6 * time.Hour, 100_000, series.Ticket, 4 * time.Minute, Step},
	}
}

// CriticalTier is the one that critical operators have beside them, over slices of
// CriticalStep.
func CriticalTier() Tier {
	return Tier{"15m", 15 * time.Minute, 75 * time.Second, 10_000, series.Page, CriticalStep, CriticalStep}
}

// Factor is the burn rate at which a tier alerts: share · period / long window.
// For 30 days that is 14.4, 6, 3 and 1.
func (t Tier) Factor(period time.Duration) float64 {
	return float64(t.Share) * float64(period/time.Second) / (float64(One) * float64(t.Long/time.Second))
}

// Threshold is the error ratio above which a tier alerts: factor · budget, and
// no more than MaxThreshold.
func (t Tier) Threshold(target PPM, period time.Duration) float64 {
	return math.Min(t.Factor(period)*target.Budget().Ratio(), MaxThreshold.Ratio())
}

// count is how many slices of Step a window has.
func count(window time.Duration) float64 { return float64(window / Step) }

// count is how many slices of the tier a window has.
func (t Tier) count(window time.Duration) float64 { return float64(window / t.Slice) }

// Detection is how long a failure of the given error ratio lasts when the tier
// alerts: threshold / ratio · long window, in whole slices and not before the
// guard is satisfied. It is false if the tier never alerts at that ratio. The SLI is
// one whose slices may be confirmed, with one scrape for each slice.
func (t Tier) Detection(target PPM, period time.Duration, ratio float64) (time.Duration, bool) {
	threshold := t.Threshold(target, period)
	if ratio <= threshold {
		return 0, false
	}
	bad := math.Max(math.Floor(threshold*t.count(t.Long))+1, t.guard(ratio))
	needed := math.Ceil(bad / ratio)
	return time.Duration(needed) * t.Slice, needed <= t.count(t.Long)
}

// guard is how many slices have to be bad in a failure of the given error ratio, whose bad
// slices are apart unless it is total.
func (t Tier) guard(ratio float64) float64 {
	switch {
	case t == fastest() && ratio >= 1:
		return guardConfirmed
	case t.looksAtScrapes() && ratio < 1:
		return float64(guardScrapes(Guard))
	}
	return Guard
}

// looksAtScrapes tells whether the tier counts bad scrapes beside slices.
func (t Tier) looksAtScrapes() bool { return t.Severity == series.Page && t.Slice == Step }

// Reset is how long after a failure of the given error ratio the tier goes on
// alerting: short window · (1 - threshold / ratio). It holds for failures that
// were as long as the short window.
func (t Tier) Reset(target PPM, period time.Duration, ratio float64) time.Duration {
	threshold := t.Threshold(target, period)
	if ratio <= threshold {
		return 0
	}
	return time.Duration(float64(t.Short) * (1 - threshold/ratio))
}
