// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Errors about objectives. Their messages say what to write instead.
var (
	ErrTarget   = errors.New("invalid target")
	ErrPeriod   = errors.New("invalid period")
	ErrSLI      = errors.New("unknown SLI")
	ErrOperator = errors.New("invalid operator")
)

// PPM is a ratio in parts per million. It is an integer, so that a target keeps its exact value. 99.9 % is 999000.
type PPM int64

// One is the ratio 1.
const One PPM = 1_000_000

// Ratio returns the ratio as the nearest float.
func (p PPM) Ratio() float64 { return float64(p) / float64(One) }

// Budget returns the part that the target leaves for failures: 1 - target.
func (p PPM) Budget() PPM { return One - p }

// String returns the ratio in percent, in the form that ParseTarget reads.
func (p PPM) String() string {
	text := fmt.Sprintf("%d.%04d", p/10_000, p%10_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// formatDecimal returns the ratio as a number of PromQL.
func (p PPM) formatDecimal() string { return formatNumber(p.Ratio()) }

var percent = regexp.MustCompile(`^([0-9]{1,3})(?:\.([0-9]{1,4}))?%?$`)

// ParseTarget reads a target in percent, as in 99.9, exactly and with
// at most four decimals. The target must be above 0 and below 100.
func ParseTarget(text string) (PPM, error) {
	match := percent.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		if strings.Contains(text, ",") {
			return 0, fmt.Errorf("%w %q: write it with a point, as in %s", ErrTarget, text,
				strings.ReplaceAll(text, ",", "."))
		}
		return 0, fmt.Errorf("%w %q: write percent with at most four decimals, as in 99.9", ErrTarget, text)
	}
	digits := match[1] + match[2] + strings.Repeat("0", 4-len(match[2]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w %q: %w", ErrTarget, text, err)
	}
	p := PPM(n)
	return p, p.check()
}

// ParseSliceTarget reads the share of good requests that a good
// slice needs, in percent, like ParseTarget. It may be 100.
func ParseSliceTarget(text string) (PPM, error) {
	if strings.TrimSuffix(strings.TrimSpace(text), "%") == "100" {
		return One, nil
	}
	return ParseTarget(text)
}

// check returns an error unless the target is above 0 and below 1.
func (p PPM) check() error {
	switch {
	case p <= 0:
		return fmt.Errorf("%w %s: a target of 0 never alerts; it must be above 0", ErrTarget, p)
	case p >= One:
		return fmt.Errorf("%w %s: a target of 100 leaves no budget, so every failure would page; write 99.9, say",
			ErrTarget, p)
	}
	return nil
}

const day = 24 * time.Hour

// Limits of a budget period: it must contain the longest window
// of a tier, and Prometheus must be able to keep its slices.
const (
	MinPeriod     = 3 * day
	MaxPeriod     = 92 * day
	DefaultPeriod = 30 * day
)

var period = regexp.MustCompile(`^([0-9]{1,6})([hdw])$`)

// ParsePeriod reads a budget period in hours, days or weeks, as in 30d. The period must be from 3 to 92 days.
func ParsePeriod(text string) (time.Duration, error) {
	match := period.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return 0, fmt.Errorf("%w %q: write hours, days or weeks, as in 30d", ErrPeriod, text)
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w %q: %w", ErrPeriod, text, err)
	}
	d := time.Duration(n) * map[string]time.Duration{"h": time.Hour, "d": day, "w": 7 * day}[match[2]]
	return d, checkPeriod(d)
}

// checkPeriod returns an error unless the period is within the limits and in whole hours.
func checkPeriod(d time.Duration) error {
	switch {
	case d < MinPeriod:
		return fmt.Errorf("%w %s: at least %s, which the longest burn-rate window needs", ErrPeriod, formatDuration(d),
			formatDuration(MinPeriod))
	case d > MaxPeriod:
		return fmt.Errorf("%w %s: at most %s, as Prometheus would have to keep every slice of it", ErrPeriod,
			formatDuration(d), formatDuration(MaxPeriod))
	case d%time.Hour != 0:
		return fmt.Errorf("%w %s: whole hours only", ErrPeriod, d)
	}
	return nil
}

// formatDuration returns a duration in the notation of Prometheus, with one unit.
func formatDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d != 0 && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// formatNumber returns a float in the notation of PromQL, without unneeded digits.
func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', 12, 64) }
