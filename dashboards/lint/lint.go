// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint holds dashboards to what makes them useful at three in the
// morning: every panel has a unit, a title and a description that says what to
// do; everything goes by the chosen data source, cluster and operator; what is
// not measured is shown as such; every metric and every link exists.
//
// The input is Grafana's classic model, the output findings. The package knows
// PromQL only as far as selectors; whether queries are valid and return
// something is for a real Prometheus to say, and Queries has them for it. It is
// pure: it reads no files and talks to nobody.
package lint

import (
	"fmt"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
)

// Finding is something to put right.
type Finding struct {
	// Rule is the name of what it breaks.
	Rule string
	// Dashboard is the UID, and Where the panel, variable or annotation; empty if
	// it is about the dashboard itself.
	Dashboard, Where string
	// Message says what is wrong and what to do.
	Message string
}

// String is one line.
func (f Finding) String() string {
	where := f.Dashboard
	if f.Where != "" {
		where += ", " + f.Where
	}
	return fmt.Sprintf("%s: %s [%s]", where, f.Message, f.Rule)
}

// Rule is one thing that dashboards are held to.
type Rule struct {
	Name string
	// Why is a sentence.
	Why   string
	check func(*checker)
}

// Rules are all of them.
func Rules() []Rule {
	return []Rule{
		{"identity", "Links and bookmarks go by UID, and people by titles.", (*checker).identity},
		{"title", "A panel without a title cannot be talked about, and two with the same one neither.",
			(*checker).titles},
		{"description", "People on call need to know what a panel shows and what to do about it: two sentences.",
			(*checker).descriptions},
		{"unit", "A number without a unit is a riddle.", (*checker).units},
		{"datasource", "A dashboard that names a data source works in one Grafana only.", (*checker).datasources},
		{"variables", "Every dashboard is by cluster; a variable that nothing uses misleads, and one that does not " +
			"exist matches nothing.", (*checker).variables},
		{"metric", "A panel of a series that is not exported is always empty.", (*checker).metrics},
		{"selection", "A query that ignores the chosen cluster or operator shows the numbers of others.",
			(*checker).selections},
		{"operator", "Operators of one name in two namespaces are two operators.", (*checker).operators},
		{"counter", "The value of a counter says nothing, its rate does.", (*checker).counters},
		{"size", "A fleet has hundreds of clusters: a panel that draws a series for each of them shows nothing.",
			(*checker).sizes},
		{"legend", "Lines need names.", (*checker).legends},
		{"nodata", "An empty panel must say whether that is good.", (*checker).noData},
		{"nulls", "A gap that is drawn over looks like a measurement.", (*checker).nulls},
		{"thresholds", "Grafana takes thresholds in order, the first without a bound.", (*checker).thresholds},
		{"instant", "A number or a table is about now; a line is not.", (*checker).instants},
		{"layout", "Panels fill 24 columns, and do not cover each other.", (*checker).layout},
		{"columns", "A column that no query fills is empty, and one without a title has a technical one.",
			(*checker).tableColumns},
		{"links", "A link must lead to a dashboard that exists, with variables that it has, at the same time.",
			(*checker).links},
		{"annotation", "A mark must say what happened.", (*checker).annotations},
	}
}

// Check returns all findings about dashboards that belong together.
func Check(all []dashboards.Dashboard) []Finding {
	var out []Finding
	for i := range all {
		c := &checker{all: all, d: &all[i], queries: Queries(all[i])}
		for _, r := range Rules() {
			c.rule = r.Name
			r.check(c)
		}
		out = append(out, c.found...)
	}
	return out
}

// checker is one dashboard among all, and what was found.
type checker struct {
	all     []dashboards.Dashboard
	d       *dashboards.Dashboard
	queries []Query
	rule    string
	found   []Finding
}

func (c *checker) find(where, format string, args ...any) {
	c.found = append(c.found, Finding{c.rule, ptr.Deref(c.d.Uid, ""), where, fmt.Sprintf(format, args...)})
}

// panels are all panels, also those within rows.
func panels(d *dashboards.Dashboard) []*dashboard.Panel {
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

func titleOf(p *dashboard.Panel) string { return ptr.Deref(p.Title, "") }

// variable returns a variable by its name.
func variable(d *dashboards.Dashboard, name string) *dashboard.VariableModel {
	i := slices.IndexFunc(d.Templating.List, func(v dashboard.VariableModel) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Templating.List[i]
}
