// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// ofRequests is an SLI of bad requests and all requests. What the queries give may
// be rates, or numbers in the time that they look back.
func ofRequests(name, bad, total string) (slo.OwnSLI, error) {
	out := slo.OwnSLI{Name: name, Bad: bad, Total: total}
	areRates := true
	for _, query := range []struct{ of, text string }{{"bad requests", bad}, {"all requests", total}} {
		expr, err := slo.ParseQuery(query.text)
		if err != nil {
			return out, fmt.Errorf("%s: %w", query.of, err)
		}
		areRates = areRates && calls(expr, "rate", "irate")
	}
	if !areRates {
		perSecond := fmt.Sprintf(") / %v", slo.LookbackFor.Seconds())
		out.Bad, out.Total = "("+bad+perSecond, "("+total+perSecond
	}
	return out, nil
}

// ofRatio is an SLI of a share of bad requests that was computed before. How many
// requests there were is not known, so every minute weighs the same.
func ofRatio(name, ratio string) (slo.OwnSLI, error) {
	return slo.OwnSLI{Name: name, Bad: ratio, Total: "0 * (" + ratio + ") + 1", Method: slo.RatioTimeslices},
		slo.CheckQuery(ratio)
}

// calls tells whether an expression calls one of some functions.
func calls(expr parser.Expr, functions ...string) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if call, ok := node.(*parser.Call); ok {
			found = found || slices.Contains(functions, call.Func.Name)
		}
		return nil
	})
	return found
}

// minRequests reads OwnSLI.MinRequests. Empty is none. An SLI of ofRatio can have
// none.
func minRequests(text string, isRatio bool) (int, error) {
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
