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

// Scope is what a query may see. The empty one is everything.
type Scope struct {
	// Clusters is a regular expression of their names.
	Clusters string
	// Namespace is the one on the clusters, and OperatorNamespace the one on the hub, whose series it may see.
	Namespace, OperatorNamespace string
}

// ours are how the names of series begin that say of which operator they are, and not from which namespace.
var ours = []string{"bellwether_", "bellwether:", "probe_"}

const (
	// maxRange is how far back a selector reads, and maxSteps how often a subquery is evaluated.
	maxRange = 31 * 24 * time.Hour
	maxSteps = 11_000
)

// Restrict returns a query whose selectors see no more than a scope: those of series of Bellwether get a matcher for
// operator_namespace, others one for namespace. A selector without the name of a series reads all there are, and is
// refused, as are long ranges and subqueries with many steps. The errors wrap ErrQuery.
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

// Few returns a query whose result has at most two series, which is enough to see that it is not one number. The query
// is one that Restrict returned.
func Few(query string) string {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil || expr.Type() != parser.ValueTypeVector {
		return query
	}
	return "topk(2, " + query + ")"
}

func (s Scope) restrict(node parser.Node) error {
	switch n := node.(type) {
	case *parser.VectorSelector:
		if s != (Scope{}) {
			return s.addTo(n)
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

func (s Scope) addTo(n *parser.VectorSelector) error {
	name := n.Name
	for _, m := range n.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			name = m.Value
		}
	}
	if name == "" {
		return fmt.Errorf("the selector %s names no series", n)
	}
	label, value := series.Namespace, s.Namespace
	if slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		label, value = series.OperatorNamespace, s.OperatorNamespace
	}
	clusters, err := labels.NewMatcher(labels.MatchRegexp, series.Cluster, s.Clusters)
	if err != nil {
		return fmt.Errorf("restrict %s: %w", n, err)
	}
	n.LabelMatchers = append(n.LabelMatchers, clusters, labels.MustNewMatcher(labels.MatchEqual, label, value))
	return nil
}
