// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]PPM{
		"99.9": 999_000, "99": 990_000, "99.99": 999_900, "99.9999": 999_999, "0.0001": 1, "50%": 500_000,
		" 95.5 ": 955_000,
	} {
		got, err := ParseTarget(text)
		if err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
		if again, err := ParseTarget(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"100": "no budget", "0": "above 0", "0.0000": "above 0", "99,9": "99.9", "": "percent",
		"99.99999": "four decimals", "-1": "percent",
		"101": "no budget", "NaN": "percent", "1e2": "percent", "0x10": "percent", ".9": "percent", "99.": "percent",
		"九": "percent",
	} {
		if got, err := ParseTarget(text); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"99.9", "100", "0.0001", "99,9", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseTarget(text)
		if err != nil {
			return
		}
		if again, err := ParseTarget(p.String()); p <= 0 || p >= One || err != nil || again != p {
			t.Errorf("%q is %d, and that %d (%v)", text, p, again, err)
		}
	})
}

func TestParsePeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 30 * day, "4w": 28 * day, "72h": 3 * day, "92d": 92 * day} {
		if got, err := ParsePeriod(text); err != nil || got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"0d", "0", "", "1h", "93d", "3650d", "999999w", "10y", "30", "-30d", "1.5d", "30 d"} {
		if got, err := ParsePeriod(text); !errors.Is(err, ErrPeriod) {
			t.Errorf("%q is %s (%v), want an error", text, got, err)
		}
	}
}

// TestThresholdsEqualSloths compares with the error-ratio thresholds that sloth
// v0.16 writes into its alerts: (factor * error budget ratio) with the factors
// 14.4, 6, 3 and 1 for 30 days, and 13.44, 5.6, 2.8 and 0.93333... for 28 days
// (its windows google-30d and google-28d, internal/alert/windows).
func TestThresholdsEqualSloths(t *testing.T) {
	for period, factors := range map[time.Duration][]float64{
		30 * day: {14.4, 6, 3, 1},
		28 * day: {13.44, 5.6, 2.8, 0.9333333333333333},
	} {
		for _, target := range []PPM{990_000, 995_000, 999_000, 999_900, 999_990} {
			for i, tier := range Tiers() {
				want := factors[i] * (100 - 100*target.Ratio()) / 100
				if got := tier.Threshold(target, period); math.Abs(got-want) > 1e-12 {
					t.Errorf("%s, %s, tier %s: %v, want %v", target, formatDuration(period), tier.Name, got, want)
				}
			}
		}
	}
}

// TestTiers compares the table of tiers with its formulas.
func TestTiers(t *testing.T) {
	for _, tier := range Tiers() {
		if tier.Short*12 != tier.Long {
			t.Errorf("tier %s: %s is not a twelfth", tier.Name, tier.Short)
		}
		if tier.Short%Step != 0 || formatDuration(tier.Long) != tier.Name {
			t.Errorf("tier %s: windows %s and %s", tier.Name, tier.Long, tier.Short)
		}
	}
}

func TestDetectionAndReset(t *testing.T) {
	quick := Tiers()[0]
	for name, test := range map[string]struct {
		target    PPM
		ratio     float64
		detection time.Duration
		never     bool
		reset     time.Duration
	}{
		// T = 14.4 · 0.01 / 1 · 60 min = 8.64 min, so with the ninth slice; reset 5 min · (1 - 0.144).
		"99 %, outage":              {990_000, 1, 9 * time.Minute, false, 256800 * time.Millisecond},
		"99.9 %, outage: confirmed": {999_000, 1, 2 * time.Minute, false, 295680 * time.Millisecond},
		"99.9 %, half: guarded":     {999_000, 0.5, 10 * time.Minute, false, 291360 * time.Millisecond},
		"99 %, half":                {990_000, 0.5, 18 * time.Minute, false, 213600 * time.Millisecond},
		"99 %, below":               {990_000, 0.14, 0, true, 0},
		// 14.4 · 0.07 would be above 1; the bound is 0.9.
		"93 %, outage": {930_000, 1, 55 * time.Minute, false, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := quick.Detection(test.target, DefaultPeriod, test.ratio)
			reset := quick.Reset(test.target, DefaultPeriod, test.ratio).Round(time.Millisecond)
			if got != test.detection || ok == test.never || reset != test.reset {
				t.Errorf("detected after %s (%t), reset after %s; want %s (%t), %s", got, ok, reset, test.detection,
					!test.never, test.reset)
			}
		})
	}
}
