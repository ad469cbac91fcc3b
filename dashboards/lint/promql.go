// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strings"
)

// selector is a use of a series in a query.
type selector struct {
	name string
	// matchers is what is between its braces.
	matchers string
	// function is what is applied to it directly, if it is a range.
	function string
	ranged   bool
}

// Tokens of PromQL, as far as it takes to find selectors: strings, braces and
// ranges as a whole, numbers with their units, and names.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'` +
	`|\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\}` +
	`|\[[^\]]*\]|[0-9][0-9.a-z]*|[a-zA-Z_:][a-zA-Z0-9_:]*|\S`)

var (
	operators = []string{"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}
	groupings = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	isName    = regexp.MustCompile(`^[a-zA-Z_:]`)
)

// selectors finds the series that a query reads. It takes a query to be valid.
func selectors(expr string) []selector {
	all := tokens(token.FindAllString(expr, -1))
	var out []selector
	for i := 0; i < len(all); i++ {
		switch {
		case slices.Contains(groupings, all[i]):
			i = all.skipLabels(i)
		case all.isSeries(i):
			out = append(out, all.selector(i))
		}
	}
	return out
}

// tokens of a query.
type tokens []string

// at is a token, or nothing before the first and after the last.
func (ts tokens) at(i int) string {
	if i < 0 || i >= len(ts) {
		return ""
	}
	return ts[i]
}

// isSeries tells a series from functions, aggregations, operators and all the rest.
func (ts tokens) isSeries(i int) bool {
	name, next := ts[i], ts.at(i+1)
	applied := next == "(" || (isAggregation(name) && slices.Contains(groupings, next))
	return isName.MatchString(name) && !slices.Contains(operators, name) && !applied
}

// selector is that of the series whose name is at i.
func (ts tokens) selector(i int) selector {
	s := selector{name: ts[i]}
	next := ts.at(i + 1)
	if strings.HasPrefix(next, "{") {
		s.matchers = strings.Trim(next, "{}")
		next = ts.at(i + 2)
	}
	s.ranged = strings.HasPrefix(next, "[")
	if function := ts.at(i - 2); ts.at(i-1) == "(" && isName.MatchString(function) {
		s.function = function
	}
	return s
}

// skipLabels returns the index of the last token of a grouping.
func (ts tokens) skipLabels(i int) int {
	if ts.at(i+1) != "(" {
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
