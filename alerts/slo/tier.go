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

// CriticalStep is the length of the additional slices of critical operators.
const CriticalStep = 15 * time.Second

// MaxThreshold limits a tier's threshold, so that a total outage alerts even with a low target.
const MaxThreshold = 900_000 * PPM(1)

// Guard is how many slices of a long window must be bad before a tier alerts, if its SLI is judged by slices: one
// bad sample never pages. For the fastest tier one Confirmed slice is enough, because it has two bad samples.
const Guard = 3

// guardConfirmed is the number of slices in a total outage, whose first
// slice cannot be confirmed if there is one scrape for each slice.
const guardConfirmed = 2

// Tier is one multi-window burn-rate condition: the budget burns faster than a factor, over a long window and also
// over a short window of a twelfth of its length. The default tiers are from the SRE workbook (chapter 5, table 5-8).
type Tier struct {
	// Name is the long window, as in 1h.
	Name string
	Long time.Duration
	// Short is Long / 12.
	Short time.Duration
	// Share is the part of the period's budget that is gone when the tier alerts.
	Share    PPM
	Severity string
	// Interval is how often the tier is evaluated.
	Interval time.Duration
	// Slice is the length of the slices that the tier counts.
	Slice time.Duration
}

// Tiers returns the conditions, the fastest first.
func Tiers() []Tier {
	return []Tier{
		{Name: "1h", Long: time.Hour, Short: 5 * time.Minute, Share: 20_000, Severity: series.Page,
			Interval: time.Minute, Slice: Step},
		{Name: "6h", Long: 6 * time.Hour, Short: 30 * time.Minute, Share: 50_000, Severity: series.Page,
			Interval: 2 * time.Minute, Slice: Step},
		{Name: "1d", Long: day, Short: 2 * time.Hour, Share: 100_000, Severity: series.Ticket,
			Interval: 4 * time.Minute, Slice: Step},
		{Name: "3d", Long: 3 * day, Short: 6 * time.Hour, Share: 100_000, Severity: series.Ticket,
			Interval: 4 * time.Minute, Slice: Step},
	}
}

// CriticalTier returns the additional tier of critical operators, over slices of CriticalStep.
func CriticalTier() Tier {
	return Tier{Name: "15m", Long: 15 * time.Minute, Short: 75 * time.Second, Share: 10_000, Severity: series.Page,
		Interval: CriticalStep, Slice: CriticalStep}
}

// Factor returns the burn rate at which a tier alerts: share · period
// / long window. For 30 days the factors are 14.4, 6, 3 and 1.
func (t Tier) Factor(period time.Duration) float64 {
	return float64(t.Share) * float64(period/time.Second) / (float64(One) * float64(t.Long/time.Second))
}

// Threshold returns the error ratio above which a tier alerts: factor · budget, and at most MaxThreshold.
func (t Tier) Threshold(target PPM, period time.Duration) float64 {
	return math.Min(t.Factor(period)*target.Budget().Ratio(), MaxThreshold.Ratio())
}

// countSlices returns the number of slices of Step in a window.
func countSlices(window time.Duration) float64 { return float64(window / Step) }

// countSlices returns the number of slices of the tier in a window.
func (t Tier) countSlices(window time.Duration) float64 { return float64(window / t.Slice) }

// Detection returns how long a failure with the given error ratio lasts until the tier alerts: threshold /
// ratio · long window, in whole slices and not before the guard is satisfied. It returns false if the tier
// never alerts at that ratio. It assumes an SLI whose slices can be confirmed, with one scrape for each slice.
func (t Tier) Detection(target PPM, period time.Duration, ratio float64) (time.Duration, bool) {
	threshold := t.Threshold(target, period)
	if ratio <= threshold {
		return 0, false
	}
	bad := math.Max(math.Floor(threshold*t.countSlices(t.Long))+1, t.computeGuard(ratio))
	needed := math.Ceil(bad / ratio)
	return time.Duration(needed) * t.Slice, needed <= t.countSlices(t.Long)
}

// computeGuard returns how many slices must be bad in a failure with the given
// error ratio. The bad slices are not adjacent unless the failure is total.
func (t Tier) computeGuard(ratio float64) float64 {
	switch {
	case t == pickFastestTier() && ratio >= 1: // the second bad slice is confirmed
		return guardConfirmed
	case t.needsScrapes() && ratio < 1: // no slice is confirmed, so each bad slice is one bad scrape
		return float64(countGuardScrapes(Guard))
	}
	return Guard
}

// needsScrapes reports whether the tier counts bad scrapes in addition to slices.
func (t Tier) needsScrapes() bool { return t.Severity == series.Page && t.Slice == Step }

// Reset returns how long the tier continues to alert after a failure with the given error ratio: short
// window · (1 - threshold / ratio). The failure must have been at least as long as the short window.
func (t Tier) Reset(target PPM, period time.Duration, ratio float64) time.Duration {
	threshold := t.Threshold(target, period)
	if ratio <= threshold {
		return 0
	}
	return time.Duration(float64(t.Short) * (1 - threshold/ratio))
}
