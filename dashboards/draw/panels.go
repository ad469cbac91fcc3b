// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"
	"k8s.io/utils/ptr"
)

// palette are the CSS classes of lines, in the order in which they are used.
var palette = []string{"l0", "l1", "l2", "l3", "l4", "l5"}

const (
	rowHeight = 19.0
	// tickHeight is the height of a number at an axis.
	tickHeight = 13.0
	// smallLetterWidth is the average width of a letter in small text.
	smallLetterWidth = 6.0
)

// shorten cuts a small text to a width.
func shorten(text string, width float64) string {
	return truncate(text, width*letterWidth/smallLetterWidth)
}

// drawText draws a text with a CSS class at a position.
func (p *picture) drawText(class, anchor string, x, y float64, text string) {
	p.printf("<text class=\"%s\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>", class, x, y, anchor,
		html.EscapeString(text))
}

// drawNumbers draws the latest value of each series next to each other, with the name of the series below the value. A
// panel that shows names instead of values has only the names.
func (p *picture) drawNumbers(b box, c panelContent) {
	w := b.w / float64(len(c.series))
	for i, s := range c.series {
		value, ok := s.findLatest()
		text, class := c.style.format(value), c.style.chooseClass(value)
		if isNameStat(c.panel) {
			text = s.name
		} else if !ok {
			text = c.noData
		}
		middle, y := b.x+w*(float64(i)+0.5), b.y+b.h/2+6
		if s.name != "" && !isNameStat(c.panel) {
			p.drawText("col", "middle", middle, b.y+b.h-2, shorten(s.name, w-4))
			y -= 6
		}
		// A letter is narrower than the size of its font divided by 1.7, so the text fits into the width.
		size := math.Min(22, 1.7*(w-6)/float64(max(1, len([]rune(text)))))
		p.printf("<text class=\"big %s\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\" "+
			"style=\"font-size:%.0fpx\">%s</text>", class, middle, y, math.Max(9, size), html.EscapeString(text))
	}
	p.printf("\n")
}

// drawTable draws the rows of a table that fit into the box.
func (p *picture) drawTable(b box, c panelContent) {
	g := toGrid(c)
	widths := g.computeWidths(b.w)
	x := b.x
	for i, title := range g.titles {
		p.drawText("col", "start", x, b.y+6, shorten(title, widths[i]-4))
		for row := range g.rows {
			y := b.y + 8 + rowHeight*float64(row+1)
			if y > b.y+b.h {
				break
			}
			text, class := g.formatCell(row, i)
			p.drawText("cell "+class, "start", x, y-4, shorten(text, widths[i]-4))
		}
		x += widths[i]
	}
	p.printf("\n")
}

// computeWidths divides a width among the columns in proportion to their longest texts. A text counts at most 26
// letters, so that a long text leaves space for the other columns.
func (g grid) computeWidths(width float64) []float64 {
	out := make([]float64, len(g.titles))
	total := 0.0
	for i, title := range g.titles {
		longest := len([]rune(title))
		for row := range g.rows {
			text, _ := g.formatCell(row, i)
			longest = max(longest, len([]rune(text)))
		}
		out[i] = math.Min(float64(longest), 26) + 2
		total += out[i]
	}
	for i := range out {
		out[i] *= width / total
	}
	return out
}

// drawBars draws a line for each series that fits into the box: its name, a bar and its latest value. The bar of the
// highest value has the full width.
func (p *picture) drawBars(b box, c panelContent) {
	highest := 0.0
	for _, s := range c.series {
		v, _ := s.findLatest()
		highest = math.Max(highest, v)
	}
	for i, s := range c.series {
		y := b.y + 22*float64(i)
		if y+18 > b.y+b.h {
			break
		}
		v, _ := s.findLatest()
		p.drawText("cell plain", "start", b.x, y+12, shorten(s.name, b.w*0.4))
		p.printf("<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"12\" rx=\"2\"/>",
			c.style.chooseClass(v), b.x+b.w*0.42, y+2, math.Max(2, b.w*0.38*v/math.Max(highest, 1e-9)))
		p.drawText("cell plain", "end", b.x+b.w, y+12, c.style.format(v))
	}
	p.printf("\n")
}

// drawCells draws a row for each series that fits into the box, with a colour for each step, and the time axis below
// the rows.
func (p *picture) drawCells(b box, c panelContent) {
	labelWidth := math.Min(240, b.w*0.4)
	height := math.Min(rowHeight, (b.h-16)/float64(max(1, len(c.series))))
	height = math.Max(height, 11) // a lower row could not have a name
	rows := 0
	for _, s := range c.series {
		y := b.y + height*float64(rows)
		if y+height > b.y+b.h-14 {
			break
		}
		rows++
		p.drawText("cell plain", "start", b.x, y+height-4, shorten(s.name, labelWidth-6))
		p.drawStates(box{b.x + labelWidth, y, b.w - labelWidth, height - 2}, s, c.style)
	}
	p.drawTimes(box{b.x + labelWidth, b.y, b.w - labelWidth, height*float64(rows) + 14})
	p.printf("\n")
}

// drawStates draws one row. Adjacent steps with the same colour and text are one cell.
func (p *picture) drawStates(b box, s namedSeries, style valueStyle) {
	step := b.w / float64(max(1, len(s.Values)))
	for start := 0; start < len(s.Values); {
		end := start + 1
		if s.Values[start] == nil {
			start = end
			continue
		}
		text, class := style.format(*s.Values[start]), style.chooseClass(*s.Values[start])
		for end < len(s.Values) && s.Values[end] != nil && style.chooseClass(*s.Values[end]) == class &&
			style.format(*s.Values[end]) == text {
			end++
		}
		x, w := b.x+step*float64(start), step*float64(end-start)
		p.printf("<rect class=\"state %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", class, x, b.y,
			math.Max(w-0.5, 0.5), b.h)
		// The colour shows enough of a number, but a word is written into its cell.
		if len(style.mappings) > 0 && w > smallLetterWidth*float64(len(text))+4 {
			p.drawText("on", "middle", x+w/2, b.y+b.h-4, text)
		}
		start = end
	}
}

// drawTimes writes the age of the left end of a time axis, and "now" at the right end.
func (p *picture) drawTimes(b box) {
	p.drawText("tick", "start", b.x, b.y+b.h, fmt.Sprintf("%.0f min ago", p.minutes))
	p.drawText("tick", "end", b.x+b.w, b.y+b.h, "now")
}

// scale is the range of an axis.
type scale struct{ low, high float64 }

// drawLines draws the series as lines over time, with a legend. If the panel is stacked, it draws areas instead.
func (p *picture) drawLines(b box, c panelContent) {
	stacked := stackValues(c)
	legend := p.drawLegend(b, c)
	plot := box{b.x, b.y + 2, b.w, b.h - 20 - legend}
	parts := 4
	if plot.h < 4*tickHeight {
		parts = 2
	}
	s := computeScale(c, stacked, parts)
	ticks, longest := make([]string, parts+1), 0
	for i := range ticks {
		ticks[i] = c.style.format(s.low + float64(i)/float64(parts)*(s.high-s.low))
		longest = max(longest, len([]rune(ticks[i])))
	}
	labelWidth := smallLetterWidth*float64(longest) + 8
	plot.x, plot.w = plot.x+labelWidth, plot.w-labelWidth
	for i, tick := range ticks {
		y := plot.y + plot.h*(1-float64(i)/float64(parts))
		p.printf("<path class=\"grid\" d=\"M%.0f %.1fh%.0f\"/>", plot.x, y, plot.w)
		p.drawText("tick", "end", plot.x-5, y+4, tick)
	}
	for i, upper := range stacked {
		class := palette[i%len(palette)]
		if isStacked(c.panel) {
			p.drawAreas(plot.toPoints(upper, s), plot.toPoints(subtractHeights(upper, c.series[i].Values), s), class)
			continue
		}
		for _, points := range plot.toPoints(upper, s) {
			p.drawLine(points, class)
		}
	}
	p.drawTimes(box{plot.x, plot.y, plot.w, plot.h + 14})
	p.printf("\n")
}

// drawLine draws a part of a line without gaps. A single point is drawn as a circle.
func (p *picture) drawLine(points []point, class string) {
	if len(points) == 1 {
		p.printf("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"1\"/>", class, points[0].x, points[0].y)
		return
	}
	p.printf("<polyline class=\"%s\" points=\"%s\"/>", class, formatPoints(points))
}

// drawAreas fills the areas between two lines that have the same gaps.
func (p *picture) drawAreas(upper, lower [][]point, class string) {
	for i := range upper {
		if slices.Equal(upper[i], lower[i]) {
			continue // zero all the time
		}
		back := slices.Clone(lower[i])
		slices.Reverse(back)
		p.printf("<polygon class=\"%s\" points=\"%s %s\"/>", class, formatPoints(upper[i]), formatPoints(back))
	}
}

// formatPoints returns points in the format of an SVG attribute.
func formatPoints(points []point) string {
	text := make([]string, len(points))
	for i, p := range points {
		text[i] = fmt.Sprintf("%.1f,%.1f", p.x, p.y)
	}
	return strings.Join(text, " ")
}

// subtractHeights returns the lower edge of an area with these upper values and heights.
func subtractHeights(upper, heights []*float64) []*float64 {
	out := make([]*float64, len(upper))
	for i, top := range upper {
		if top != nil {
			out[i] = ptr.To(*top - *heights[i])
		}
	}
	return out
}

// drawLegend draws the names of the series below a panel, in at most two rows, and returns its height.
func (p *picture) drawLegend(b box, c panelContent) float64 {
	const height = 14.0
	x, rows := b.x, 1.0
	type entry struct {
		x, row float64
		class  string
		name   string
	}
	var entries []entry
	for i, s := range c.series {
		if s.name == "" {
			continue
		}
		name := shorten(s.name, b.w-20)
		w := 14 + smallLetterWidth*float64(len([]rune(name))) + 10
		if x > b.x && x+w > b.x+b.w {
			if rows == 2 {
				break
			}
			x, rows = b.x, rows+1
		}
		entries = append(entries, entry{x: x, row: rows, class: palette[i%len(palette)], name: name})
		x += w
	}
	if len(entries) == 0 {
		return 0
	}
	for _, e := range entries {
		y := b.y + b.h - height*(rows-e.row)
		p.printf("<path class=\"%s\" d=\"M%.0f %.0fh10\"/>", e.class, e.x, y-4)
		p.drawText("tick", "start", e.x+14, y, e.name)
	}
	return height * rows
}

// stackValues returns the values of all series. If the panel is stacked, the values of the previous
// series are added to each series.
func stackValues(c panelContent) [][]*float64 {
	out := make([][]*float64, len(c.series))
	stacked := isStacked(c.panel)
	var sums []float64
	for i, s := range c.series {
		out[i] = s.Values
		if !stacked {
			continue
		}
		out[i] = make([]*float64, len(s.Values))
		sums = append(sums, make([]float64, max(0, len(s.Values)-len(sums)))...)
		for j, v := range s.Values {
			if v != nil {
				sums[j] += *v
				out[i][j] = ptr.To(sums[j])
			}
		}
	}
	return out
}

// computeScale returns the range of an axis for all values. It includes the minimum of the panel,
// and 0 if the panel is stacked. Each of the parts of the axis has a round size: of bytes a round number of MiB, and
// without decimals a whole number.
func computeScale(c panelContent, values [][]*float64, parts int) scale {
	s := scale{math.Inf(1), math.Inf(-1)}
	for _, series := range values {
		for _, v := range series {
			if v != nil {
				s = scale{math.Min(s.low, *v), math.Max(s.high, *v)}
			}
		}
	}
	if low := c.panel.FieldConfig.Defaults.Min; low != nil || isStacked(c.panel) {
		s.low = math.Min(ptr.Deref(low, 0), s.low)
	}
	if s.high-s.low < 1e-9 { // one value: a range around it
		s = scale{s.low - math.Abs(s.low)*0.1, s.high + math.Abs(s.high)*0.1}
		if s.low == 0 {
			s.high = 1
		}
	}
	unit, minStep := 1.0, 0.0
	if c.style.unit == units.BytesIEC {
		unit = 1 << 20
	}
	if ptr.Deref(c.style.decimals, 1) == 0 {
		minStep = 1
	}
	s = scale{s.low / unit, s.high / unit}.roundOut(parts, minStep)
	return scale{s.low * unit, s.high * unit}
}

// roundOut widens a range so that each of its parts has a round size, which is at least minStep.
func (s scale) roundOut(parts int, minStep float64) scale {
	size := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/float64(parts))))
	for _, factor := range []float64{1, 2, 2.5, 4, 5, 8, 10, 20} {
		step := math.Max(size*factor, minStep)
		low := math.Floor(s.low/step+1e-9) * step
		if high := low + float64(parts)*step; high >= s.high-1e-9*step {
			return scale{roundDigits(low), roundDigits(high)}
		}
	}
	return s
}

// roundDigits removes the digits that result from float arithmetic.
func roundDigits(value float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 9, 64), 64)
	if err != nil {
		return value
	}
	return out
}

type point struct{ x, y float64 }

// toPoints returns the points of one series, split into parts without gaps.
func (b box) toPoints(values []*float64, s scale) [][]point {
	var out [][]point
	gap := true
	for i, v := range values {
		if v == nil {
			gap = true
			continue
		}
		if gap {
			out = append(out, nil)
			gap = false
		}
		p := point{b.x + b.w*float64(i)/float64(max(1, len(values)-1)), b.y + b.h*(1-(*v-s.low)/(s.high-s.low))}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}
