// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// point is a sample. It implements chunks.Sample without histograms.
type point struct {
	t int64
	v float64
}

func (p point) T() int64                    { return p.t }
func (point) ST() int64                     { return 0 }
func (p point) F() float64                  { return p.v }
func (point) H() *histogram.Histogram       { return nil }
func (point) FH() *histogram.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample         { return p }

// memory keeps the samples of series for as long as rules may read them.
type memory struct {
	// keepFor is how long samples of a name are kept. Samples of other names are ignored.
	keepFor map[string]time.Duration
	series  map[string]map[uint64]*keptSeries
}

type keptSeries struct {
	labels labels.Labels
	points []point
}

// maxPoints limits how many points of a series are kept: series that are read over a day are stored at a lower rate.
const maxPoints = 400

func newMemory(keepFor map[string]time.Duration) *memory {
	return &memory{keepFor, map[string]map[uint64]*keptSeries{}}
}

// add stores a sample if its name is in keepFor, and otherwise ignores it. t is in milliseconds since 1970,
// and must not decrease for a series. So that a series has about maxPoints points, a sample replaces the
// newest stored sample if the stored sample before the newest is too recent.
func (m *memory) add(metric labels.Labels, t int64, v float64) {
	name := metric.Get(model.MetricNameLabel)
	keepFor, wanted := m.keepFor[name]
	if !wanted {
		return
	}
	all := m.series[name]
	if all == nil {
		all = map[uint64]*keptSeries{}
		m.series[name] = all
	}
	s := all[metric.Hash()]
	if s == nil {
		s = &keptSeries{labels: metric}
		all[metric.Hash()] = s
	}
	if n := len(s.points); n > 1 && t-s.points[n-2].t < keepFor.Milliseconds()/maxPoints {
		s.points[n-1] = point{t, v} // the newest sample is always kept
		return
	}
	s.points = append(s.points, point{t, v})
}

// dropOld drops the samples that are too old for any rule at a time, in milliseconds
// since 1970. It also removes the series that have no samples then.
func (m *memory) dropOld(now int64) {
	for name, all := range m.series {
		oldest := now - m.keepFor[name].Milliseconds()
		for hash, s := range all {
			compareTime := func(p point, t int64) int { return int(p.t - t) }
			firstKept, _ := slices.BinarySearchFunc(s.points, oldest, compareTime)
			if firstKept == len(s.points) {
				delete(all, hash)
				continue
			}
			s.points = slices.Delete(s.points, 0, firstKept)
		}
	}
}

// Querier implements storage.Queryable.
func (m *memory) Querier(from, to int64) (storage.Querier, error) { return &querier{m, from, to}, nil }

type querier struct {
	*memory

	from, to int64
}

// Select implements storage.Querier.
func (q *querier) Select(_ context.Context, sorted bool, _ *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for name, all := range q.series {
		if !isMatchingName(name, matchers) {
			continue
		}
		for _, s := range all {
			if isMatching(s.labels, matchers) {
				found = append(found, storage.NewListSeries(s.labels, q.selectRange(s.points)))
			}
		}
	}
	if sorted {
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return &seriesSet{all: found}
}

// selectRange returns the points in the time range of the querier.
func (q *querier) selectRange(points []point) []chunks.Sample {
	out := make([]chunks.Sample, 0, len(points))
	for _, p := range points {
		if p.t >= q.from && p.t <= q.to {
			out = append(out, p)
		}
	}
	return out
}

func isMatchingName(name string, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && !m.Matches(name) {
			return false
		}
	}
	return true
}

func isMatching(metric labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(metric.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues implements storage.Querier. No rule needs it.
func (*querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier. No rule needs it.
func (*querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (*querier) Close() error { return nil }

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.at-1] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
