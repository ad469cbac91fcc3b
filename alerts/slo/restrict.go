// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Scope limits the series that a query may read. The empty scope permits all series.
type Scope struct {
	// Clusters is a regular expression of cluster names.
	Clusters string
	// Namespace is the namespace on the clusters, and OperatorNamespace
	// the namespace on the hub, whose series may be read.
	Namespace, OperatorNamespace string
}

// operatorPrefixes are the prefixes of metrics whose series name their operator instead of a namespace.
var operatorPrefixes = []string{"bellwether_", "bellwether:", "probe_"}

const (
	// maxRange is the longest range of a selector, and maxSteps the maximum number of evaluations of a subquery.
	maxRange = 31 * 24 * time.Hour
	maxSteps = 11_000
)

// Restrict returns a query whose selectors read only series in the scope: selectors of Bellwether's series get a
// matcher for operator_namespace, and other selectors a matcher for namespace. It refuses selectors without a metric
// name, because they read all series, and also long ranges and subqueries with many steps. The errors wrap ErrQuery.
func Restrict(text string, s Scope) (string, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrQuery, err)
	}
	if t := expr.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return "", fmt.Errorf("%w: it gives a %s; one number is needed", ErrQuery, parser.DocumentedType(t))
	}
	var failed error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if failed == nil {
			failed = s.restrict(node)
		}
		return nil
	})
	if failed != nil {
		return "", fmt.Errorf("%w: %w", ErrQuery, failed)
	}
	return expr.String(), nil
}

// LimitResult returns a query with at most two series in its result, which is enough to
// detect that the result is not one number. The query must come from Restrict.
func LimitResult(query string) string {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil || expr.Type() != parser.ValueTypeVector {
		return query
	}
	return "topk(2, " + query + ")"
}

// restrict changes a selector in place so that it reads only series in
// the scope. It returns an error if a node of the query exceeds a limit.
func (s Scope) restrict(node parser.Node) error {
	switch n := node.(type) {
	case *parser.VectorSelector:
		if s != (Scope{}) { // the empty scope permits all series
			return s.addMatchers(n)
		}
	case *parser.MatrixSelector:
		if n.Range > maxRange {
			return fmt.Errorf("%s reads %s back; the limit is %s", n, model.Duration(n.Range), model.Duration(maxRange))
		}
	case *parser.SubqueryExpr:
		step := cmp.Or(n.Step, Step)
		if n.Range > maxRange || n.Range/step > maxSteps {
			return fmt.Errorf("the subquery %s reads %s back in %d steps; the limits are %s and %d steps", n,
				model.Duration(n.Range), n.Range/step, model.Duration(maxRange), maxSteps)
		}
	}
	return nil
}

// addMatchers adds the matchers of the scope to a selector.
func (s Scope) addMatchers(n *parser.VectorSelector) error {
	name := n.Name
	for _, m := range n.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual { // {__name__="metric"} also names a metric
			name = m.Value
		}
	}
	if name == "" {
		return fmt.Errorf("the selector %s names no series", n)
	}
	label, value := series.Namespace, s.Namespace
	if slices.ContainsFunc(operatorPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		label, value = series.OperatorNamespace, s.OperatorNamespace
	}
	clusters, err := labels.NewMatcher(labels.MatchRegexp, series.Cluster, s.Clusters)
	if err != nil {
		return fmt.Errorf("restrict %s: %w", n, err)
	}
	n.LabelMatchers = append(n.LabelMatchers, clusters, labels.MustNewMatcher(labels.MatchEqual, label, value))
	return nil
}
