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

// panelContent is a panel with the results of its queries.
type panelContent struct {
	panel *dashboard.Panel
	// recorded is false if a query was changed after the data was recorded.
	recorded bool
	noData   string
	style    valueStyle
	series   []namedSeries
}

// namedSeries is a series with the letter of its query and its name.
type namedSeries struct {
	Series
	ref, name string
}

// newContent returns a panel with the recorded results of its queries. answers has the
// results by the letter of the query.
func newContent(panel *dashboard.Panel, answers map[string]Answer) panelContent {
	defaults := panel.FieldConfig.Defaults
	c := panelContent{panel: panel, recorded: true, noData: ptr.Deref(defaults.NoValue, ""), style: valueStyle{
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
			c.series = append(c.series, namedSeries{Series: s, ref: ref,
				name: expandLegend(ptr.Deref(q.LegendFormat, ""), s.Labels)})
		}
	}
	return c
}

// isNameStat reports whether a panel shows the names of its series instead of their values.
func isNameStat(panel *dashboard.Panel) bool {
	options, ok := panel.Options.(*stat.Options)
	return ok && options.TextMode == common.BigValueTextModeName
}

// grid is a table as it is drawn: the titles and styles of its columns, and the cells of its rows.
// A cell without a value is nil.
type grid struct {
	titles []string
	styles []valueStyle
	rows   [][]any // string, float64 or nil
}

// readColumns returns the fields of a table from left to right, and the titles by field. The results are nil if no
// transformation of the panel orders the fields.
func readColumns(panel *dashboard.Panel) (fields []string, titles map[string]string) {
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

// toGrid merges the results of a table's queries into rows, as Grafana does: series without different values of the
// same label are one row. A row has at most one value of each query.
func toGrid(c panelContent) grid {
	fields, titles := readColumns(c.panel)
	var rows []map[string]any
	for _, s := range c.series {
		valueField := "Value"
		if len(c.panel.Targets) > 1 {
			valueField = "Value #" + s.ref
		}
		merged := false
		for _, row := range rows {
			if _, hasValue := row[valueField]; !hasValue && canMerge(row, s.Labels) {
				merged = true
				addValues(row, s, valueField)
			}
		}
		if !merged {
			row := map[string]any{}
			addValues(row, s, valueField)
			rows = append(rows, row)
		}
	}
	g := grid{}
	for _, field := range fields {
		g.titles = append(g.titles, titles[field])
		g.styles = append(g.styles, c.readColumnStyle(titles[field]))
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

// canMerge reports whether a row has no label with a value that differs from labels.
func canMerge(row map[string]any, labels map[string]string) bool {
	for name, value := range labels {
		if current, ok := row[name]; ok && current != value {
			return false
		}
	}
	return true
}

// addValues adds the labels of a series to a row, and its latest value in valueField.
func addValues(row map[string]any, s namedSeries, valueField string) {
	for name, text := range s.Labels {
		row[name] = text
	}
	if v, ok := s.findLatest(); ok {
		row[valueField] = v
	}
}

// readColumnStyle returns the style of the column with a title: the unit of the panel, and the overrides of the column.
func (c panelContent) readColumnStyle(title string) valueStyle {
	out := valueStyle{unit: c.style.unit}
	for _, o := range c.panel.FieldConfig.Overrides {
		if name, ok := o.Matcher.Options.(*string); !ok || *name != title {
			continue
		}
		for _, property := range o.Properties {
			out.setProperty(property)
		}
	}
	return out
}

// setProperty changes one property of the style. It ignores properties that are not a part of the style.
func (l *valueStyle) setProperty(property dashboard.DynamicConfigValue) {
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

// formatCell returns the text of a cell and its CSS class.
func (g grid) formatCell(row, column int) (string, string) {
	switch v := g.rows[row][column].(type) {
	case float64:
		return g.styles[column].format(v), g.styles[column].chooseClass(v)
	case string:
		return v, "plain"
	}
	return "", "plain"
}

// isStacked reports whether the series of a panel are drawn above each other.
func isStacked(panel *dashboard.Panel) bool {
	custom, ok := panel.FieldConfig.Defaults.Custom.(*timeseries.FieldConfig)
	return ok && custom.Stacking != nil && ptr.Deref(custom.Stacking.Mode, "") == common.StackingModeNormal
}
