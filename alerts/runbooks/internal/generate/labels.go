// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// labels are those of the results of a query; true if all results have the label.
type labels map[string]bool

// either has the labels of two alternatives.
func either(a, b labels) labels {
	out := labels{}
	for name, always := range a {
		out[name] = always && b[name]
	}
	for name, always := range b {
		out[name] = always && a[name]
	}
	return out
}

// both has the labels of a result that has all of them.
func both(a, b labels) labels {
	out := maps.Clone(a)
	for name, always := range b {
		out[name] = always || a[name]
	}
	return out
}

func always(names ...string) labels {
	out := labels{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

func (l labels) only(names []string) labels {
	out := maps.Clone(l)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return !slices.Contains(names, name) })
	return out
}

func (l labels) without(names []string) labels {
	out := maps.Clone(l)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return slices.Contains(names, name) })
	return out
}

// labelsOf are the labels of the alerts that a rule makes.
func labelsOf(r monitoringv1.Rule) (labels, error) {
	expr, err := slo.ParseQuery(r.Expr.String())
	if err != nil {
		return nil, fmt.Errorf("read alert %s: %w", r.Alert, err)
	}
	found := labelsOfExpr(expr)
	for name, value := range r.Labels {
		if value != "" {
			found[name] = true
		} else {
			delete(found, name) // Prometheus has no empty labels
		}
	}
	return found, nil
}

// labelsOfExpr follows how Prometheus gives labels to results.
func labelsOfExpr(expr parser.Expr) labels {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return labelsOfExpr(e.Expr)
	case *parser.UnaryExpr:
		return labelsOfExpr(e.Expr)
	case *parser.MatrixSelector:
		return labelsOfExpr(e.VectorSelector)
	case *parser.SubqueryExpr:
		return labelsOfExpr(e.Expr)
	case *parser.VectorSelector:
		return labelsOfSelector(e)
	case *parser.AggregateExpr:
		return labelsOfAggregate(e)
	case *parser.BinaryExpr:
		return labelsOfBinary(e)
	case *parser.Call:
		return labelsOfCall(e)
	}
	return labels{}
}

func labelsOfAggregate(e *parser.AggregateExpr) labels {
	inner := labelsOfExpr(e.Expr)
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner
	case e.Without:
		return inner.without(e.Grouping)
	}
	return inner.only(e.Grouping)
}

func labelsOfCall(e *parser.Call) labels {
	out := labels{}
	if strings.HasPrefix(e.Func.Name, "absent") {
		return out
	}
	for _, arg := range e.Args {
		if arg.Type() == parser.ValueTypeVector || arg.Type() == parser.ValueTypeMatrix {
			out = both(out, labelsOfExpr(arg))
		}
	}
	if strings.HasPrefix(e.Func.Name, "label_") {
		if name, ok := e.Args[1].(*parser.StringLiteral); ok {
			out[name.Val] = true
		}
	}
	return out
}

func labelsOfBinary(e *parser.BinaryExpr) labels {
	left, right := labelsOfExpr(e.LHS), labelsOfExpr(e.RHS)
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar || e.Op == parser.LAND || e.Op == parser.LUNLESS:
		return left
	case e.Op == parser.LOR:
		return either(left, right)
	}
	switch m := e.VectorMatching; {
	case m.Card == parser.CardManyToOne:
		return both(left, right.only(m.Include))
	case m.Card == parser.CardOneToMany:
		return both(right, left.only(m.Include))
	case m.On:
		return left.only(m.MatchingLabels)
	}
	return left
}

// labelsOfSelector are those of the series that a selector finds, and those of matchers that do not match an empty
// value.
func labelsOfSelector(e *parser.VectorSelector) labels {
	out := labelsOfSeries(e.Name)
	for _, m := range e.LabelMatchers {
		if m.Name != model.MetricNameLabel && !m.Matches("") {
			out[m.Name] = true
		}
	}
	return out
}

// labelsOfSeries are those of a series of Bellwether's. What agents and probes export
// has the label cluster too.
func labelsOfSeries(name string) labels {
	for _, s := range slices.Concat(series.Exported(), series.Probed()) {
		if s.Name == name {
			return both(always(s.Labels...), always(series.Cluster))
		}
	}
	for _, s := range slices.Concat(series.Hub(), series.Recorded()) {
		isWindow := strings.HasSuffix(s.Name, ":sum") && strings.HasPrefix(name, s.Name)
		if s.Name == name || isWindow {
			return always(s.Labels...)
		}
	}
	return labels{}
}
