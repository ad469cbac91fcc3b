// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// ErrQuery is wrapped by errors about queries that Prometheus would
// refuse, and about queries whose result is not an instant vector.
var ErrQuery = errors.New("invalid query")

// ParseQuery parses PromQL as Prometheus does without experimental features.
// Prometheus refuses a whole rule file if one of its queries does not parse.
// It also returns an error for a query whose result is not an instant vector.
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

// CheckQuery returns an error if a query is invalid.
func CheckQuery(text string) error {
	_, err := ParseQuery(text)
	return err
}
