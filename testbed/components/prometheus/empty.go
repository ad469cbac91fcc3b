// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// metrics are the names of all metrics that have had a sample. Most rules read metrics that a test does not have: an
// expression that has no result without them is not evaluated, which saves half of the time.
type metrics map[string]bool

// isEmpty returns whether an expression has no result and no error because no selected metric has had a sample.
func (m metrics) isEmpty(expr parser.Expr) bool {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return e.Name != "" && !m[e.Name]
	case *parser.MatrixSelector:
		return m.isEmpty(e.VectorSelector)
	case *parser.SubqueryExpr:
		return m.isEmpty(e.Expr)
	case *parser.ParenExpr:
		return m.isEmpty(e.Expr)
	case *parser.UnaryExpr:
		return m.isEmpty(e.Expr)
	case *parser.AggregateExpr:
		return m.isEmpty(e.Expr)
	case *parser.Call:
		return !slices.Contains([]string{"absent", "absent_over_time", "scalar", "vector"}, e.Func.Name) &&
			slices.ContainsFunc(e.Args, m.isEmpty)
	case *parser.BinaryExpr:
		return m.isEmptyBinary(e)
	}
	return false
}

func (m metrics) isEmptyBinary(e *parser.BinaryExpr) bool {
	left, right := m.isEmpty(e.LHS), m.isEmpty(e.RHS)
	switch e.Op {
	case parser.LOR:
		return left && right
	case parser.LUNLESS:
		return left && (right || !m.canFail(e.RHS))
	}
	return left && (right || !m.canFail(e.RHS)) || right && !m.canFail(e.LHS)
}

// canFail returns whether the evaluation of an expression may end with an error, as series may have equal labels.
func (m metrics) canFail(expr parser.Expr) bool {
	if m.isEmpty(expr) {
		return false
	}
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return e.Name == ""
	case *parser.BinaryExpr:
		if !e.Op.IsSetOperator() && e.VectorMatching != nil {
			return true
		}
	case *parser.Call:
		if e.Func.Name == "label_replace" || e.Func.Name == "label_join" {
			return true
		}
	}
	for child := range parser.ChildrenIter(expr) {
		if part, ok := child.(parser.Expr); ok && m.canFail(part) {
			return true
		}
	}
	return false
}

// withoutEmpty returns the operand whose result is that of the whole expression, if the other one is empty.
func (m metrics) withoutEmpty(expr parser.Expr) parser.Expr {
	for {
		e, ok := expr.(*parser.BinaryExpr)
		switch {
		case ok && e.Op == parser.LOR && m.isEmpty(e.LHS):
			expr = e.RHS
		case ok && (e.Op == parser.LOR || e.Op == parser.LUNLESS) && m.isEmpty(e.RHS):
			expr = e.LHS
		default:
			return expr
		}
	}
}

// recordingStorage adds the names of metrics when samples are appended.
type recordingStorage struct {
	storage.Appendable
	metrics metrics
}

// Appender implements storage.Appendable.
func (s recordingStorage) Appender(ctx context.Context) storage.Appender {
	return recordingAppender{s.Appendable.Appender(ctx), s.metrics}
}

type recordingAppender struct {
	storage.Appender
	metrics metrics
}

// Append implements storage.Appender.
func (a recordingAppender) Append(ref storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef,
	error) {
	a.metrics[l.Get(labels.MetricName)] = true
	return a.Appender.Append(ref, l, t, v)
}

// AppendHistogram implements storage.HistogramAppender.
func (a recordingAppender) AppendHistogram(ref storage.SeriesRef, l labels.Labels, t int64, h *histogram.Histogram,
	fh *histogram.FloatHistogram) (storage.SeriesRef, error) {
	a.metrics[l.Get(labels.MetricName)] = true
	return a.Appender.AppendHistogram(ref, l, t, h, fh)
}
