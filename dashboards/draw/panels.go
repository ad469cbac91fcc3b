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

// palette are the classes of lines, in their order.
var palette = []string{"l0", "l1", "l2", "l3", "l4", "l5"}

const (
	rowHeight = 19.0
	// tickHeight is what a number at an axis needs.
	tickHeight = 13.0
	// small is how wide a letter of a small text is on average.
	small = 6.0
)

// shorten cuts a small text to a width.
func shorten(text string, width float64) string { return fit(text, width*perLetter/small) }

func (p *picture) text(class, anchor string, x, y float64, text string) {
	p.printf("<text class=\"%s\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>", class, x, y, anchor,
		html.EscapeString(text))
}

// numbers draws a figure for each series, side by side.
func (p *picture) numbers(b box, c shown) {
	w := b.w / float64(len(c.series))
	for i, s := range c.series {
		value, ok := s.latest()
		text, class := c.look.text(value), c.look.colour(value)
		if showsNames(c.panel) {
			text = s.name
		} else if !ok {
			text = c.none
		}
		middle, y := b.x+w*(float64(i)+0.5), b.y+b.h/2+6
		if s.name != "" && !showsNames(c.panel) {
			p.text("col", "middle", middle, b.y+b.h-2, shorten(s.name, w-4))
			y -= 6
		}
		size := math.Min(22, 1.7*(w-6)/float64(max(1, len([]rune(text)))))
		p.printf("<text class=\"big %s\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\" "+
			"style=\"font-size:%.0fpx\">%s</text>", class, middle, y, math.Max(9, size), html.EscapeString(text))
	}
	p.printf("\n")
}

// table draws as many rows as there is room for.
func (p *picture) table(b box, c shown) {
	g := gridOf(c)
	widths := g.widths(b.w)
	x := b.x
	for i, title := range g.titles {
		p.text("col", "start", x, b.y+6, shorten(title, widths[i]-4))
		for row := range g.rows {
			y := b.y + 8 + rowHeight*float64(row+1)
			if y > b.y+b.h {
				break
			}
			text, class := g.text(row, i)
			p.text("cell "+class, "start", x, y-4, shorten(text, widths[i]-4))
		}
		x += widths[i]
	}
	p.printf("\n")
}

// widths shares a width among columns by their longest text.
func (g grid) widths(width float64) []float64 {
	out := make([]float64, len(g.titles))
	total := 0.0
	for i, title := range g.titles {
		longest := len([]rune(title))
		for row := range g.rows {
			text, _ := g.text(row, i)
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

// bars draws a bar for each series, against the highest value.
func (p *picture) bars(b box, c shown) {
	highest := 0.0
	for _, s := range c.series {
		v, _ := s.latest()
		highest = math.Max(highest, v)
	}
	for i, s := range c.series {
		y := b.y + 22*float64(i)
		if y+18 > b.y+b.h {
			break
		}
		v, _ := s.latest()
		p.text("cell plain", "start", b.x, y+12, shorten(s.name, b.w*0.4))
		p.printf("<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"12\" rx=\"2\"/>", c.look.colour(v),
			b.x+b.w*0.42, y+2, math.Max(2, b.w*0.38*v/math.Max(highest, 1e-9)))
		p.text("cell plain", "end", b.x+b.w, y+12, c.look.text(v))
	}
	p.printf("\n")
}

// cells draws a row for each series, with the colour of each step.
func (p *picture) cells(b box, c shown) {
	labels := math.Min(240, b.w*0.4)
	height := math.Min(rowHeight, (b.h-16)/float64(max(1, len(c.series))))
	height = math.Max(height, 11)
	rows := 0
	for _, s := range c.series {
		y := b.y + height*float64(rows)
		if y+height > b.y+b.h-14 {
			break
		}
		rows++
		p.text("cell plain", "start", b.x, y+height-4, shorten(s.name, labels-6))
		p.states(box{b.x + labels, y, b.w - labels, height - 2}, s, c.look)
	}
	p.times(box{b.x + labels, b.y, b.w - labels, height*float64(rows) + 14})
	p.printf("\n")
}

// states draws one row: neighbours of the same colour are one cell.
func (p *picture) states(b box, s line, l look) {
	step := b.w / float64(max(1, len(s.Values)))
	for from := 0; from < len(s.Values); {
		to := from + 1
		if s.Values[from] == nil {
			from = to
			continue
		}
		text, class := l.text(*s.Values[from]), l.colour(*s.Values[from])
		for to < len(s.Values) && s.Values[to] != nil && l.colour(*s.Values[to]) == class &&
			l.text(*s.Values[to]) == text {
			to++
		}
		x, w := b.x+step*float64(from), step*float64(to-from)
		p.printf("<rect class=\"state %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", class, x, b.y,
			math.Max(w-0.5, 0.5), b.h)
		if len(l.mappings) > 0 && w > small*float64(len(text))+4 {
			p.text("on", "middle", x+w/2, b.y+b.h-4, text)
		}
		from = to
	}
}

// times writes how long ago the left end is, and that the right one is now.
func (p *picture) times(b box) {
	p.text("tick", "start", b.x, b.y+b.h, fmt.Sprintf("%.0f min ago", p.minutes))
	p.text("tick", "end", b.x+b.w, b.y+b.h, "now")
}

// scale is the range of an axis.
type scale struct{ low, high float64 }

// lines draws lines over time, stacked if the panel is, with the names of the first
// few of them.
func (p *picture) lines(b box, c shown) {
	stacked := stacks(c)
	legend := p.legend(b, c)
	plot := box{b.x, b.y + 2, b.w, b.h - 20 - legend}
	parts := 4
	if plot.h < 4*tickHeight {
		parts = 2
	}
	s := scaleOf(c, stacked, parts)
	ticks, longest := make([]string, parts+1), 0
	for i := range ticks {
		ticks[i] = c.look.text(s.low + float64(i)/float64(parts)*(s.high-s.low))
		longest = max(longest, len([]rune(ticks[i])))
	}
	left := small*float64(longest) + 8
	plot.x, plot.w = plot.x+left, plot.w-left
	for i, tick := range ticks {
		y := plot.y + plot.h*(1-float64(i)/float64(parts))
		p.printf("<path class=\"grid\" d=\"M%.0f %.1fh%.0f\"/>", plot.x, y, plot.w)
		p.text("tick", "end", plot.x-5, y+4, tick)
	}
	for i, upper := range stacked {
		class := palette[i%len(palette)]
		if isStacked(c.panel) {
			p.areas(plot.points(upper, s), plot.points(below(upper, c.series[i].Values), s), class)
			continue
		}
		for _, points := range plot.points(upper, s) {
			p.line(points, class)
		}
	}
	p.times(box{plot.x, plot.y, plot.w, plot.h + 14})
	p.printf("\n")
}

// line draws a piece of a line, which may be a single point.
func (p *picture) line(points []point, class string) {
	if len(points) == 1 {
		p.printf("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"1\"/>", class, points[0].x, points[0].y)
		return
	}
	p.printf("<polyline class=\"%s\" points=\"%s\"/>", class, listed(points))
}

// areas fills what is between two lines with the same gaps.
func (p *picture) areas(upper, lower [][]point, class string) {
	for i := range upper {
		if slices.Equal(upper[i], lower[i]) {
			continue // zero all the time
		}
		back := slices.Clone(lower[i])
		slices.Reverse(back)
		p.printf("<polygon class=\"%s\" points=\"%s %s\"/>", class, listed(upper[i]), listed(back))
	}
}

func listed(points []point) string {
	text := make([]string, len(points))
	for i, at := range points {
		text[i] = fmt.Sprintf("%.1f,%.1f", at.x, at.y)
	}
	return strings.Join(text, " ")
}

// below is where an area of these heights begins.
func below(upper, heights []*float64) []*float64 {
	out := make([]*float64, len(upper))
	for i, top := range upper {
		if top != nil {
			out[i] = ptr.To(*top - *heights[i])
		}
	}
	return out
}

// legend names lines below a panel and returns how high it is.
func (p *picture) legend(b box, c shown) float64 {
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
		w := 14 + small*float64(len([]rune(name))) + 10
		if x > b.x && x+w > b.x+b.w {
			if rows == 2 {
				break
			}
			x, rows = b.x, rows+1
		}
		entries = append(entries, entry{x, rows, palette[i%len(palette)], name})
		x += w
	}
	if len(entries) == 0 {
		return 0
	}
	for _, e := range entries {
		y := b.y + b.h - height*(rows-e.row)
		p.printf("<path class=\"%s\" d=\"M%.0f %.0fh10\"/>", e.class, e.x, y-4)
		p.text("tick", "start", e.x+14, y, e.name)
	}
	return height * rows
}

// stacks are the values of all lines, each above the ones before if they are stacked.
func stacks(c shown) [][]*float64 {
	out := make([][]*float64, len(c.series))
	stacked := isStacked(c.panel)
	var below []float64
	for i, s := range c.series {
		out[i] = s.Values
		if !stacked {
			continue
		}
		out[i] = make([]*float64, len(s.Values))
		below = append(below, make([]float64, max(0, len(s.Values)-len(below)))...)
		for j, v := range s.Values {
			if v != nil {
				below[j] += *v
				out[i][j] = ptr.To(below[j])
			}
		}
	}
	return out
}

// scaleOf is the range of all values, within the panel's bounds.
func scaleOf(c shown, values [][]*float64, parts int) scale {
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
	unit, least := 1.0, 0.0
	if c.look.unit == units.BytesIEC {
		unit = 1 << 20
	}
	if ptr.Deref(c.look.decimals, 1) == 0 {
		least = 1
	}
	s = scale{s.low / unit, s.high / unit}.rounded(parts, least)
	return scale{s.low * unit, s.high * unit}
}

// rounded widens a range so that its parts are round numbers, and not less than
// some size.
func (s scale) rounded(parts int, least float64) scale {
	size := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/float64(parts))))
	for _, factor := range []float64{1, 2, 2.5, 4, 5, 8, 10, 20} {
		step := math.Max(size*factor, least)
		low := math.Floor(s.low/step+1e-9) * step
		if high := low + float64(parts)*step; high >= s.high-1e-9*step {
			return scale{short(low), short(high)}
		}
	}
	return s
}

// short drops the digits that arithmetic of floats adds.
func short(value float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 9, 64), 64)
	if err != nil {
		return value
	}
	return out
}

type point struct{ x, y float64 }

// points are those of one line, in pieces without gaps.
func (b box) points(values []*float64, s scale) [][]point {
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
		at := point{b.x + b.w*float64(i)/float64(max(1, len(values)-1)), b.y + b.h*(1-(*v-s.low)/(s.high-s.low))}
		out[len(out)-1] = append(out[len(out)-1], at)
	}
	return out
}
