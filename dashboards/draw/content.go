// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"k8s.io/utils/ptr"
)

// shown is a panel with what its queries returned.
type shown struct {
	panel *dashboard.Panel
	// recorded is false if a query was changed since the data was recorded.
	recorded bool
	none     string
	look     look
	series   []line
}

// line is one series with its name and the letter of its query.
type line struct {
	Series
	ref, name string
}

// content finds the answers to the queries that a panel has now.
func content(panel *dashboard.Panel, answers map[string]Answer) shown {
	defaults := panel.FieldConfig.Defaults
	c := shown{panel: panel, recorded: true, none: ptr.Deref(defaults.NoValue, ""), look: look{
		unit: ptr.Deref(defaults.Unit, ""), decimals: defaults.Decimals, thresholds: defaults.Thresholds,
		mappings: defaults.Mappings,
	}}
	for _, t := range panel.Targets {
		q, ok := t.(prometheus.Dataquery)
		if !ok {
			continue
		}
		ref := ptr.Deref(q.RefId, "")
		if answers[ref].Expr != q.Expr {
			c.recorded = false
		}
		for _, s := range answers[ref].Series {
			c.series = append(c.series, line{s, ref, named(ptr.Deref(q.LegendFormat, ""), s.Labels)})
		}
	}
	return c
}

// showsNames is true for a stat that shows the names of series and not their values.
func showsNames(panel *dashboard.Panel) bool {
	options, ok := panel.Options.(*stat.Options)
	return ok && options.TextMode == common.BigValueTextModeName
}

// grid is a table as it is shown: the titles and looks of its columns, and the
// rows' cells. A row has no cell where it is nil.
type grid struct {
	titles []string
	looks  []look
	rows   [][]any // string, float64 or nil
}

// organized are the fields of a table from the left, and their titles.
func organized(panel *dashboard.Panel) (fields []string, titles map[string]string) {
	for _, t := range panel.Transformations {
		options, _ := t.Options.(map[string]any)
		order, _ := options["indexByName"].(map[string]int)
		titles, _ = options["renameByName"].(map[string]string)
		if len(order) > 0 {
			return slices.SortedFunc(maps.Keys(order), func(a, b string) int { return order[a] - order[b] }), titles
		}
	}
	return nil, nil
}

// gridOf merges the answers of a table's queries into rows, as Grafana does: what
// has the same labels is one row.
func gridOf(c shown) grid {
	fields, titles := organized(c.panel)
	var rows []map[string]any
	for _, s := range c.series {
		value := "Value"
		if len(c.panel.Targets) > 1 {
			value = "Value #" + s.ref
		}
		merged := false
		for _, row := range rows {
			if _, has := row[value]; !has && agree(row, s.Labels) {
				merged = true
				fill(row, s, value)
			}
		}
		if !merged {
			row := map[string]any{}
			fill(row, s, value)
			rows = append(rows, row)
		}
	}
	g := grid{}
	for _, field := range fields {
		g.titles = append(g.titles, titles[field])
		g.looks = append(g.looks, c.lookOf(titles[field]))
	}
	for _, row := range rows {
		cells := make([]any, len(fields))
		for i, field := range fields {
			cells[i] = row[field]
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

// agree is true if a row has no other value of any of the labels.
func agree(row map[string]any, labels map[string]string) bool {
	for name, value := range labels {
		if has, ok := row[name]; ok && has != value {
			return false
		}
	}
	return true
}

func fill(row map[string]any, s line, value string) {
	for name, text := range s.Labels {
		row[name] = text
	}
	if v, ok := s.latest(); ok {
		row[value] = v
	}
}

// lookOf is how the column with a title is shown.
func (c shown) lookOf(title string) look {
	out := look{unit: c.look.unit}
	for _, o := range c.panel.FieldConfig.Overrides {
		if name, ok := o.Matcher.Options.(*string); !ok || *name != title {
			continue
		}
		for _, property := range o.Properties {
			out.set(property)
		}
	}
	return out
}

// set changes one property, if it is one of how values are shown.
func (l *look) set(property dashboard.DynamicConfigValue) {
	switch property.Id {
	case "unit":
		l.unit, _ = property.Value.(string)
	case "decimals":
		if v, ok := property.Value.(float64); ok {
			l.decimals = &v
		}
	case "thresholds":
		l.thresholds, _ = property.Value.(*dashboard.ThresholdsConfig)
	case "mappings":
		l.mappings, _ = property.Value.([]dashboard.ValueMapping)
	}
}

// text is a cell and its class.
func (g grid) text(row, column int) (string, string) {
	switch v := g.rows[row][column].(type) {
	case float64:
		return g.looks[column].text(v), g.looks[column].colour(v)
	case string:
		return v, "plain"
	}
	return "", "plain"
}

// isStacked is true for lines that are drawn above each other.
func isStacked(panel *dashboard.Panel) bool {
	custom, ok := panel.FieldConfig.Defaults.Custom.(*timeseries.FieldConfig)
	return ok && custom.Stacking != nil && ptr.Deref(custom.Stacking.Mode, "") == common.StackingModeNormal
}
