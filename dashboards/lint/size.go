// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// mostSeries is how many series a panel may draw of those that grow with the
// number of clusters.
const mostSeries = 40

// ofFleet are labels with a value for each cluster, or several.
var ofFleet = []string{series.Cluster, "instance", "pod"}

// drawn are the kinds of panels that draw each series. A table can be scrolled and
// sorted.
var drawn = []string{"timeseries", "state-timeline", "status-history", "bargauge", "stat"}

var limited = regexp.MustCompile(`\b(?:topk|bottomk)\(([0-9]+),`)

// sizes looks at dashboards of several clusters: no panel may draw a series for
// each of them.
func (c *checker) sizes() {
	if v := variable(c.d, series.Cluster); v == nil || !ptr.Deref(v.Multi, false) {
		return
	}
	for _, p := range panels(c.d) {
		if !slices.Contains(drawn, p.Type) {
			continue
		}
		for _, t := range p.Targets {
			if q, ok := query(t); ok {
				c.size(titleOf(p), ptr.Deref(p.Description, ""), q.Expr, ptr.Deref(q.LegendFormat, ""))
			}
		}
	}
}

// size looks at one query.
func (c *checker) size(where, description, expr, legend string) {
	if limit := limited.FindStringSubmatch(expr); limit != nil {
		n, err := strconv.Atoi(limit[1])
		switch {
		case err != nil || n > mostSeries:
			c.find(where, "it draws %s series: choose at most %d", limit[1], mostSeries)
		case !regexp.MustCompile(`\b` + limit[1] + `\b`).MatchString(description):
			c.find(where, "the description has to say that it shows %s", limit[1])
		}
		return
	}
	for _, label := range ofFleet {
		if strings.Contains(legend, "{{"+label+"}}") || slices.Contains(resultLabels(expr), label) {
			c.find(where, "it draws a series for each %s: aggregate them, or choose some with topk(10, ...)", label)
			return
		}
	}
}

// resultLabels are the labels of what a query returns, as far as its first
// aggregation tells, or otherwise its first series.
func resultLabels(expr string) []string {
	all := tokens(token.FindAllString(expr, -1))
	for i, name := range all {
		switch {
		case isAggregation(name) && all.at(i+1) == "without":
			return without(all.labels(i + 1))
		case isAggregation(name) && all.at(i+1) == "by":
			return all.labels(i + 1)
		case isAggregation(name):
			return nil
		case all.isSeries(i):
			labels, _ := known(name)
			return labels
		}
	}
	return nil
}

// labels are those in the parentheses after a token.
func (ts tokens) labels(i int) []string {
	var out []string
	for _, t := range ts[i:ts.skipLabels(i)] {
		if isName.MatchString(t) {
			out = append(out, t)
		}
	}
	return out
}

// without are the labels of a fleet that an aggregation leaves.
func without(dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(ofFleet), func(l string) bool { return slices.Contains(dropped, l) })
}
