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

// maxSeries is the highest number of series that a panel may draw, if the number grows with the number of clusters.
const maxSeries = 40

// fleetLabels are labels with at least one value for each cluster.
var fleetLabels = []string{series.Cluster, "instance", "pod"}

// seriesPanels are the kinds of panels that draw each series. Tables are not limited, because the
// user can scroll and sort a table.
var seriesPanels = []string{"timeseries", "state-timeline", "status-history", "bargauge", "stat"}

var limitFunction = regexp.MustCompile(`\b(?:topk|bottomk)\(([0-9]+),`)

// checkSizes checks dashboards of several clusters: no panel may draw a series for each cluster.
func (c *checker) checkSizes() {
	if v := findVariable(c.d, series.Cluster); v == nil || !ptr.Deref(v.Multi, false) {
		return
	}
	for _, p := range listPanels(c.d) {
		if !slices.Contains(seriesPanels, p.Type) {
			continue
		}
		for _, t := range p.Targets {
			if q, ok := toQuery(t); ok {
				c.checkSize(readTitle(p), ptr.Deref(p.Description, ""), q.Expr, ptr.Deref(q.LegendFormat, ""))
			}
		}
	}
}

// checkSize checks one query of a panel: it must have a limit of at most maxSeries that the description names, or
// no label of fleetLabels in its legend or its result.
func (c *checker) checkSize(where, description, expr, legend string) {
	if limit := limitFunction.FindStringSubmatch(expr); limit != nil {
		n, err := strconv.Atoi(limit[1])
		switch {
		case err != nil || n > maxSeries:
			c.addFinding(where, "it draws %s series: choose at most %d", limit[1], maxSeries)
		case !regexp.MustCompile(`\b` + limit[1] + `\b`).MatchString(description):
			c.addFinding(where, "the description must say that it shows %s", limit[1])
		}
		return
	}
	for _, label := range fleetLabels {
		if strings.Contains(legend, "{{"+label+"}}") || slices.Contains(findResultLabels(expr), label) {
			c.addFinding(where, "it draws a series for each %s: aggregate them, or choose some with topk(10, ...)",
				label)
			return
		}
	}
}

// findResultLabels returns the labels of a query's result. It reads only the first aggregation or, without an
// aggregation, the first series.
func findResultLabels(expr string) []string {
	all := tokens(token.FindAllString(expr, -1))
	for i, name := range all {
		switch {
		case isAggregation(name) && all.get(i+1) == "without":
			return dropLabels(all.listLabels(i + 1))
		case isAggregation(name) && all.get(i+1) == "by":
			return all.listLabels(i + 1)
		case isAggregation(name):
			return nil
		case all.isSeries(i):
			labels, _ := findLabels(name)
			return labels
		}
	}
	return nil
}

// listLabels returns the labels in the parentheses of the grouping that begins at token i.
func (ts tokens) listLabels(i int) []string {
	var out []string
	for _, t := range ts[i:ts.skipLabels(i)] {
		if isName.MatchString(t) {
			out = append(out, t)
		}
	}
	return out
}

// dropLabels returns the labels of fleetLabels that are not in dropped.
func dropLabels(dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(fleetLabels), func(l string) bool { return slices.Contains(dropped, l) })
}
