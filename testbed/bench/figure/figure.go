// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package figure holds what benchmarks found, judges it against what was promised, and writes it down as Markdown. It
// measures nothing.
package figure

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Quantity is a measured value with its unit. The zero value means that there is none.
type Quantity struct {
	value float64
	unit  unit
}

type unit int

const (
	none unit = iota
	seconds
	bytes
	kibibytes
	count
)

// Duration is a quantity in seconds.
func Duration(d time.Duration) Quantity { return Quantity{d.Seconds(), seconds} }

// Bytes is a quantity in MiB.
func Bytes(n int64) Quantity { return Quantity{float64(n), bytes} }

// Kibibytes is a quantity in KiB, of so many bytes.
func Kibibytes(n float64) Quantity { return Quantity{n, kibibytes} }

// Count is a quantity without a unit: a number of things.
func Count(n int) Quantity { return Quantity{float64(n), count} }

const mebi = 1 << 20

func (q Quantity) String() string {
	switch {
	case q.unit == seconds && q.value > 0 && q.value < 0.01:
		return fmt.Sprintf("%.2f ms", q.value*1000)
	case q.unit == seconds && q.value < 1:
		return fmt.Sprintf("%.0f ms", q.value*1000)
	case q.unit == seconds:
		return fmt.Sprintf("%.2f s", q.value)
	case q.unit == bytes:
		return fmt.Sprintf("%.1f MiB", q.value/mebi)
	case q.unit == kibibytes:
		return fmt.Sprintf("%.1f KiB", q.value/1024)
	case q.unit == count:
		return fmt.Sprintf("%.0f", q.value)
	}
	return ""
}

// Ratio returns how many times over a is b; 0 if either is missing.
func Ratio(a, b Quantity) float64 {
	if a.unit != b.unit || b.value == 0 {
		return 0
	}
	return a.value / b.value
}

// Row is one figure.
type Row struct {
	Name string
	// Ours and Peer are medians of Runs runs. A figure without a peer leaves it zero.
	Ours, Peer Quantity
	// Ratio of ours to the peer's, or 0.
	Ratio float64
	// Promise is what was promised; a row without one only informs.
	Promise Promise
	Runs    int
}

// Promise is an upper bound, of the ratio or of ours. The zero value promises nothing.
type Promise struct {
	ratio float64
	ours  Quantity
	below bool
}

// AtMost promises a ratio.
func AtMost(ratio float64) Promise { return Promise{ratio: ratio} }

// Below promises that ours stays below a quantity.
func Below(q Quantity) Promise { return Promise{ours: q, below: true} }

func (p Promise) String() string {
	switch {
	case p.below:
		return "below " + p.ours.String()
	case p.ratio > 0:
		return fmt.Sprintf("ratio ≤ %g", p.ratio)
	}
	return ""
}

// Missed tells whether the row has a promise that it does not keep.
func (r Row) Missed() bool {
	switch {
	case r.Promise.below:
		return r.Ours.value >= r.Promise.ours.value
	case r.Promise.ratio > 0:
		return r.Ratio == 0 || r.Ratio > r.Promise.ratio
	}
	return false
}

func (r Row) verdict() string {
	switch {
	case r.Promise == Promise{}:
		return "for information"
	case r.Missed():
		return "**missed**"
	}
	return "kept"
}

// Section is what one benchmark found.
type Section struct {
	// Key names the benchmark on the command line and in documents.
	Key, Title string
	Rows       []Row
	// Detail is Markdown that goes below the rows: how the figures come about.
	Detail string
	// Pictures are drawn as SVG files, by their names in the folder images/bench beside the document.
	Pictures map[string]Plot
}

// Missed returns the names of the rows that break their promise.
func (s Section) Missed() []string {
	var names []string
	for _, r := range s.Rows {
		if r.Missed() {
			names = append(names, r.Name)
		}
	}
	return names
}

// Median returns the middle of values, the mean of the two middle ones where their number is even, and zero of none.
func Median[T ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile returns the smallest of values that a share q of them, from 0 to 1, does not exceed; zero of none.
func Quantile[T ~int64 | ~float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
