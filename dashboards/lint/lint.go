// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint checks that dashboards are useful for people on call: every panel has a unit, a title and a description
// that says what to do; all queries use the selected data source, cluster and operator; missing measurements are
// visible; and every metric and every link exists.
//
// The input is Grafana's classic model, the output findings. The package finds only the selectors in PromQL. Whether
// queries are valid and have results is tested with a real Prometheus, for which Queries returns the queries. The
// package is pure: it reads no files and makes no connections.
package lint

import (
	"fmt"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
)

// Finding is a problem of a dashboard.
type Finding struct {
	// Rule is the name of the rule that the dashboard breaks.
	Rule string
	// Dashboard is the UID, and Where the panel, variable or annotation. Where is empty if the finding
	// is about the dashboard itself.
	Dashboard, Where string
	// Message is what is wrong and what to do.
	Message string
}

// String returns the finding in one line.
func (f Finding) String() string {
	where := f.Dashboard
	if f.Where != "" {
		where += ", " + f.Where
	}
	return fmt.Sprintf("%s: %s [%s]", where, f.Message, f.Rule)
}

// Rule is one requirement for dashboards.
type Rule struct {
	Name string
	// Why is the reason for the rule, in one sentence.
	Why   string
	check func(*checker)
}

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{
		{"identity", "Links and bookmarks go by UID, and people by titles.", (*checker).checkIdentity},
		{"title", "A panel without a title cannot be talked about, and two with the same one neither.",
			(*checker).checkTitles},
		{"description", "People on call need to know what a panel shows and what to do about it: two sentences.",
			(*checker).checkDescriptions},
		{"unit", "A number without a unit is a riddle.", (*checker).checkUnits},
		{"datasource", "A dashboard that names a data source works in one Grafana only.", (*checker).checkDatasources},
		{"variables", "Every dashboard is by cluster; a variable that nothing uses misleads, and one that does not " +
			"exist matches nothing.", (*checker).checkVariables},
		{"metric", "A panel of a series that is not exported is always empty.", (*checker).checkMetrics},
		{"selection", "A query that ignores the chosen cluster or operator shows the numbers of others.",
			(*checker).checkSelections},
		{"operator", "Operators of one name in two namespaces are two operators.", (*checker).checkOperators},
		{"counter", "The value of a counter says nothing, its rate does.", (*checker).checkCounters},
		{"size", "A fleet has hundreds of clusters: a panel that draws a series for each of them shows nothing.",
			(*checker).checkSizes},
		{"legend", "Lines need names.", (*checker).checkLegends},
		{"nodata", "An empty panel must say whether that is good.", (*checker).checkNoData},
		{"nulls", "A gap that is drawn over looks like a measurement.", (*checker).checkNulls},
		{"thresholds", "Grafana takes thresholds in order, the first without a bound.", (*checker).checkThresholds},
		{"instant", "A number or a table is about now; a line is not.", (*checker).checkInstants},
		{"layout", "Panels fill 24 columns, and do not cover each other.", (*checker).checkLayout},
		{"columns", "A column that no query fills is empty, and one without a title has a technical one.",
			(*checker).checkTableColumns},
		{"links", "A link must lead to a dashboard that exists, with variables that it has, at the same time.",
			(*checker).checkLinks},
		{"annotation", "A mark must say what happened.", (*checker).checkAnnotations},
	}
}

// Check returns all findings about dashboards that link to each other.
func Check(all []dashboards.Dashboard) []Finding {
	var out []Finding
	for i := range all {
		c := &checker{all: all, d: &all[i], queries: ListQueries(all[i])}
		for _, r := range Rules() {
			c.rule = r.Name
			r.check(c)
		}
		out = append(out, c.found...)
	}
	return out
}

// checker checks one dashboard. all are the dashboards that its links can name.
type checker struct {
	all     []dashboards.Dashboard
	d       *dashboards.Dashboard
	queries []Query
	rule    string
	found   []Finding
}

// addFinding adds a finding of the current rule.
func (c *checker) addFinding(where, format string, args ...any) {
	c.found = append(c.found, Finding{Rule: c.rule, Dashboard: ptr.Deref(c.d.Uid, ""), Where: where,
		Message: fmt.Sprintf(format, args...)})
}

// listPanels returns all panels, also the panels within rows.
func listPanels(d *dashboards.Dashboard) []*dashboard.Panel {
	var out []*dashboard.Panel
	for i := range d.Panels {
		if p := d.Panels[i].Panel; p != nil {
			out = append(out, p)
		}
		if r := d.Panels[i].RowPanel; r != nil {
			for j := range r.Panels {
				out = append(out, &r.Panels[j])
			}
		}
	}
	return out
}

func readTitle(p *dashboard.Panel) string { return ptr.Deref(p.Title, "") }

// findVariable returns a variable by its name; nil if there is none.
func findVariable(d *dashboards.Dashboard, name string) *dashboard.VariableModel {
	i := slices.IndexFunc(d.Templating.List, func(v dashboard.VariableModel) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Templating.List[i]
}
