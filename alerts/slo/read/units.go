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

// unit is how many times requests per second a number is: 1 for a rate, and the seconds of the range for an increase.
// Zero is that of a constant, which fits to any.
type unit float64

const ofConstants unit = 0

// errUnit says that a unit does not follow from a query.
var errUnit = errors.New("its unit is not known")

// recorded matches what the name of a recording rule says of the operations that made it: level:metric:operations.
var recorded = regexp.MustCompile(`^(?:(?:sum|avg|max|min)_)?(?:(i?rate)_?[0-9a-z]*|increase_?([0-9]+[smhdw]))$`)

// parseUnit reads a unit as the names of recording rules have it: rate, or increase with its range.
func parseUnit(text string) (unit, error) {
	match := recorded.FindStringSubmatch(text)
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

// requestQuery is a query of requests as requests per second.
type requestQuery struct {
	text string
	// note says how it was understood, if it does not give requests per second by a function such as rate.
	note string
}

// perSecond reads a query of requests. The unit may be given; otherwise it has to follow from the query.
func perSecond(of, text, given string) (requestQuery, error) {
	expr, err := slo.ParseQuery(text)
	if err != nil {
		return requestQuery{}, fmt.Errorf("%s: %w", of, err)
	}
	if strings.Contains(text, "#") {
		text = expr.String() // a comment would end what the query is put into
	}
	source := "as the query says"
	u, err := unitOf(expr)
	if given != "" {
		source = "as the unit " + given + " says"
		u, err = parseUnit(given)
	}
	switch {
	case errors.Is(err, errUnit) || err == nil && u == ofConstants:
		return requestQuery{}, fmt.Errorf("%s: %w: %q does not say whether it gives requests per second or in which "+
			"time (%w): use rate or increase, or a recording rule with a name such as job:requests:rate5m, or set the "+
			"unit; a share of requests is a raw ratio", of, ErrUnsupported, text, errUnit)
	case err != nil:
		return requestQuery{}, fmt.Errorf("%s: %w", of, err)
	case u != 1:
		number := strconv.FormatFloat(float64(u), 'g', -1, 64)
		return requestQuery{"(" + text + ") / " + number, fmt.Sprintf("%s are divided by %s to be requests per "+
			"second, %s", of, number, source)}, nil
	case given != "" || !calls(expr, "rate", "irate"):
		if given == "" {
			source = "as the names of recording rules say"
		}
		return requestQuery{text, fmt.Sprintf("%s are taken for requests per second, %s", of, source)}, nil
	}
	return requestQuery{text: text}, nil
}

// unitOf returns the unit of an expression, or errUnit.
func unitOf(expr parser.Expr) (unit, error) {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return unitOf(e.Expr)
	case *parser.UnaryExpr:
		return unitOf(e.Expr)
	case *parser.NumberLiteral:
		return ofConstants, nil
	case *parser.VectorSelector:
		return unitOfName(e.Name)
	case *parser.MatrixSelector:
		return unitOf(e.VectorSelector)
	case *parser.SubqueryExpr:
		return unitOf(e.Expr)
	case *parser.AggregateExpr:
		if slices.Contains([]parser.ItemType{parser.SUM, parser.AVG, parser.MAX, parser.MIN, parser.TOPK,
			parser.BOTTOMK, parser.QUANTILE, parser.LIMITK}, e.Op) {
			return unitOf(e.Expr)
		}
	case *parser.Call:
		return unitOfCall(e)
	case *parser.BinaryExpr:
		return unitOfOperation(e)
	}
	return 0, errUnit
}

// unitOfName reads the name of a recording rule, which by convention ends with the operations that made it.
func unitOfName(name string) (unit, error) {
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

// Functions by what they do to a unit.
var (
	ratesOf   = []string{"rate", "irate"}
	countsOf  = []string{"increase", "delta", "changes", "resets", "count_over_time", "sum_over_time"}
	unchanged = []string{"avg_over_time", "max_over_time", "min_over_time", "last_over_time", "histogram_count", "abs",
		"ceil", "floor", "round", "clamp", "clamp_min", "clamp_max", "label_replace", "label_join", "sort", "sort_desc",
		"scalar", "vector"}
)

func unitOfCall(e *parser.Call) (unit, error) {
	switch name := e.Func.Name; {
	case slices.Contains(ratesOf, name):
		return 1, nil
	case slices.Contains(countsOf, name):
		if _, err := unitOf(e.Args[0]); err == nil {
			return 0, errUnit // how many rates are in the range is not known
		}
		switch arg := e.Args[0].(type) {
		case *parser.MatrixSelector:
			return unit(arg.Range.Seconds()), nil
		case *parser.SubqueryExpr:
			return unit(arg.Range.Seconds()), nil
		}
	case slices.Contains(unchanged, name):
		return unitOf(e.Args[0])
	}
	return 0, errUnit
}

func unitOfOperation(e *parser.BinaryExpr) (unit, error) {
	left, leftErr := unitOf(e.LHS)
	right, rightErr := unitOf(e.RHS)
	switch {
	case e.Op == parser.MUL || e.Op == parser.DIV:
		return unitOfProduct(e, left, right, leftErr == nil, rightErr == nil)
	case e.Op == parser.LAND || e.Op == parser.LUNLESS || e.Op.IsComparisonOperator() && !e.ReturnBool:
		if e.LHS.Type() == parser.ValueTypeScalar {
			return right, rightErr
		}
		return left, leftErr
	case e.Op != parser.ADD && e.Op != parser.SUB && e.Op != parser.LOR || leftErr != nil || rightErr != nil:
		return 0, errUnit
	case left == right || right == ofConstants:
		return left, nil
	case left == ofConstants:
		return right, nil
	}
	return 0, errUnit
}

// unitOfProduct multiplies by a number, or by what has no unit, such as the 1 of an info series.
func unitOfProduct(e *parser.BinaryExpr, left, right unit, hasLeft, hasRight bool) (unit, error) {
	factor, isFactor := literal(e.RHS)
	known, has := left, hasLeft
	if f, ok := literal(e.LHS); ok && e.Op == parser.MUL {
		factor, isFactor, known, has = f, true, right, hasRight
	}
	switch {
	case isFactor && (factor < 0 || factor == 0 && e.Op == parser.DIV):
		return 0, errUnit
	case isFactor && factor == 0:
		return ofConstants, nil
	case isFactor && !has:
		return 0, errUnit
	case isFactor && e.Op == parser.DIV:
		return known / unit(factor), nil
	case isFactor:
		return known * unit(factor), nil
	case hasLeft && !hasRight:
		return left, nil
	case !hasLeft && hasRight && e.Op == parser.MUL:
		return right, nil
	}
	return 0, errUnit
}

// literal is the value of a number.
func literal(expr parser.Expr) (float64, bool) {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return literal(e.Expr)
	case *parser.NumberLiteral:
		return e.Val, true
	}
	return 0, false
}
