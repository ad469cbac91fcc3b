// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strings"
)

// selector is a series in a query.
type selector struct {
	name string
	// matchers is the text between the braces.
	matchers string
	// function is the function that is applied directly to the selector; empty if there is none.
	function string
	// ranged is set if the selector has a range.
	ranged bool
}

// token matches the tokens of PromQL that are necessary to find selectors: strings, whole braces, whole ranges, numbers
// with their units, and names.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'` +
	`|\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\}` +
	`|\[[^\]]*\]|[0-9][0-9.a-z]*|[a-zA-Z_:][a-zA-Z0-9_:]*|\S`)

var (
	keywords  = []string{"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}
	groupings = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	isName    = regexp.MustCompile(`^[a-zA-Z_:]`)
)

// findSelectors returns the series that a query reads. The query must be valid.
func findSelectors(expr string) []selector {
	all := tokens(token.FindAllString(expr, -1))
	var out []selector
	for i := 0; i < len(all); i++ {
		switch {
		case slices.Contains(groupings, all[i]):
			i = all.skipLabels(i)
		case all.isSeries(i):
			out = append(out, all.readSelector(i))
		}
	}
	return out
}

// tokens are the tokens of a query.
type tokens []string

// get returns token i; empty if i is before the first or after the last token.
func (ts tokens) get(i int) string {
	if i < 0 || i >= len(ts) {
		return ""
	}
	return ts[i]
}

// isSeries reports whether token i is the name of a series, and not of a function, an aggregation or an operator. The
// labels of groupings must be skipped before.
func (ts tokens) isSeries(i int) bool {
	name, next := ts[i], ts.get(i+1)
	isCall := next == "(" || (isAggregation(name) && slices.Contains(groupings, next))
	return isName.MatchString(name) && !slices.Contains(keywords, name) && !isCall
}

// readSelector returns the selector of the series whose name is token i.
func (ts tokens) readSelector(i int) selector {
	s := selector{name: ts[i]}
	next := ts.get(i + 1)
	if strings.HasPrefix(next, "{") {
		s.matchers = strings.Trim(next, "{}")
		next = ts.get(i + 2)
	}
	s.ranged = strings.HasPrefix(next, "[")
	// The token before the opening parenthesis can also be an operator, which is not a name.
	if function := ts.get(i - 2); ts.get(i-1) == "(" && isName.MatchString(function) {
		s.function = function
	}
	return s
}

// skipLabels returns the index of the last token of the grouping that begins at token i; i if the grouping has no
// parentheses.
func (ts tokens) skipLabels(i int) int {
	if ts.get(i+1) != "(" {
		return i
	}
	for i < len(ts) && ts[i] != ")" {
		i++
	}
	return i
}

func isAggregation(name string) bool {
	return slices.Contains([]string{"sum", "min", "max", "avg", "count", "group", "topk", "bottomk", "stddev", "stdvar",
		"count_values", "quantile"}, name)
}
