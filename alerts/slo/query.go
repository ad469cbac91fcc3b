// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// ErrQuery is wrapped by errors about queries that Prometheus would refuse, and
// about those whose result is not an instant vector.
var ErrQuery = errors.New("invalid query")

// ParseQuery parses PromQL as Prometheus does without experimental features. A
// rule file with a query that does not parse is refused as a whole.
func ParseQuery(text string) (parser.Expr, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrQuery)
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrQuery, text, err)
	}
	if t := expr.Type(); t != parser.ValueTypeVector {
		return nil, fmt.Errorf("%w %q: it gives a %s; an instant vector is needed", ErrQuery, text,
			parser.DocumentedType(t))
	}
	return expr, nil
}

// CheckQuery says what is wrong with a query.
func CheckQuery(text string) error {
	_, err := ParseQuery(text)
	return err
}
