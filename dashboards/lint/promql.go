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
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\}|\[[^\]]*\]|[0-9][0-9.a-z]*|[a-zA-Z_:][a-zA-Z0-9_:]*|\S`)

var (
	operators = []string{"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}
	groupings = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	isName    = regexp.MustCompile(`^[a-zA-Z_:]`)
)

// selectors finds the series that a query reads. It takes a query to be valid.
func selectors(expr string) []selector {
	tokens := token.FindAllString(expr, -1)
	at := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return tokens[i]
	}
	var out []selector
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case slices.Contains(groupings, t):
			i = skipLabels(tokens, i)
		case !isName.MatchString(t), slices.Contains(operators, t), at(i+1) == "(", slices.Contains(groupings, at(i+1)) && isAggregation(t):
		default:
			s := selector{name: t}
			next := i + 1
			if strings.HasPrefix(at(next), "{") {
				s.matchers = strings.Trim(at(next), "{}")
				next++
			}
			if strings.HasPrefix(at(next), "[") {
				s.ranged = true
			}
			if at(i-1) == "(" && isName.MatchString(at(i-2)) {
				s.function = at(i - 2)
			}
			out = append(out, s)
		}
	}
	return out
}

// skipLabels returns the index of the last token of a grouping.
func skipLabels(tokens []string, i int) int {
	if i+1 >= len(tokens) || tokens[i+1] != "(" {
		return i
	}
	for i < len(tokens) && tokens[i] != ")" {
		i++
	}
	return i
}

func isAggregation(name string) bool {
	return slices.Contains([]string{"sum", "min", "max", "avg", "count", "group", "topk", "bottomk", "stddev", "stdvar", "count_values", "quantile"}, name)
}
