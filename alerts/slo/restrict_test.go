// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

var tenant = slo.Scope{Clusters: "a|b", Namespace: "echo", OperatorNamespace: "team"}

// TestQueriesOfTenants checks that a query reads only the
// clusters of its wave and its own namespace, in any notation.
func TestQueriesOfTenants(t *testing.T) {
	const ours, theirs = `cluster=~"a|b",operator_namespace="team"`, `cluster=~"a|b",namespace="echo"`
	for query, want := range map[string]string{
		"up":                          "up{" + theirs + "}",
		`sum(rate(errors_total[5m]))`: "sum(rate(errors_total{" + theirs + "}[5m]))",
		`sum(bellwether:sli_bad:slice{sli="csv"})`: `sum(bellwether:sli_bad:slice{` + ours + `,sli="csv"})`,
		`{__name__="bellwether_operator_info"}`:    `{__name__="bellwether_operator_info",` + ours + `}`,
		`secret{namespace="other"}`:                `secret{` + theirs + `,namespace="other"}`,
		`label_replace(up,"cluster","x","","")`:    `label_replace(up{` + theirs + `}, "cluster", "x", "", "")`,
		"probe_success":                            "probe_success{" + ours + "}",
		`vector(1) unless on () up`:                `vector(1) unless on () up{` + theirs + `}`,
		`up # ${clusters}`:                         "up{" + theirs + "}",
		`1 + scalar(up)`:                           "1 + scalar(up{" + theirs + "})",
		`max_over_time(up[1h:1m])`:                 "max_over_time(up{" + theirs + "}[1h:1m])",
		`{__name__=~".+"}`:                         "error: names no series",
		`count({__name__=~".+",cluster=~"a"})`:     "error: names no series",
		`{cluster="a"}`:                            "error: names no series",
		`max_over_time(up[30d:1s])`:                "error: 31d and 11000 steps",
		`max_over_time(up[1y])`:                    "error: the limit is 31d",
		`up[5m]`:                                   "error: one number is needed",
		`"text"`:                                   "error: one number is needed",
		`sum(`:                                     "error: unclosed left parenthesis",
	} {
		got, err := slo.Restrict(query, tenant)
		if says, fails := strings.CutPrefix(want, "error: "); fails {
			if !errors.Is(err, slo.ErrQuery) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q, %v, want an error that says %q", query, got, err, says)
			}
			continue
		}
		if err != nil || sorted(t, got) != sorted(t, want) {
			t.Errorf("%s becomes\n%s, %v, want\n%s", query, got, err, want)
		}
	}
}

// TestQueriesOfPolicies checks that queries of the hub's administrators may read everything, within limits.
func TestQueriesOfPolicies(t *testing.T) {
	got, err := slo.Restrict(`count({__name__=~"up|down"})`, slo.Scope{})
	if err != nil || got != `count({__name__=~"up|down"})` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := slo.Restrict(`max_over_time(up[30d:1s])`, slo.Scope{}); !errors.Is(err, slo.ErrQuery) {
		t.Errorf("many steps: %v", err)
	}
}

// TestFew keeps what reports whether a result is one number.
func TestFew(t *testing.T) {
	for query, want := range map[string]string{"up or down": "topk(2, up or down)", "scalar(up)": "scalar(up)",
		"1": "1"} {
		if got := slo.LimitResult(query); got != want {
			t.Errorf("%s becomes %s, want %s", query, got, want)
		}
	}
}

// sorted is a query without an order of matchers.
func sorted(t *testing.T, query string) string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Fatal(err)
	}
	return expr.String()
}

func FuzzRestrict(f *testing.F) {
	for _, query := range []string{"up", `sum by (x) (rate(a{b="c"}[5m] offset 1m)) / on (x) group_left () b @ 0`,
		`{__name__="a"}`, `{"quoted name"}`, `a{"b.c"="d"}`, `(a or b)[1h:5m]`} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := slo.Restrict(query, tenant)
		if err != nil {
			return
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(got)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", query, got, err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			s, ok := node.(*parser.VectorSelector)
			isOfTenant := ok && (has(s, "namespace", "echo") || has(s, "operator_namespace", "team"))
			if ok && (!isOfTenant || !has(s, "cluster", "a|b")) {
				t.Errorf("%q becomes %q, in which %s is not restricted", query, got, s)
			}
			return nil
		})
	})
}

func has(s *parser.VectorSelector, label, value string) bool {
	for _, m := range s.LabelMatchers {
		if m.Name == label && m.Value == value && (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp) {
			return true
		}
	}
	return false
}
