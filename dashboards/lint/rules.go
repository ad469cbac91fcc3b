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

// maxUID is Grafana's.
const maxUID = 40

func (c *checker) identity() {
	uid, title := ptr.Deref(c.d.Uid, ""), ptr.Deref(c.d.Title, "")
	if !strings.HasPrefix(uid, "bellwether-") || len(uid) > maxUID {
		c.find("", "the UID %q has to begin with bellwether- and have at most %d characters", uid, maxUID)
	}
	same := 0
	for i := range c.all {
		if ptr.Deref(c.all[i].Uid, "") == uid {
			same++
		}
	}
	if same > 1 {
		c.find("", "another dashboard has the same UID: choose a different one")
	}
	if !strings.HasPrefix(title, "Bellwether / ") {
		c.find("", "the title %q has to begin with \"Bellwether / \", so that they are listed together", title)
	}
	if !slices.Contains(c.d.Tags, dashboards.Tag) {
		c.find("", "the tag %q is missing: links between the dashboards go by it", dashboards.Tag)
	}
}

func (c *checker) titles() {
	seen := map[string]bool{}
	for _, p := range panels(c.d) {
		title := titleOf(p)
		switch {
		case strings.TrimSpace(title) == "":
			c.find("", "panel %d has no title", ptr.Deref(p.Id, 0))
		case seen[title]:
			c.find(title, "another panel has the same title")
		}
		seen[title] = true
	}
	for _, p := range c.d.Panels {
		if p.RowPanel != nil && ptr.Deref(p.RowPanel.Title, "") == "" {
			c.find("", "row %d has no title", p.RowPanel.Id)
		}
	}
}

// twoSentences is what a description is at least.
var twoSentences = regexp.MustCompile(`(?s)^\S.{15,}?[.;:?!] .{10,}[.]$`)

func (c *checker) descriptions() {
	if !twoSentences.MatchString(ptr.Deref(c.d.Description, "")) {
		c.find("", "the description has to say what it shows and when to look at it, in two sentences")
	}
	for _, p := range panels(c.d) {
		if !twoSentences.MatchString(ptr.Deref(p.Description, "")) {
			c.find(titleOf(p), "the description has to say what it shows and, in a sentence of its own, what to do "+
				"about it")
		}
	}
}

func (c *checker) units() {
	for _, p := range panels(c.d) {
		if p.FieldConfig == nil || ptr.Deref(p.FieldConfig.Defaults.Unit, "") == "" {
			c.find(titleOf(p), "there is no unit; for a plain number it is \"short\"")
		}
	}
}

const sourceVariable = "${datasource}"

func (c *checker) datasources() {
	if v := variable(c.d, "datasource"); v == nil || v.Type != dashboard.VariableTypeDatasource ||
		ptr.Deref(v.Query.String, "") != "prometheus" {
		c.find("", "there has to be a variable datasource, of type datasource, for prometheus")
	}
	for _, p := range panels(c.d) {
		c.source(titleOf(p), p.Datasource)
		for _, t := range p.Targets {
			q, _ := query(t) // what is no query for Prometheus has no source either
			c.source(titleOf(p), q.Datasource)
		}
	}
	for _, a := range c.d.Annotations.List {
		c.source(a.Name, a.Datasource)
	}
	for _, v := range c.d.Templating.List {
		if v.Type == dashboard.VariableTypeQuery {
			c.source("$"+v.Name, v.Datasource)
		}
	}
}

func (c *checker) source(where string, ref *common.DataSourceRef) {
	if ref == nil || ptr.Deref(ref.Uid, "") != sourceVariable {
		c.find(where, "the data source has to be %s", sourceVariable)
	}
}

func (c *checker) variables() {
	if variable(c.d, "cluster") == nil {
		c.find("", "the variable cluster is missing")
	}
	used := map[string]bool{"datasource": true}
	for _, q := range c.queries {
		for _, name := range uses(q.Expr) {
			used[name] = used[name] || q.Kind != OfVariable
			c.use(q, name)
		}
	}
	for _, v := range c.d.Templating.List {
		if !used[v.Name] {
			c.find("$"+v.Name, "no query uses this variable")
		}
		if ptr.Deref(v.IncludeAll, false) && ptr.Deref(v.AllValue, "") != ".*" {
			c.find("$"+v.Name, "all values have to be \".*\": a list of thousands is no query")
		}
	}
}

// use looks at one use of a variable.
func (c *checker) use(q Query, name string) {
	v := variable(c.d, name)
	if v == nil {
		c.find(q.Where, "there is no variable %s", name)
	} else if ptr.Deref(v.Multi, false) && !regexp.MustCompile(`[=!]~"\$`+name+`\b`).MatchString(q.Expr) {
		c.find(q.Where, "%s can be several values: match it with =~", name)
	}
}

func (c *checker) legends() {
	named := []string{"timeseries", "state-timeline", "status-history", "bargauge"}
	for _, p := range panels(c.d) {
		for _, t := range p.Targets {
			if q, ok := query(t); ok && slices.Contains(named, p.Type) && ptr.Deref(q.LegendFormat, "") == "" {
				c.find(titleOf(p), "query %s has no legend", ptr.Deref(q.RefId, ""))
			}
		}
	}
}

func (c *checker) noData() {
	for _, p := range panels(c.d) {
		if p.FieldConfig == nil || ptr.Deref(p.FieldConfig.Defaults.NoValue, "") == "" {
			c.find(titleOf(p), "say what it means that there is no data")
		}
	}
}

func (c *checker) nulls() {
	for _, p := range panels(c.d) {
		if p.Type != "timeseries" || p.FieldConfig == nil {
			continue
		}
		custom, ok := p.FieldConfig.Defaults.Custom.(*timeseries.FieldConfig)
		if !ok || custom.SpanNulls == nil || custom.SpanNulls.Bool == nil || *custom.SpanNulls.Bool {
			c.find(titleOf(p), "lines must not be drawn over gaps")
		}
	}
}

func (c *checker) thresholds() {
	for _, p := range panels(c.d) {
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Thresholds == nil {
			continue
		}
		steps := p.FieldConfig.Defaults.Thresholds.Steps
		bounds := make([]float64, 0, len(steps))
		for i, s := range steps {
			if (s.Value == nil) != (i == 0) {
				c.find(titleOf(p), "the first threshold, and only that, is without a bound")
			}
			bounds = append(bounds, ptr.Deref(s.Value, ptr.Deref(steps[0].Value, -1e308)))
		}
		if !slices.IsSorted(bounds) {
			c.find(titleOf(p), "thresholds have to be in order")
		}
	}
}

func (c *checker) instants() {
	now := []string{"stat", "table", "bargauge"}
	for _, p := range panels(c.d) {
		for _, t := range p.Targets {
			q, _ := query(t)
			wants, instant, ranged := slices.Contains(now, p.Type), ptr.Deref(q.Instant, false),
				ptr.Deref(q.Range, false)
			switch {
			case wants && (!instant || ranged):
				c.find(titleOf(p), "query %s has to be instant: it would show what was, if there is nothing now",
					ptr.Deref(q.RefId, ""))
			case !wants && (instant || !ranged):
				c.find(titleOf(p), "query %s has to be about the range", ptr.Deref(q.RefId, ""))
			}
			if (p.Type == "table") != (ptr.Deref(q.Format, "") == prometheus.PromQueryFormatTable) {
				c.find(titleOf(p), "query %s has to be in the format table if its panel is one, and only then",
					ptr.Deref(q.RefId, ""))
			}
		}
	}
}

func (c *checker) annotations() {
	for _, a := range c.d.Annotations.List {
		if a.Name == "" || ptr.Deref(a.TextFormat, "") == "" || ptr.Deref(a.Expr, "") == "" || a.IconColor == "" {
			c.find(a.Name, "an annotation needs a name, a query, a text and a colour")
		}
	}
}
