// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/statushistory"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
)

// panel is a Grafana panel, described in the terms of this package.
type panel struct {
	// title is a noun. description says what the panel shows and, in a separate sentence, what to do about it.
	title, description string
	draw               func(panel) (dashboard.Panel, error)
	width, height      uint32
	// unit is a unit of Grafana.
	unit    string
	queries []query
	// noData is the text that is shown if there is no data. It says whether this is good.
	noData string
	// levels colour the values. The first level has no lower bound.
	levels []level
	// words replace numbers by texts.
	words map[string]word
	// minimum and maximum are the limits of the axis.
	minimum, maximum *float64
	decimals         *float64
	stacked          bool
	// columns are the columns of a table, from the left.
	columns []column
	sort    string
	// link is the address that a click on a series opens.
	link string
}

// query is a query of a panel, with the legend of its series. Stats, tables and bars query only the current value.
type query struct{ expr, legend string }

// level is a colour for values from a lower bound.
type level struct {
	colour string
	from   float64
}

// word is a text in a colour.
type word struct{ text, colour string }

// column is a column of a table. from is a label, or the letter of a query for its value.
type column struct {
	from, title, unit string
	decimals          *float64
	levels            []level
	words             map[string]word
	link              string
}

// Colours by their meaning.
const (
	good    = "green"
	warn    = "orange"
	bad     = "red"
	neutral = "blue"
	unknown = "text"
)

// newLowIsBadLevels returns the colours for a value that should be high: bad below badAt, and a warning below warnAt.
func newLowIsBadLevels(badAt, warnAt float64) []level {
	return []level{{bad, 0}, {warn, badAt}, {good, warnAt}}
}

// newBudgetLevels returns the colours for the remaining part of an error budget.
func newBudgetLevels() []level { return newLowIsBadLevels(0, budgets.LowBelow) }

// newHighIsBadLevels returns the colours for a value that should be low: a warning from warnAt, and bad from badAt.
func newHighIsBadLevels(warnAt, badAt float64) []level {
	return []level{{good, 0}, {warn, warnAt}, {bad, badAt}}
}

// newAnyIsBadLevels returns the colours for a value that should be 0.
func newAnyIsBadLevels() []level { return []level{{good, 0}, {bad, 1}} }

// newNeutralLevels returns the colour for a value that is neither good nor bad.
func newNeutralLevels() []level { return []level{{neutral, 0}} }

var yesNoWords = map[string]word{"0": {"no", bad}, "1": {"yes", good}}

// toThresholds converts levels to the thresholds of Grafana.
func toThresholds(levels []level) *dashboard.ThresholdsConfig {
	c := &dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute}
	for i, l := range levels {
		step := dashboard.Threshold{Color: l.colour}
		if i > 0 {
			step.Value = ptr.To(l.from)
		}
		c.Steps = append(c.Steps, step)
	}
	return c
}

// toMappings converts words to the value mappings of Grafana; nil if there are none.
func toMappings(words map[string]word) []dashboard.ValueMapping {
	if len(words) == 0 {
		return nil
	}
	m := dashboard.ValueMap{Type: "value", Options: map[string]dashboard.ValueMappingResult{}}
	for i, value := range slices.Sorted(maps.Keys(words)) {
		w := words[value]
		m.Options[value] = dashboard.ValueMappingResult{Text: ptr.To(w.text), Color: ptr.To(w.colour),
			Index: ptr.To(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &m}}
}

// build returns the panel of Grafana, with the settings that all kinds of panels share.
func (p panel) build() (dashboard.Panel, error) {
	out, err := p.draw(p)
	if err != nil {
		return out, err
	}
	out.Title, out.Description, out.Datasource = ptr.To(p.title), ptr.To(p.description), ptr.To(newDataSource())
	out.Transparent, out.RepeatDirection = nil, nil // the builders set Grafana's defaults
	out.GridPos = &dashboard.GridPos{W: p.width, H: p.height}
	if out.Interval == nil {
		out.Interval = ptr.To("1m") // the length of a slice
	}
	if out.FieldConfig == nil {
		out.FieldConfig = dashboard.NewFieldConfigSource()
	}
	d := &out.FieldConfig.Defaults
	d.Unit, d.NoValue, d.Min, d.Max, d.Decimals = ptr.To(p.unit), ptr.To(p.noData), p.minimum, p.maximum, p.decimals
	d.Mappings = toMappings(p.words)
	if len(p.levels) > 0 {
		d.Thresholds = toThresholds(p.levels)
	}
	if p.link != "" {
		d.Links = []dashboard.DashboardLink{newDataLink("Look closer", p.link)}
	}
	return out, nil
}

// newDataLink returns a link that a click on a value opens.
func newDataLink(title, url string) dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: title, Type: dashboard.DashboardLinkTypeLink, Url: ptr.To(url),
		Tags: []string{}}
}

// buildTargets returns the queries in Grafana's model, with the letters from A. isInstant selects
// queries for the current value.
func (p panel) buildTargets(isInstant bool, format prometheus.PromQueryFormat) []cog.Builder[variants.Dataquery] {
	var out []cog.Builder[variants.Dataquery]
	for i, q := range p.queries {
		b := prometheus.NewDataqueryBuilder().Datasource(newDataSource()).RefId(string(rune('A' + i))).
			Expr(q.expr).LegendFormat(q.legend).Format(format).EditorMode(prometheus.QueryEditorModeCode)
		if isInstant {
			b.Instant()
		} else {
			b.Range()
		}
		out = append(out, b)
	}
	return out
}

// drawTimeSeries returns a panel of lines over time. It does not connect lines over gaps, because a time without
// measurements is not a good time.
func drawTimeSeries(p panel) (dashboard.Panel, error) {
	b := timeseries.NewPanelBuilder().Targets(p.buildTargets(false, prometheus.PromQueryFormatTimeSeries)).
		LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeAuto).
		SpanNulls(common.BoolOrFloat64{Bool: ptr.To(false)}).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Legend(newLegend(common.LegendDisplayModeTable).ShowLegend(true).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(newTooltip(common.TooltipDisplayModeMulti))
	if p.stacked {
		b.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	if len(p.levels) > 1 {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	return b.Build()
}

// drawNumber returns a panel with the current value of each series.
func drawNumber(p panel) (dashboard.Panel, error) {
	return stat.NewPanelBuilder().Targets(p.buildTargets(true, prometheus.PromQueryFormatTimeSeries)).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		Orientation(common.VizOrientationAuto).ReduceOptions(reduceToLastValue()).Build()
}

// drawName returns a panel with the legend of each current series instead of its value.
func drawName(p panel) (dashboard.Panel, error) {
	return stat.NewPanelBuilder().Targets(p.buildTargets(true, prometheus.PromQueryFormatTimeSeries)).
		GraphMode(common.BigValueGraphModeNone).
		ColorMode(common.BigValueColorModeValue).TextMode(common.BigValueTextModeName).
		Orientation(common.VizOrientationAuto).ReduceOptions(reduceToLastValue()).Build()
}

func newTooltip(mode common.TooltipDisplayMode) *common.VizTooltipOptionsBuilder {
	return common.NewVizTooltipOptionsBuilder().Mode(mode).Sort(common.SortOrderDescending)
}

func reduceToLastValue() *common.ReduceDataOptionsBuilder {
	return common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})
}

// drawBars returns a panel with a bar for the current value of each series.
func drawBars(p panel) (dashboard.Panel, error) {
	return bargauge.NewPanelBuilder().Targets(p.buildTargets(true, prometheus.PromQueryFormatTimeSeries)).
		Orientation(common.VizOrientationHorizontal).DisplayMode(common.BarGaugeDisplayModeBasic).
		ReduceOptions(reduceToLastValue()).Build()
}

// newLegend returns a legend below the panel.
func newLegend(mode common.LegendDisplayMode) *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().DisplayMode(mode).Placement(common.LegendPlacementBottom)
}

// drawTimeline returns a panel with the state of each series over time.
func drawTimeline(p panel) (dashboard.Panel, error) {
	return statetimeline.NewPanelBuilder().Targets(p.buildTargets(false, prometheus.PromQueryFormatTimeSeries)).
		ShowValue(common.VisibilityModeAuto).MergeValues(true).RowHeight(0.85).FillOpacity(80).NeverSpanNulls().
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Legend(newLegend(common.LegendDisplayModeList).ShowLegend(false)).
		Tooltip(newTooltip(common.TooltipDisplayModeSingle)).Build()
}

// drawHeatMap returns a panel with a cell for each series and interval.
func drawHeatMap(p panel) (dashboard.Panel, error) {
	out, err := statushistory.NewPanelBuilder().Targets(p.buildTargets(false, prometheus.PromQueryFormatTimeSeries)).
		ShowValue(common.VisibilityModeNever).RowHeight(0.9).ColWidth(1).FillOpacity(85).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Legend(newLegend(common.LegendDisplayModeList).ShowLegend(false)).
		Tooltip(newTooltip(common.TooltipDisplayModeSingle)).Build()
	out.MaxDataPoints = ptr.To(120.) // more cells would be only a few pixels wide
	out.Interval = ptr.To("2m")      // a window of one slice is sometimes empty
	return out, err
}

// drawTable returns a table of current values, with one row for each set of labels.
func drawTable(p panel) (dashboard.Panel, error) {
	b := table.NewPanelBuilder().Targets(p.buildTargets(true,
		prometheus.PromQueryFormatTable)).Filterable(true).CellHeight(common.TableCellHeightSm).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
	if len(p.queries) > 1 { // merge the results into one row for each set of labels
		b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	rename, order := map[string]string{}, map[string]int{}
	for i, c := range p.columns {
		field := c.fieldName(len(p.queries))
		rename[field], order[field] = c.title, i
	}
	b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": p.listHiddenFields(), "renameByName": rename, "indexByName": order,
	}})
	for _, c := range p.columns {
		if properties := c.buildProperties(); len(properties) > 0 {
			b.OverrideByName(c.title, properties)
		}
	}
	if p.sort != "" {
		b.SortBy(
			[]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(p.sort)},
		)
	}
	return b.Build()
}

// fieldName returns Grafana's name for the column before its rename. queries is the number of queries of the table.
func (c column) fieldName(queries int) string {
	switch {
	case len(c.from) != 1: // a label
		return c.from
	case queries == 1:
		return "Value"
	default:
		return "Value #" + c.from
	}
}

// listHiddenFields returns the fields that no column shows. It assumes that queries
// return no labels without a column.
func (p panel) listHiddenFields() map[string]bool {
	out := map[string]bool{"Time": true}
	for i := range p.queries {
		letter := string(rune('A' + i))
		if !slices.ContainsFunc(p.columns, func(c column) bool { return c.from == letter }) {
			out[column{from: letter}.fieldName(len(p.queries))] = true
		}
	}
	return out
}

// buildProperties returns the properties of the column that differ from the defaults of its table.
func (c column) buildProperties() []dashboard.DynamicConfigValue {
	var out []dashboard.DynamicConfigValue
	set := func(id string, value any) { out = append(out, dashboard.DynamicConfigValue{Id: id, Value: value}) }
	if c.unit != "" {
		set("unit", c.unit)
	}
	if c.decimals != nil {
		set("decimals", *c.decimals)
	}
	if len(c.words) > 0 {
		set("mappings", toMappings(c.words))
	}
	if len(c.levels) > 0 {
		set("thresholds", toThresholds(c.levels))
	}
	if len(c.levels) > 0 || len(c.words) > 0 {
		set("custom.cellOptions", map[string]string{"type": string(common.TableCellDisplayModeColorText)})
	}
	if c.link != "" {
		set("links", []dashboard.DashboardLink{newDataLink(fmt.Sprintf("%s ${__value.text}", c.title), c.link)})
	}
	return out
}
