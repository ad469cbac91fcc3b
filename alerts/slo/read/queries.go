// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// newRequestSLI returns an SLI from queries of bad requests and of
// all requests. The notes explain how the queries were interpreted.
func newRequestSLI(name string, bad, total requestQuery) (sli slo.OwnSLI, notes []string) {
	for _, q := range []requestQuery{bad, total} {
		if q.note != "" && !slices.Contains(notes, q.note) {
			notes = append(notes, q.note)
		}
	}
	return slo.OwnSLI{Name: name, Bad: bad.text, Total: total.text}, notes
}

// newRatioSLI returns an SLI from a share of bad requests that was computed
// before. The number of requests is unknown, so every minute has the same weight.
func newRatioSLI(name, ratio string) (slo.OwnSLI, error) {
	expr, err := slo.ParseQuery(ratio)
	if err == nil && strings.Contains(ratio, "#") {
		ratio = expr.String() // a comment would end the query that this text is inserted into
	}
	return slo.OwnSLI{Name: name, Ratio: ratio, Method: slo.RatioTimeslices}, err
}

// hasCall reports whether an expression calls one of the functions.
func hasCall(expr parser.Expr, functions ...string) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if call, ok := node.(*parser.Call); ok {
			found = found || slices.Contains(functions, call.Func.Name)
		}
		return nil
	})
	return found
}

// parseMinRequests reads OwnSLI.MinRequests. An empty text returns 0. An SLI from a ratio cannot have a minimum.
func parseMinRequests(text string, isRatio bool) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %q is not a number of requests", ErrFormat, text)
	}
	if isRatio {
		return 0, fmt.Errorf("%w: a ratio does not tell how many requests there were", ErrUnsupported)
	}
	return n, nil
}
