// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
)

// maxUID is Grafana's limit for the length of a UID.
const maxUID = 40

// checkIdentity checks the UID, the title and the tags of the dashboard.
func (c *checker) checkIdentity() {
	uid, title := ptr.Deref(c.d.Uid, ""), ptr.Deref(c.d.Title, "")
	if !strings.HasPrefix(uid, "bellwether-") || len(uid) > maxUID {
		c.addFinding("", "the UID %q must begin with bellwether- and have at most %d characters", uid, maxUID)
	}
	count := 0
	for i := range c.all {
		if ptr.Deref(c.all[i].Uid, "") == uid {
			count++
		}
	}
	if count > 1 {
		c.addFinding("", "another dashboard has the same UID: choose a different one")
	}
	if !strings.HasPrefix(title, "Bellwether / ") {
		c.addFinding("", "the title %q must begin with \"Bellwether / \", so that they are listed together", title)
	}
	if !slices.Contains(c.d.Tags, dashboards.Tag) {
		c.addFinding("", "the tag %q is missing: links between the dashboards go by it", dashboards.Tag)
	}
}

// checkTitles checks that panels and rows have titles, and that the titles of panels are unique.
func (c *checker) checkTitles() {
	hasTitle := map[string]bool{}
	for _, p := range listPanels(c.d) {
		title := readTitle(p)
		switch {
		case strings.TrimSpace(title) == "":
			c.addFinding("", "panel %d has no title", ptr.Deref(p.Id, 0))
		case hasTitle[title]:
			c.addFinding(title, "another panel has the same title")
		}
		hasTitle[title] = true
	}
	for _, p := range c.d.Panels {
		if p.RowPanel != nil && ptr.Deref(p.RowPanel.Title, "") == "" {
			c.addFinding("", "row %d has no title", p.RowPanel.Id)
		}
	}
}

// twoSentences matches a description of at least two sentences.
var twoSentences = regexp.MustCompile(`(?s)^\S.{15,}?[.;:?!] .{10,}[.]$`)

// checkDescriptions checks that the dashboard and its panels have descriptions of two sentences.
func (c *checker) checkDescriptions() {
	if !twoSentences.MatchString(ptr.Deref(c.d.Description, "")) {
		c.addFinding("", "the description must say what it shows and when to look at it, in two sentences")
	}
	for _, p := range listPanels(c.d) {
		if !twoSentences.MatchString(ptr.Deref(p.Description, "")) {
			c.addFinding(readTitle(p),
				"the description must say what it shows and, in a sentence of its own, what to do "+
					"about it")
		}
	}
}

func (c *checker) checkUnits() {
	for _, p := range listPanels(c.d) {
		if p.FieldConfig == nil || ptr.Deref(p.FieldConfig.Defaults.Unit, "") == "" {
			c.addFinding(readTitle(p), "there is no unit; for a plain number it is \"short\"")
		}
	}
}

const sourceVariable = "${datasource}"

// checkDatasources checks that all queries use the variable for the data source.
func (c *checker) checkDatasources() {
	if v := findVariable(c.d, "datasource"); v == nil || v.Type != dashboard.VariableTypeDatasource ||
		ptr.Deref(v.Query.String, "") != "prometheus" {
		c.addFinding("", "there must be a variable datasource, of type datasource, for prometheus")
	}
	for _, p := range listPanels(c.d) {
		c.checkSource(readTitle(p), p.Datasource)
		for _, t := range p.Targets {
			q, _ := toQuery(t) // a target of another kind has no data source, which is a finding
			c.checkSource(readTitle(p), q.Datasource)
		}
	}
	for _, a := range c.d.Annotations.List {
		c.checkSource(a.Name, a.Datasource)
	}
	for _, v := range c.d.Templating.List {
		if v.Type == dashboard.VariableTypeQuery {
			c.checkSource("$"+v.Name, v.Datasource)
		}
	}
}

func (c *checker) checkSource(where string, ref *common.DataSourceRef) {
	if ref == nil || ptr.Deref(ref.Uid, "") != sourceVariable {
		c.addFinding(where, "the data source must be %s", sourceVariable)
	}
}

// checkVariables checks that all variables exist and are used, and that queries match several values with =~.
func (c *checker) checkVariables() {
	if findVariable(c.d, "cluster") == nil {
		c.addFinding("", "the variable cluster is missing")
	}
	used := map[string]bool{"datasource": true}
	for _, q := range c.queries {
		for _, name := range listVariables(q.Expr) {
			// Only a use in a panel or an annotation counts, not a use in the query of another variable.
			used[name] = used[name] || q.Kind != KindVariable
			c.checkUse(q, name)
		}
	}
	for _, v := range c.d.Templating.List {
		if !used[v.Name] {
			c.addFinding("$"+v.Name, "no query uses this variable")
		}
		if ptr.Deref(v.IncludeAll, false) && ptr.Deref(v.AllValue, "") != ".*" {
			c.addFinding("$"+v.Name, "the value for all values must be \".*\": a list of thousands of names is too "+
				"long for a query")
		}
	}
}

// checkUse checks one use of a variable in a query.
func (c *checker) checkUse(q Query, name string) {
	v := findVariable(c.d, name)
	if v == nil {
		c.addFinding(q.Where, "there is no variable %s", name)
	} else if ptr.Deref(v.Multi, false) && !regexp.MustCompile(`[=!]~"\$`+name+`\b`).MatchString(q.Expr) {
		c.addFinding(q.Where, "%s can be several values: match it with =~", name)
	}
}

func (c *checker) checkLegends() {
	panelTypes := []string{"timeseries", "state-timeline", "status-history", "bargauge"}
	for _, p := range listPanels(c.d) {
		for _, t := range p.Targets {
			if q, ok := toQuery(t); ok && slices.Contains(panelTypes, p.Type) && ptr.Deref(q.LegendFormat, "") == "" {
				c.addFinding(readTitle(p), "query %s has no legend", ptr.Deref(q.RefId, ""))
			}
		}
	}
}

func (c *checker) checkNoData() {
	for _, p := range listPanels(c.d) {
		if p.FieldConfig == nil || ptr.Deref(p.FieldConfig.Defaults.NoValue, "") == "" {
			c.addFinding(readTitle(p), "say what it means that there is no data")
		}
	}
}

// checkNulls checks that lines have gaps where measurements are missing.
func (c *checker) checkNulls() {
	for _, p := range listPanels(c.d) {
		if p.Type != "timeseries" || p.FieldConfig == nil {
			continue
		}
		custom, ok := p.FieldConfig.Defaults.Custom.(*timeseries.FieldConfig)
		if !ok || custom.SpanNulls == nil || custom.SpanNulls.Bool == nil || *custom.SpanNulls.Bool {
			c.addFinding(readTitle(p), "lines must not be drawn over gaps")
		}
	}
}

// checkThresholds checks that thresholds are in order, and that only the first has no bound.
func (c *checker) checkThresholds() {
	for _, p := range listPanels(c.d) {
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Thresholds == nil {
			continue
		}
		steps := p.FieldConfig.Defaults.Thresholds.Steps
		bounds := make([]float64, 0, len(steps))
		for i, s := range steps {
			if (s.Value == nil) != (i == 0) {
				c.addFinding(readTitle(p), "the first threshold, and only that, is without a bound")
			}
			// The first threshold has no bound, which is lower than every number.
			bounds = append(bounds, ptr.Deref(s.Value, ptr.Deref(steps[0].Value, -1e308)))
		}
		if !slices.IsSorted(bounds) {
			c.addFinding(readTitle(p), "thresholds must be in order")
		}
	}
}

// checkInstants checks that panels with current values have instant queries, and all other panels range queries.
func (c *checker) checkInstants() {
	instantTypes := []string{"stat", "table", "bargauge"}
	for _, p := range listPanels(c.d) {
		for _, t := range p.Targets {
			q, _ := toQuery(t)
			needsInstant, isInstant, isRange := slices.Contains(instantTypes, p.Type), ptr.Deref(q.Instant, false),
				ptr.Deref(q.Range, false)
			switch {
			case needsInstant && (!isInstant || isRange):
				c.addFinding(readTitle(p),
					"query %s must be instant: a range query also shows the last value of series that have ended",
					ptr.Deref(q.RefId, ""))
			case !needsInstant && (isInstant || !isRange):
				c.addFinding(readTitle(p), "query %s must be a range query, about the range of the dashboard",
					ptr.Deref(q.RefId, ""))
			}
			if (p.Type == "table") != (ptr.Deref(q.Format, "") == prometheus.PromQueryFormatTable) {
				c.addFinding(readTitle(p), "query %s must be in the format table if its panel is one, and only then",
					ptr.Deref(q.RefId, ""))
			}
		}
	}
}

func (c *checker) checkAnnotations() {
	for _, a := range c.d.Annotations.List {
		if a.Name == "" || ptr.Deref(a.TextFormat, "") == "" || ptr.Deref(a.Expr, "") == "" || a.IconColor == "" {
			c.addFinding(a.Name, "an annotation needs a name, a query, a text and a colour")
		}
	}
}
