// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
)

// Kind is the part of a dashboard that makes a query.
type Kind string

// Kinds of queries.
const (
	KindPanel      Kind = "panel"
	KindAnnotation Kind = "annotation"
	// KindVariable is a query of a variable: the selector in label_values(selector, label).
	KindVariable Kind = "variable"
)

// Query is one query of a dashboard. It contains the dashboard's variables.
type Query struct {
	// Dashboard is the UID of the dashboard. Where is the title of the panel, or the name
	// of the annotation or variable.
	Dashboard, Where string
	Kind             Kind
	// Ref is the letter of a panel's query.
	Ref string
	// Expr is PromQL after Expand has replaced the variables.
	Expr string
	// Instant is set for queries that return only the value at the end of the time range.
	Instant bool
}

// ListQueries returns all queries of a dashboard.
func ListQueries(d dashboards.Dashboard) []Query {
	uid := ptr.Deref(d.Uid, "")
	var out []Query
	for _, p := range listPanels(&d) {
		for _, t := range p.Targets {
			q, ok := toQuery(t)
			if !ok {
				continue
			}
			out = append(out, Query{Dashboard: uid, Where: readTitle(p), Kind: KindPanel, Ref: ptr.Deref(q.RefId, ""),
				Expr: q.Expr, Instant: ptr.Deref(q.Instant, false)})
		}
	}
	for _, a := range d.Annotations.List {
		out = append(out, Query{Dashboard: uid, Where: a.Name, Kind: KindAnnotation, Expr: ptr.Deref(a.Expr, "")})
	}
	for _, v := range d.Templating.List {
		if selector, ok := readVariableSelector(v); ok {
			out = append(out, Query{Dashboard: uid, Where: v.Name, Kind: KindVariable, Expr: selector, Instant: true})
		}
	}
	return out
}

// toQuery returns the Prometheus query of a target; false if the target is of another kind.
func toQuery(target any) (prometheus.Dataquery, bool) {
	switch q := target.(type) {
	case prometheus.Dataquery:
		return q, true
	case *prometheus.Dataquery:
		return *q, true
	}
	return prometheus.Dataquery{}, false
}

var labelValues = regexp.MustCompile(`^label_values\((.+), *[a-z_]+\)$`)

// readVariableSelector returns the selector of a variable's query; false if the variable has no query.
func readVariableSelector(v dashboard.VariableModel) (string, bool) {
	if v.Type != dashboard.VariableTypeQuery || v.Query == nil {
		return "", false
	}
	text := ptr.Deref(v.Query.String, "")
	if selector, ok := v.Query.Map["query"].(string); ok {
		text = selector
	}
	if m := labelValues.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return text, true
}

var variableUse = regexp.MustCompile(`\$(?:\{([a-zA-Z_]+)(?:[:.][^}]*)?\}|([a-zA-Z_]+))`)

// Expand replaces the variables in a query by values, as Grafana does. values has the values by the name of the
// variable without the dollar sign. Grafana's own variables, such as __rate_interval, have defaults, which values can
// replace. Any other variable without a value is replaced by ".*", as if the user selected all values.
func Expand(expr string, values map[string]string) string {
	all := maps.Clone(map[string]string{"__interval": "1m", "__rate_interval": "5m", "__range": "1h"})
	maps.Copy(all, values)
	return variableUse.ReplaceAllStringFunc(expr, func(use string) string {
		if value, ok := all[readVariableName(use)]; ok {
			return value
		}
		return ".*"
	})
}

// readVariableName returns the name in a reference to a variable.
func readVariableName(use string) string {
	m := variableUse.FindStringSubmatch(use)
	return m[1] + m[2]
}

// listVariables returns the names of the variables in a text, without Grafana's own variables.
func listVariables(text string) []string {
	var out []string
	for _, m := range variableUse.FindAllString(text, -1) {
		if name := readVariableName(m); !strings.HasPrefix(name, "__") && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
