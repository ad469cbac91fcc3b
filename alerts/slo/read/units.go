// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// unit is the factor between a number and requests per second: 1 for a rate, and the seconds of
// the range for an increase. Zero is the unit of a constant, which is compatible with any unit.
type unit float64

const constantUnit unit = 0

// errUnit is returned if the unit of a query is unknown.
var errUnit = errors.New("its unit is not known")

// operationName matches the last part of a recording rule's name,
// level:metric:operations, if the operations define a unit.
var operationName = regexp.MustCompile(`^(?:(?:sum|avg|max|min)_)?(?:(i?rate)_?[0-9a-z]*|increase_?([0-9]+[smhdw]))$`)

// parseUnit reads a unit in the notation of recording rules: rate, or increase with its range.
func parseUnit(text string) (unit, error) {
	match := operationName.FindStringSubmatch(text)
	switch {
	case match == nil:
		return 0, fmt.Errorf("%w: the unit %q: write rate for requests per second, or increase5m for requests in 5 "+
			"minutes", ErrFormat, text)
	case match[1] != "":
		return 1, nil
	}
	d, err := model.ParseDuration(match[2])
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%w: the unit %q: %q is no duration", ErrFormat, text, match[2])
	}
	return unit(time.Duration(d).Seconds()), nil
}

// requestQuery is a query that gives requests per second.
type requestQuery struct {
	text string
	// note explains how the query was interpreted, if it does
	// not give requests per second by a function such as rate.
	note string
}

// readRequestQuery converts a query of requests to requests per second. The unit may be
// given; otherwise it must follow from the query. kind is the kind of requests, for messages.
func readRequestQuery(kind, text, givenUnit string) (requestQuery, error) {
	expr, err := slo.ParseQuery(text)
	if err != nil {
		return requestQuery{}, fmt.Errorf("%s: %w", kind, err)
	}
	if strings.Contains(text, "#") {
		text = expr.String() // a comment would end the query that this text is inserted into
	}
	source := "as the query says"
	u, err := readUnit(expr)
	if givenUnit != "" {
		source = "as the unit " + givenUnit + " says"
		u, err = parseUnit(givenUnit)
	}
	isConstant := err == nil && u == constantUnit
	switch {
	case errors.Is(err, errUnit) || isConstant:
		return requestQuery{}, fmt.Errorf("%s: %w: %q does not say whether it gives requests per second or in which "+
			"time (%w): use rate or increase, or a recording rule with a name such as job:requests:rate5m, or set the "+
			"unit; a share of requests is a raw ratio", kind, ErrUnsupported, text, errUnit)
	case err != nil:
		return requestQuery{}, fmt.Errorf("%s: %w", kind, err)
	case u != 1:
		number := strconv.FormatFloat(float64(u), 'g', -1, 64)
		return requestQuery{"(" + text + ") / " + number, fmt.Sprintf("%s are divided by %s to be requests per "+
			"second, %s", kind, number, source)}, nil
	case givenUnit != "" || !hasCall(expr, "rate", "irate"):
		if givenUnit == "" {
			source = "as the names of recording rules say"
		}
		return requestQuery{text, fmt.Sprintf("%s are taken for requests per second, %s", kind, source)}, nil
	}
	return requestQuery{text: text}, nil
}

// readUnit returns the unit of an expression, or errUnit.
func readUnit(expr parser.Expr) (unit, error) {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return readUnit(e.Expr)
	case *parser.UnaryExpr:
		return readUnit(e.Expr)
	case *parser.NumberLiteral:
		return constantUnit, nil
	case *parser.VectorSelector:
		return readNameUnit(e.Name)
	case *parser.MatrixSelector:
		return readUnit(e.VectorSelector)
	case *parser.SubqueryExpr:
		return readUnit(e.Expr)
	case *parser.AggregateExpr:
		// Other aggregations, such as count, change the unit.
		if slices.Contains([]parser.ItemType{parser.SUM, parser.AVG, parser.MAX, parser.MIN, parser.TOPK,
			parser.BOTTOMK, parser.QUANTILE, parser.LIMITK}, e.Op) {
			return readUnit(e.Expr)
		}
	case *parser.Call:
		return readCallUnit(e)
	case *parser.BinaryExpr:
		return readOperationUnit(e)
	}
	return 0, errUnit
}

// readNameUnit returns the unit from the name of a recording rule,
// which by convention ends with the operations that made it.
func readNameUnit(name string) (unit, error) {
	i := strings.LastIndex(name, ":")
	if i < 0 {
		return 0, errUnit
	}
	u, err := parseUnit(name[i+1:])
	if err != nil {
		return 0, errUnit
	}
	return u, nil
}

// Functions by their effect on a unit.
var (
	rateFunctions    = []string{"rate", "irate"}
	countFunctions   = []string{"increase", "delta", "changes", "resets", "count_over_time", "sum_over_time"}
	neutralFunctions = []string{"avg_over_time", "max_over_time", "min_over_time", "last_over_time", "histogram_count",
		"abs",
		"ceil", "floor", "round", "clamp", "clamp_min", "clamp_max", "label_replace", "label_join", "sort", "sort_desc",
		"scalar", "vector"}
)

// readCallUnit returns the unit of a function's result, or errUnit.
func readCallUnit(e *parser.Call) (unit, error) {
	switch name := e.Func.Name; {
	case slices.Contains(rateFunctions, name):
		return 1, nil
	case slices.Contains(countFunctions, name):
		if _, err := readUnit(e.Args[0]); err == nil {
			return 0, errUnit // the number of rates in the range is unknown
		}
		switch arg := e.Args[0].(type) {
		case *parser.MatrixSelector:
			return unit(arg.Range.Seconds()), nil
		case *parser.SubqueryExpr:
			return unit(arg.Range.Seconds()), nil
		}
	case slices.Contains(neutralFunctions, name):
		return readUnit(e.Args[0])
	}
	return 0, errUnit
}

// readOperationUnit returns the unit of a binary operation's result, or errUnit.
func readOperationUnit(e *parser.BinaryExpr) (unit, error) {
	left, leftErr := readUnit(e.LHS)
	right, rightErr := readUnit(e.RHS)
	isSum := e.Op == parser.ADD || e.Op == parser.SUB || e.Op == parser.LOR
	switch {
	case e.Op == parser.MUL || e.Op == parser.DIV:
		return readProductUnit(e, left, right, leftErr == nil, rightErr == nil)
	case e.Op == parser.LAND || e.Op == parser.LUNLESS || e.Op.IsComparisonOperator() && !e.ReturnBool:
		if e.LHS.Type() == parser.ValueTypeScalar { // the values of the result are the values of the vector
			return right, rightErr
		}
		return left, leftErr
	case !isSum || leftErr != nil || rightErr != nil:
		return 0, errUnit
	case left == right || right == constantUnit:
		return left, nil
	case left == constantUnit:
		return right, nil
	}
	return 0, errUnit
}

// readProductUnit returns the unit of a product or a quotient. One side
// must be a number, or have no unit, such as the 1 of an info series.
func readProductUnit(e *parser.BinaryExpr, left, right unit, hasLeft, hasRight bool) (unit, error) {
	factor, isFactor := readLiteral(e.RHS)
	otherUnit, hasOtherUnit := left, hasLeft
	if f, ok := readLiteral(e.LHS); ok && e.Op == parser.MUL {
		factor, isFactor, otherUnit, hasOtherUnit = f, true, right, hasRight
	}
	switch {
	case isFactor && (factor < 0 || factor == 0 && e.Op == parser.DIV): // the result is no number of requests
		return 0, errUnit
	case isFactor && factor == 0: // 0 requests are 0 in any unit
		return constantUnit, nil
	case isFactor && !hasOtherUnit:
		return 0, errUnit
	case isFactor && e.Op == parser.DIV:
		return otherUnit / unit(factor), nil
	case isFactor:
		return otherUnit * unit(factor), nil
	case hasLeft && !hasRight:
		return left, nil
	case !hasLeft && hasRight && e.Op == parser.MUL:
		return right, nil
	}
	return 0, errUnit
}

// readLiteral returns the value of a number. It returns false for other expressions.
func readLiteral(expr parser.Expr) (float64, bool) {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return readLiteral(e.Expr)
	case *parser.NumberLiteral:
		return e.Val, true
	}
	return 0, false
}
