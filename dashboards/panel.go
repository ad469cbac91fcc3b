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

// panel is one picture, in the words of this package.
type panel struct {
	// title is a noun. description says what the panel shows and, in a sentence of
	// its own, what to do about it.
	title, description string
	draw               func(panel) (dashboard.Panel, error)
	width, height      uint32
	// unit is one of Grafana's.
	unit    string
	queries []query
	// none is what is shown where there is no data, and says whether that is good.
	none string
	// levels colour values; the first has no lower bound.
	levels []level
	// words replace numbers.
	words map[string]word
	// minimum and maximum bound the axis.
	minimum, maximum *float64
	decimals         *float64
	stacked          bool
	// columns of a table, from the left.
	columns []column
	sort    string
	// link is where a click on a series leads.
	link string
}

// query of a panel. Stats, tables and bars ask for the present only.
type query struct{ expr, legend string }

type level struct {
	colour string
	from   float64
}

type word struct{ text, colour string }

// column of a table: a label, or the letter of a query for its value.
type column struct {
	from, title, unit string
	decimals          *float64
	levels            []level
	words             map[string]word
	link              string
}

// Colours, by what they mean.
const (
	good    = "green"
	warn    = "orange"
	bad     = "red"
	neutral = "blue"
	unknown = "text"
)

// lessIsBad colours what should be high: below warnAt, and below badAt.
func lessIsBad(badAt, warnAt float64) []level {
	return []level{{bad, 0}, {warn, badAt}, {good, warnAt}}
}

// budgetLevels colours what is left of an error budget.
func budgetLevels() []level { return lessIsBad(0, budgets.LowBelow) }

// moreIsBad colours what should be low.
func moreIsBad(warnAt, badAt float64) []level {
	return []level{{good, 0}, {warn, warnAt}, {bad, badAt}}
}

// anyIsBad colours what should be 0.
func anyIsBad() []level { return []level{{good, 0}, {bad, 1}} }

// noJudgement is for numbers that are neither good nor bad.
func noJudgement() []level { return []level{{neutral, 0}} }

var yesNo = map[string]word{"0": {"no", bad}, "1": {"yes", good}}

func thresholds(levels []level) *dashboard.ThresholdsConfig {
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

func mappings(words map[string]word) []dashboard.ValueMapping {
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

// build draws a panel and sets what all kinds have.
func (p panel) build() (dashboard.Panel, error) {
	out, err := p.draw(p)
	if err != nil {
		return out, err
	}
	out.Title, out.Description, out.Datasource = ptr.To(p.title), ptr.To(p.description), ptr.To(source())
	out.Transparent, out.RepeatDirection = nil, nil
	out.GridPos = &dashboard.GridPos{W: p.width, H: p.height}
	if out.Interval == nil {
		out.Interval = ptr.To("1m") // slices are no finer
	}
	if out.FieldConfig == nil {
		out.FieldConfig = dashboard.NewFieldConfigSource()
	}
	d := &out.FieldConfig.Defaults
	d.Unit, d.NoValue, d.Min, d.Max, d.Decimals = ptr.To(p.unit), ptr.To(p.none), p.minimum, p.maximum, p.decimals
	d.Mappings = mappings(p.words)
	if len(p.levels) > 0 {
		d.Thresholds = thresholds(p.levels)
	}
	if p.link != "" {
		d.Links = []dashboard.DashboardLink{dataLink("Look closer", p.link)}
	}
	return out, nil
}

func dataLink(title, url string) dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: title, Type: dashboard.DashboardLinkTypeLink, Url: ptr.To(url),
		Tags: []string{}}
}

// targets are the queries as Grafana has them. They are lettered from A.
func (p panel) targets(present bool, format prometheus.PromQueryFormat) []cog.Builder[variants.Dataquery] {
	var out []cog.Builder[variants.Dataquery]
	for i, q := range p.queries {
		b := prometheus.NewDataqueryBuilder().Datasource(source()).RefId(string(rune('A' + i))).
			Expr(q.expr).LegendFormat(q.legend).Format(format).EditorMode(prometheus.QueryEditorModeCode)
		if present {
			b.Instant()
		} else {
			b.Range()
		}
		out = append(out, b)
	}
	return out
}

// timeSeries draws lines over time. Gaps stay gaps: what was not measured was
// not good.
func timeSeries(p panel) (dashboard.Panel, error) {
	b := timeseries.NewPanelBuilder().Targets(p.targets(false, prometheus.PromQueryFormatTimeSeries)).
		LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeAuto).
		SpanNulls(common.BoolOrFloat64{Bool: ptr.To(false)}).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Legend(legend(common.LegendDisplayModeTable).ShowLegend(true).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(tooltip(common.TooltipDisplayModeMulti))
	if p.stacked {
		b.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	if len(p.levels) > 1 {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	return b.Build()
}

// number draws one figure for each series that there is now.
func number(p panel) (dashboard.Panel, error) {
	return stat.NewPanelBuilder().Targets(p.targets(true, prometheus.PromQueryFormatTimeSeries)).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		Orientation(common.VizOrientationAuto).ReduceOptions(lastValue()).Build()
}

// name draws the legend of each series that there is now, and not its value.
func name(p panel) (dashboard.Panel, error) {
	return stat.NewPanelBuilder().Targets(p.targets(true, prometheus.PromQueryFormatTimeSeries)).
		GraphMode(common.BigValueGraphModeNone).
		ColorMode(common.BigValueColorModeValue).TextMode(common.BigValueTextModeName).
		Orientation(common.VizOrientationAuto).ReduceOptions(lastValue()).Build()
}

func tooltip(mode common.TooltipDisplayMode) *common.VizTooltipOptionsBuilder {
	return common.NewVizTooltipOptionsBuilder().Mode(mode).Sort(common.SortOrderDescending)
}

func lastValue() *common.ReduceDataOptionsBuilder {
	return common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})
}

// bars draws a bar for each series that there is now.
func bars(p panel) (dashboard.Panel, error) {
	return bargauge.NewPanelBuilder().Targets(p.targets(true, prometheus.PromQueryFormatTimeSeries)).
		Orientation(common.VizOrientationHorizontal).DisplayMode(common.BarGaugeDisplayModeBasic).
		ReduceOptions(lastValue()).Build()
}

// legend is below the panel.
func legend(mode common.LegendDisplayMode) *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().DisplayMode(mode).Placement(common.LegendPlacementBottom)
}

// timeline draws what state each series was in.
func timeline(p panel) (dashboard.Panel, error) {
	return statetimeline.NewPanelBuilder().Targets(p.targets(false, prometheus.PromQueryFormatTimeSeries)).
		ShowValue(common.VisibilityModeAuto).MergeValues(true).RowHeight(0.85).FillOpacity(80).NeverSpanNulls().
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Legend(legend(common.LegendDisplayModeList).ShowLegend(false)).
		Tooltip(tooltip(common.TooltipDisplayModeSingle)).Build()
}

// heatMap draws a cell for each series and interval.
func heatMap(p panel) (dashboard.Panel, error) {
	out, err := statushistory.NewPanelBuilder().Targets(p.targets(false, prometheus.PromQueryFormatTimeSeries)).
		ShowValue(common.VisibilityModeNever).RowHeight(0.9).ColWidth(1).FillOpacity(85).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Legend(legend(common.LegendDisplayModeList).ShowLegend(false)).
		Tooltip(tooltip(common.TooltipDisplayModeSingle)).Build()
	out.MaxDataPoints = ptr.To(120.) // more are cells of less than a few pixels
	out.Interval = ptr.To("2m")      // a window of one slice would be empty now and then
	return out, err
}

// rows draws a table of what there is now: one row for each set of labels.
func rows(p panel) (dashboard.Panel, error) {
	b := table.NewPanelBuilder().Targets(p.targets(true,
		prometheus.PromQueryFormatTable)).Filterable(true).CellHeight(common.TableCellHeightSm).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
	if len(p.queries) > 1 {
		b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	rename, order := map[string]string{}, map[string]int{}
	for i, c := range p.columns {
		field := c.field(len(p.queries))
		rename[field], order[field] = c.title, i
	}
	b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": p.hidden(), "renameByName": rename, "indexByName": order,
	}})
	for _, c := range p.columns {
		if properties := c.properties(); len(properties) > 0 {
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

// field is what Grafana calls a column before it is renamed.
func (c column) field(queries int) string {
	switch {
	case len(c.from) != 1:
		return c.from
	case queries == 1:
		return "Value"
	default:
		return "Value #" + c.from
	}
}

// hidden are the fields that no column shows. Queries return no other labels
// than those of columns.
func (p panel) hidden() map[string]bool {
	out := map[string]bool{"Time": true}
	for i := range p.queries {
		letter := string(rune('A' + i))
		if !slices.ContainsFunc(p.columns, func(c column) bool { return c.from == letter }) {
			out[column{from: letter}.field(len(p.queries))] = true
		}
	}
	return out
}

func (c column) properties() []dashboard.DynamicConfigValue {
	var out []dashboard.DynamicConfigValue
	set := func(id string, value any) { out = append(out, dashboard.DynamicConfigValue{Id: id, Value: value}) }
	if c.unit != "" {
		set("unit", c.unit)
	}
	if c.decimals != nil {
		set("decimals", *c.decimals)
	}
	if len(c.words) > 0 {
		set("mappings", mappings(c.words))
	}
	if len(c.levels) > 0 {
		set("thresholds", thresholds(c.levels))
	}
	if len(c.levels) > 0 || len(c.words) > 0 {
		set("custom.cellOptions", map[string]string{"type": string(common.TableCellDisplayModeColorText)})
	}
	if c.link != "" {
		set("links", []dashboard.DashboardLink{dataLink(fmt.Sprintf("%s ${__value.text}", c.title), c.link)})
	}
	return out
}
