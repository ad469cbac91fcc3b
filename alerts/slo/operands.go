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

// measuredWithin is for how long an SLI that had slices on a cluster is known to be defined for what there is there.
const measuredWithin = "1d"

// badQuery is how a query of bad requests is composed. A query that finds nothing where there are requests means that
// none is bad, unless it computes its result from vectors of which one is missing.
type badQuery struct {
	// addends are what the query adds up, each of which may find nothing: the query itself if it is no sum.
	addends []string
	// operands are the vectors that the addends compute with.
	operands []string
	// ofAll is true if one of the operands is all requests, so that none of what is computed can be missing alone.
	ofAll bool
	// minuend and subtrahend are those of the only difference, if what is missing from the subtrahend is bad. A
	// histogram always has all of its buckets, so one that is missing says nothing.
	minuend, subtrahend string
}

// parseBad reads a query of bad requests, beside the one of all requests. ParseQuery accepts both.
func parseBad(bad, total string) badQuery {
	expr, badErr := ParseQuery(bad)
	all, totalErr := ParseQuery(total)
	if badErr != nil || totalErr != nil {
		return badQuery{addends: []string{bad}}
	}
	out, computed := badQuery{}, []*parser.BinaryExpr{}
	parts := addends(expr)
	for _, part := range parts {
		out.addends = append(out.addends, part.String())
		parser.Inspect(part, func(node parser.Node, _ []parser.Node) error {
			if binary, ok := node.(*parser.BinaryExpr); ok && computes(binary) {
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
	if requiresAll(all, sides) {
		return out
	}
	for _, side := range sides {
		if operand := summed(side).String(); !slices.Contains(out.operands, operand) {
			out.operands = append(out.operands, operand)
		}
	}
	out.ofAll = slices.Contains(out.operands, summed(all).String())
	if len(computed) == 1 && len(parts) == 1 && computed[0].Op == parser.SUB && !readsBuckets(computed[0].RHS) {
		out.minuend, out.subtrahend = summed(computed[0].LHS).String(), summed(computed[0].RHS).String()
	}
	return out
}

// requiresAll tells whether a query of all requests finds nothing where any of the operands is missing.
func requiresAll(total parser.Expr, operands []parser.Expr) bool {
	both, ok := total.(*parser.BinaryExpr)
	return ok && both.Op == parser.LAND && !slices.ContainsFunc(operands, func(operand parser.Expr) bool {
		return operand.String() != both.LHS.String() && operand.String() != both.RHS.String()
	})
}

// summed is what an expression sums by cluster, or the expression. It is summed by cluster wherever it is used.
func summed(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return summed(e.Expr)
	case *parser.AggregateExpr:
		if e.Op == parser.SUM && !e.Without && slices.Equal(e.Grouping, []string{series.Cluster}) {
			return summed(e.Expr)
		}
	}
	return expr
}

// addends are what an expression adds up, if the labels of its sides do not matter for the sum.
func addends(expr parser.Expr) []parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return addends(e.Expr)
	case *parser.BinaryExpr:
		if e.Op == parser.ADD && computes(e) && e.VectorMatching.Card == parser.CardOneToOne {
			return append(addends(e.LHS), addends(e.RHS)...)
		}
	}
	return []parser.Expr{expr}
}

// computes tells whether an operation finds nothing where one of two vectors is missing. Comparisons without bool are
// filters: that they find nothing is a result.
func computes(e *parser.BinaryExpr) bool {
	return e.LHS.Type() == parser.ValueTypeVector && e.RHS.Type() == parser.ValueTypeVector &&
		!e.Op.IsSetOperator() && (!e.Op.IsComparisonOperator() || e.ReturnBool)
}

// readsBuckets tells whether an expression reads buckets of a classic histogram.
func readsBuckets(expr parser.Expr) bool {
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

func byCluster(query string) string { return fmt.Sprintf("sum by (cluster) (%s)", query) }

// sum is the number of bad requests. Of several kinds, those that there are none of are none.
func (b badQuery) sum(total string) string {
	if len(b.addends) == 1 {
		return byCluster(b.addends[0])
	}
	parts := make([]string, len(b.addends))
	for i, addend := range b.addends {
		parts[i] = fmt.Sprintf("(%s or on (cluster) 0 * %s%s)", byCluster(addend), total, b.unlessOperands())
	}
	return "(" + strings.Join(parts, " + ") + ")"
}

// unlessOperands leaves out the clusters that have any of the operands.
func (b badQuery) unlessOperands() string {
	if len(b.operands) == 0 {
		return ""
	}
	all := make([]string, len(b.operands))
	for i, operand := range b.operands {
		all[i] = byCluster(operand)
	}
	return fmt.Sprintf(" unless on (cluster) (%s)", strings.Join(all, " or "))
}

// without are the slices where the query gives no share: without requests, and without bad ones. A number that is not
// finite is neither. If a difference has
// lost its subtrahend, all requests are bad, from so many per second on, on a cluster where the SLI has been measured:
// where it never was, the query may be wrong, and there are no slices.
func (b badQuery) without(of Operator, sli, total string, enough float64) string {
	out, bad := "", b.sum(total)
	if len(b.operands) > 0 {
		out = fmt.Sprintf("\nor on (cluster) 0 * %s == 0 unless on (cluster) 0 * %s != 0", bad, total)
	}
	if !b.ofAll {
		out += fmt.Sprintf("\nor on (cluster) 0 * %s == 0%s unless on (cluster) 0 * %s != 0", total, b.unlessOperands(),
			bad)
	}
	if b.subtrahend == "" {
		return out
	}
	isEnough := ">= bool " + number(enough)
	if enough == 0 {
		isEnough = "> bool 0"
	}
	return out + fmt.Sprintf("\nor on (cluster) (%s >= 0 %s\n  and on (cluster) %s\n  unless on (cluster) %s\n"+
		"  and on (cluster) last_over_time(%s{%s,%s=%q}[%s]))", total, isEnough, byCluster(b.minuend),
		byCluster(b.subtrahend), series.SLIBad, matchOperator(of.ID()), series.SLI, sli, measuredWithin)
}
