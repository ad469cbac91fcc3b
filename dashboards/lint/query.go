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

// Kind is what asks a query.
type Kind string

// Kinds of queries.
const (
	OfPanel      Kind = "panel"
	OfAnnotation Kind = "annotation"
	// OfVariable is a query of a variable: the selector in label_values(selector, label).
	OfVariable Kind = "variable"
)

// Query is one query of a dashboard, with the dashboard's variables in it.
type Query struct {
	// Dashboard is its UID, and Where the title of the panel, or the name of the
	// annotation or variable.
	Dashboard, Where string
	Kind             Kind
	// Ref is the letter of a panel's query.
	Ref string
	// Expr is PromQL, once Expand has replaced the variables.
	Expr string
	// Instant queries are about the end of the time range only.
	Instant bool
}

// Queries returns all queries of a dashboard.
func Queries(d dashboards.Dashboard) []Query {
	uid := ptr.Deref(d.Uid, "")
	var out []Query
	for _, p := range panels(&d) {
		for _, t := range p.Targets {
			q, ok := query(t)
			if !ok {
				continue
			}
			out = append(out, Query{uid, titleOf(p), OfPanel, ptr.Deref(q.RefId, ""), q.Expr,
				ptr.Deref(q.Instant, false)})
		}
	}
	for _, a := range d.Annotations.List {
		out = append(out, Query{uid, a.Name, OfAnnotation, "", ptr.Deref(a.Expr, ""), false})
	}
	for _, v := range d.Templating.List {
		if selector, ok := valuesOf(v); ok {
			out = append(out, Query{uid, v.Name, OfVariable, "", selector, true})
		}
	}
	return out
}

// query is a target's query for Prometheus.
func query(target any) (prometheus.Dataquery, bool) {
	switch q := target.(type) {
	case prometheus.Dataquery:
		return q, true
	case *prometheus.Dataquery:
		return *q, true
	}
	return prometheus.Dataquery{}, false
}

var labelValues = regexp.MustCompile(`^label_values\((.+), *[a-z_]+\)$`)

// valuesOf is the selector whose label values a variable offers.
func valuesOf(v dashboard.VariableModel) (string, bool) {
	if v.Type != dashboard.VariableTypeQuery || v.Query == nil {
		return "", false
	}
	text := ptr.Deref(v.Query.String, "")
	if of, ok := v.Query.Map["query"].(string); ok {
		text = of
	}
	if m := labelValues.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return text, true
}

var variableUse = regexp.MustCompile(`\$(?:\{([a-zA-Z_]+)(?:[:.][^}]*)?\}|([a-zA-Z_]+))`)

// Expand replaces variables, as Grafana would, by values: those of the dashboard
// without the dollar, and Grafana's own such as __rate_interval. A variable
// without a value is one of many where all are chosen: it matches everything.
func Expand(expr string, values map[string]string) string {
	all := maps.Clone(map[string]string{"__interval": "1m", "__rate_interval": "5m", "__range": "1h"})
	maps.Copy(all, values)
	return variableUse.ReplaceAllStringFunc(expr, func(use string) string {
		if value, ok := all[used(use)]; ok {
			return value
		}
		return ".*"
	})
}

// used is the name in the use of a variable.
func used(use string) string {
	m := variableUse.FindStringSubmatch(use)
	return m[1] + m[2]
}

// uses are the names of variables in a text, without Grafana's own.
func uses(text string) []string {
	var out []string
	for _, m := range variableUse.FindAllString(text, -1) {
		if name := used(m); !strings.HasPrefix(name, "__") && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
