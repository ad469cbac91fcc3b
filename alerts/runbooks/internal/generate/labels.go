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

// labels are the labels of the results of a query. The value is true if all results have the label.
type labels map[string]bool

// mergeAlternatives returns the labels of results that come from either of two queries.
func mergeAlternatives(a, b labels) labels {
	out := labels{}
	for name, always := range a {
		out[name] = always && b[name]
	}
	for name, always := range b {
		out[name] = always && a[name]
	}
	return out
}

// mergeLabels returns the labels of results that have the labels of both.
func mergeLabels(a, b labels) labels {
	out := maps.Clone(a)
	for name, always := range b {
		out[name] = always || a[name]
	}
	return out
}

// newLabels returns labels that all results have.
func newLabels(names ...string) labels {
	out := labels{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

// keep returns only the labels with the names.
func (l labels) keep(names []string) labels {
	out := maps.Clone(l)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return !slices.Contains(names, name) })
	return out
}

// drop returns the labels without the names.
func (l labels) drop(names []string) labels {
	out := maps.Clone(l)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return slices.Contains(names, name) })
	return out
}

// readRuleLabels returns the labels of the alerts that a rule makes.
func readRuleLabels(r monitoringv1.Rule) (labels, error) {
	expr, err := slo.ParseQuery(r.Expr.String())
	if err != nil {
		return nil, fmt.Errorf("read alert %s: %w", r.Alert, err)
	}
	found := readLabels(expr)
	for name, value := range r.Labels {
		if value != "" {
			found[name] = true
		} else {
			delete(found, name) // Prometheus has no empty labels
		}
	}
	return found, nil
}

// readLabels returns the labels of an expression's results, by the rules of Prometheus. Numbers have no labels.
func readLabels(expr parser.Expr) labels {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return readLabels(e.Expr)
	case *parser.UnaryExpr:
		return readLabels(e.Expr)
	case *parser.MatrixSelector:
		return readLabels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return readLabels(e.Expr)
	case *parser.VectorSelector:
		return readSelectorLabels(e)
	case *parser.AggregateExpr:
		return readAggregateLabels(e)
	case *parser.BinaryExpr:
		return readBinaryLabels(e)
	case *parser.Call:
		return readCallLabels(e)
	}
	return labels{}
}

// readAggregateLabels returns the labels of an aggregation's results: topk and
// bottomk keep all labels, the other aggregations only the labels of the groups.
func readAggregateLabels(e *parser.AggregateExpr) labels {
	inner := readLabels(e.Expr)
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner
	case e.Without:
		return inner.drop(e.Grouping)
	}
	return inner.keep(e.Grouping)
}

// readCallLabels returns the labels of a function's results: the labels of its vectors,
// and the label that label_replace or label_join sets. absent has no labels.
func readCallLabels(e *parser.Call) labels {
	out := labels{}
	if strings.HasPrefix(e.Func.Name, "absent") {
		return out
	}
	for _, arg := range e.Args {
		if arg.Type() == parser.ValueTypeVector || arg.Type() == parser.ValueTypeMatrix {
			out = mergeLabels(out, readLabels(arg))
		}
	}
	if strings.HasPrefix(e.Func.Name, "label_") {
		if name, ok := e.Args[1].(*parser.StringLiteral); ok {
			out[name.Val] = true
		}
	}
	return out
}

// readBinaryLabels returns the labels of a binary operation's results. With group_left and
// group_right, the labels that the operation names are copied from the other side.
func readBinaryLabels(e *parser.BinaryExpr) labels {
	left, right := readLabels(e.LHS), readLabels(e.RHS)
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar || e.Op == parser.LAND || e.Op == parser.LUNLESS:
		return left
	case e.Op == parser.LOR:
		return mergeAlternatives(left, right)
	}
	switch m := e.VectorMatching; {
	case m.Card == parser.CardManyToOne:
		return mergeLabels(left, right.keep(m.Include))
	case m.Card == parser.CardOneToMany:
		return mergeLabels(right, left.keep(m.Include))
	case m.On:
		return left.keep(m.MatchingLabels)
	}
	return left
}

// readSelectorLabels returns the labels of the series that a selector
// finds, and the labels of matchers that do not match an empty value.
func readSelectorLabels(e *parser.VectorSelector) labels {
	out := readSeriesLabels(e.Name)
	for _, m := range e.LabelMatchers {
		if m.Name != model.MetricNameLabel && !m.Matches("") {
			out[m.Name] = true
		}
	}
	return out
}

// readSeriesLabels returns the labels of a series of Bellwether.
// Series of agents and probes also have the label cluster.
func readSeriesLabels(name string) labels {
	for _, s := range slices.Concat(series.Exported(), series.Probed()) {
		if s.Name == name {
			return mergeLabels(newLabels(s.Labels...), newLabels(series.Cluster))
		}
	}
	for _, s := range slices.Concat(series.Hub(), series.Recorded()) {
		isWindow := strings.HasSuffix(s.Name, ":sum") && strings.HasPrefix(name, s.Name)
		if s.Name == name || isWindow {
			return newLabels(s.Labels...)
		}
	}
	return labels{}
}
