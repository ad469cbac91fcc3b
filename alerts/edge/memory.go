// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

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

// point is a sample. Implementing chunks.Sample, it has neither histogram.
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

// memory keeps the samples of series for as long as somebody may look back for them.
type memory struct {
	// keep is how long samples of a name are kept. Others are not taken.
	keep   map[string]time.Duration
	series map[string]map[uint64]*kept
}

type kept struct {
	labels labels.Labels
	points []point
}

// mostPoints bounds how many points of a series are kept: those that are looked back for
// over a day are not taken as often as others.
const mostPoints = 400

func newMemory(keep map[string]time.Duration) *memory {
	return &memory{keep, map[string]map[uint64]*kept{}}
}

// add takes a sample unless nobody looks for it. Times of a series must not go back.
func (m *memory) add(of labels.Labels, t int64, v float64) {
	name := of.Get(model.MetricNameLabel)
	keep, wanted := m.keep[name]
	if !wanted {
		return
	}
	all := m.series[name]
	if all == nil {
		all = map[uint64]*kept{}
		m.series[name] = all
	}
	s := all[of.Hash()]
	if s == nil {
		s = &kept{labels: of}
		all[of.Hash()] = s
	}
	if n := len(s.points); n > 1 && t-s.points[n-2].t < keep.Milliseconds()/mostPoints {
		s.points[n-1] = point{t, v} // the newest one is always there
		return
	}
	s.points = append(s.points, point{t, v})
}

// forget drops what nobody looks back for any more.
func (m *memory) forget(now int64) {
	for name, all := range m.series {
		oldest := now - m.keep[name].Milliseconds()
		for hash, s := range all {
			first, _ := slices.BinarySearchFunc(s.points, oldest, func(p point, t int64) int { return int(p.t - t) })
			if first == len(s.points) {
				delete(all, hash)
				continue
			}
			s.points = slices.Delete(s.points, 0, first)
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
		if !matchesName(name, matchers) {
			continue
		}
		for _, s := range all {
			if matches(s.labels, matchers) {
				found = append(found, storage.NewListSeries(s.labels, q.within(s.points)))
			}
		}
	}
	if sorted {
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return &seriesSet{all: found}
}

func (q *querier) within(points []point) []chunks.Sample {
	out := make([]chunks.Sample, 0, len(points))
	for _, p := range points {
		if p.t >= q.from && p.t <= q.to {
			out = append(out, p)
		}
	}
	return out
}

func matchesName(name string, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && !m.Matches(name) {
			return false
		}
	}
	return true
}

func matches(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(of.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues implements storage.Querier; no rule asks for them.
func (*querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier; no rule asks for them.
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
