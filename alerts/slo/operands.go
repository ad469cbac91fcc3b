// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// measuredWithin is how long after a slice the definition of an SLI counts as correct for a cluster.
const measuredWithin = "1d"

// badQuery is the structure of a query of bad requests. If the query has no result while there are requests,
// there are no bad requests, unless the query computes its result from vectors and one vector is missing.
type badQuery struct {
	// addends are the terms of the query. Each term may have no result. They are the query itself if it is not a sum.
	addends []string
	// operands are the vectors that the addends are computed from.
	operands []string
	// hasAll is true if all requests are one of the operands: then no other operand can be missing alone.
	hasAll bool
	// minuend and subtrahend are the operands of the only subtraction, if requests that are
	// missing from the subtrahend are bad. They are empty for histograms: a histogram always
	// has all of its buckets, so a missing bucket does not mean that requests are bad.
	minuend, subtrahend string
}

// parseBad reads a query of bad requests and its query of all requests. ParseQuery must accept both.
func parseBad(bad, total string) badQuery {
	expr, badErr := ParseQuery(bad)
	all, totalErr := ParseQuery(total)
	if badErr != nil || totalErr != nil { // the queries were not checked
		return badQuery{addends: []string{bad}}
	}
	out, computed := badQuery{}, []*parser.BinaryExpr{}
	parts := splitAddends(expr)
	for _, part := range parts {
		out.addends = append(out.addends, part.String())
		parser.Inspect(part, func(node parser.Node, _ []parser.Node) error {
			if binary, ok := node.(*parser.BinaryExpr); ok && isComputation(binary) {
				computed = append(computed, binary)
			}
			return nil
		})
	}
	if len(parts) == 1 {
		out.addends = []string{bad}
	}
	var sides []parser.Expr
	for _, binary := range computed {
		sides = append(sides, binary.LHS, binary.RHS)
	}
	if needsAll(all, sides) {
		return out
	}
	for _, side := range sides {
		if operand := stripSum(side).String(); !slices.Contains(out.operands, operand) {
			out.operands = append(out.operands, operand)
		}
	}
	out.hasAll = slices.Contains(out.operands, stripSum(all).String())
	if len(computed) == 1 && len(parts) == 1 && computed[0].Op == parser.SUB && !hasBuckets(computed[0].RHS) {
		out.minuend, out.subtrahend = stripSum(computed[0].LHS).String(), stripSum(computed[0].RHS).String()
	}
	return out
}

// needsAll reports whether a query of all requests has no result if any of the operands is missing.
func needsAll(total parser.Expr, operands []parser.Expr) bool {
	operation, ok := total.(*parser.BinaryExpr)
	return ok && operation.Op == parser.LAND && !slices.ContainsFunc(operands, func(operand parser.Expr) bool {
		return operand.String() != operation.LHS.String() && operand.String() != operation.RHS.String()
	})
}

// stripSum returns the argument of a sum by cluster, or the
// expression itself. The caller must sum the result by cluster.
func stripSum(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return stripSum(e.Expr)
	case *parser.AggregateExpr:
		if e.Op == parser.SUM && !e.Without && slices.Equal(e.Grouping, []string{series.Cluster}) {
			return stripSum(e.Expr)
		}
	}
	return expr
}

// splitAddends returns the terms of a sum, if the labels of its sides do not matter for the sum.
func splitAddends(expr parser.Expr) []parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return splitAddends(e.Expr)
	case *parser.BinaryExpr:
		if e.Op == parser.ADD && isComputation(e) && e.VectorMatching.Card == parser.CardOneToOne {
			return append(splitAddends(e.LHS), splitAddends(e.RHS)...)
		}
	}
	return []parser.Expr{expr}
}

// isComputation reports whether an operation has no result if one of two vectors is
// missing. Comparisons without bool are filters, for which no result is a valid result.
func isComputation(e *parser.BinaryExpr) bool {
	return e.LHS.Type() == parser.ValueTypeVector && e.RHS.Type() == parser.ValueTypeVector &&
		!e.Op.IsSetOperator() && (!e.Op.IsComparisonOperator() || e.ReturnBool)
}

// hasBuckets reports whether an expression reads buckets of a classic histogram.
func hasBuckets(expr parser.Expr) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			found = found || strings.HasSuffix(selector.Name, "_bucket")
			for _, m := range selector.LabelMatchers {
				found = found || m.Name == "le"
			}
		}
		return nil
	})
	return found
}

func sumByCluster(query string) string { return fmt.Sprintf("sum by (cluster) (%s)", query) }

// buildSum returns PromQL for the number of bad requests. In
// a sum of several kinds, a kind without results counts as 0.
func (b badQuery) buildSum(total string) string {
	if len(b.addends) == 1 {
		return sumByCluster(b.addends[0])
	}
	parts := make([]string, len(b.addends))
	for i, addend := range b.addends {
		parts[i] = fmt.Sprintf("(%s or on (cluster) 0 * %s%s)", sumByCluster(addend), total, b.excludeOperands())
	}
	return "(" + strings.Join(parts, " + ") + ")"
}

// excludeOperands returns PromQL that excludes the clusters that have any of the operands.
func (b badQuery) excludeOperands() string {
	if len(b.operands) == 0 {
		return ""
	}
	all := make([]string, len(b.operands))
	for i, operand := range b.operands {
		all[i] = sumByCluster(operand)
	}
	return fmt.Sprintf(" unless on (cluster) (%s)", strings.Join(all, " or "))
}

// buildFallback returns PromQL for slices where the query gives no share: without requests, and without
// bad requests. Numbers that are not finite make no slice. If a subtraction has lost its subtrahend,
// all requests are bad if there are at least minRate per second. This holds only on a cluster where the
// SLI was measured before: elsewhere the query may be wrong, and there are no slices.
//
// minRate is the minimum number of requests per second. In the PromQL, 0 * x == 0 selects finite numbers.
func (b badQuery) buildFallback(operator Operator, sli, total string, minRate float64) string {
	out, bad := "", b.buildSum(total)
	if len(b.operands) > 0 {
		out = fmt.Sprintf("\nor on (cluster) 0 * %s == 0 unless on (cluster) 0 * %s != 0", bad, total)
	}
	if !b.hasAll {
		out += fmt.Sprintf("\nor on (cluster) 0 * %s == 0%s unless on (cluster) 0 * %s != 0", total,
			b.excludeOperands(),
			bad)
	}
	if b.subtrahend == "" {
		return out
	}
	isEnough := ">= bool " + formatNumber(minRate)
	if minRate == 0 {
		isEnough = "> bool 0"
	}
	return out + fmt.Sprintf("\nor on (cluster) (%s >= 0 %s\n  and on (cluster) %s\n  unless on (cluster) %s\n"+
		"  and on (cluster) last_over_time(%s{%s,%s=%q}[%s]))", total, isEnough, sumByCluster(b.minuend),
		sumByCluster(b.subtrahend), series.SLIBad, matchOperator(operator.ID()), series.SLI, sli, measuredWithin)
}
