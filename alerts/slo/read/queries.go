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

// ofRequests is an SLI of bad requests and all requests. The notes say how queries were understood.
func ofRequests(name string, bad, total requestQuery) (sli slo.OwnSLI, notes []string) {
	for _, q := range []requestQuery{bad, total} {
		if q.note != "" && !slices.Contains(notes, q.note) {
			notes = append(notes, q.note)
		}
	}
	return slo.OwnSLI{Name: name, Bad: bad.text, Total: total.text}, notes
}

// ofRatio is an SLI of a share of bad requests that was computed before. How many
// requests there were is not known, so every minute weighs the same.
func ofRatio(name, ratio string) (slo.OwnSLI, error) {
	expr, err := slo.ParseQuery(ratio)
	if err == nil && strings.Contains(ratio, "#") {
		ratio = expr.String() // a comment would end what the query is put into
	}
	return slo.OwnSLI{Name: name, Ratio: ratio, Method: slo.RatioTimeslices}, err
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
