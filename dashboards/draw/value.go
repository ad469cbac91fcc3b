// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"k8s.io/utils/ptr"
)

// valueStyle is how the values of a panel or a column are shown.
type valueStyle struct {
	unit       string
	decimals   *float64
	thresholds *dashboard.ThresholdsConfig
	mappings   []dashboard.ValueMapping
}

// format returns a value as text, in almost the same form as Grafana.
func (l valueStyle) format(value float64) string {
	if mapped, ok := l.findMapping(value); ok {
		return ptr.Deref(mapped.Text, "")
	}
	switch {
	case l.unit == units.PercentUnit:
		return l.formatNumber(100*value) + " %"
	case l.unit == units.Seconds || l.unit == units.DurationSeconds:
		return l.formatDuration(value)
	case l.unit == units.BytesIEC:
		return l.formatNumber(value/(1<<20)) + " MiB"
	case strings.HasPrefix(l.unit, "suffix:"):
		return l.formatNumber(value) + strings.TrimPrefix(l.unit, "suffix:")
	case l.unit == units.OpsPerSecond:
		return l.formatNumber(value) + " ops/s"
	case l.unit == units.RequestsPerSecond:
		return l.formatNumber(value) + " req/s"
	}
	return l.formatNumber(value)
}

// formatDuration returns a duration in its largest suitable unit, from milliseconds to days.
func (l valueStyle) formatDuration(seconds float64) string {
	size := math.Abs(seconds)
	switch {
	case size != 0 && size < 1:
		return l.formatNumber(1000*seconds) + " ms"
	case size < 120:
		return l.formatNumber(seconds) + " s"
	case size < 7200:
		return l.formatNumber(seconds/60) + " min"
	case size < 172800:
		return l.formatNumber(seconds/3600) + " h"
	}
	return l.formatNumber(seconds/86400) + " d"
}

// formatNumber returns a number with the configured decimals, or with three significant digits.
func (l valueStyle) formatNumber(value float64) string {
	if l.decimals != nil {
		return trimZeros(strconv.FormatFloat(value, 'f', int(*l.decimals), 64))
	}
	size := math.Abs(value)
	if size >= 100 || size == 0 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(size))))
	return trimZeros(strconv.FormatFloat(value, 'f', min(decimals, 4), 64))
}

// trimZeros removes the zeros at the end of a decimal fraction.
func trimZeros(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}

// findMapping returns the mapping for a value; false if there is none.
func (l valueStyle) findMapping(value float64) (dashboard.ValueMappingResult, bool) {
	for _, m := range l.mappings {
		if m.ValueMap == nil {
			continue
		}
		if r, ok := m.ValueMap.Options[strconv.FormatFloat(value, 'f', -1, 64)]; ok {
			return r, true
		}
	}
	return dashboard.ValueMappingResult{}, false
}

// chooseClass returns the CSS class for the colour of a value. The colour of a mapping has priority
// over the colour of the highest threshold that the value reaches.
func (l valueStyle) chooseClass(value float64) string {
	if mapped, ok := l.findMapping(value); ok {
		return toClass(ptr.Deref(mapped.Color, ""))
	}
	if l.thresholds == nil {
		return toClass("")
	}
	out := ""
	for _, step := range l.thresholds.Steps {
		if step.Value == nil || value >= *step.Value {
			out = step.Color
		}
	}
	return toClass(out)
}

// toClass returns the CSS class in style.html for a colour of Grafana.
func toClass(colour string) string {
	switch colour {
	case "green", "orange", "red", "blue", "purple":
		return colour
	}
	return "plain"
}

// expandLegend replaces the labels in a legend by their values, and removes labels that the series does not have.
func expandLegend(legend string, labels map[string]string) string {
	if legend == "" {
		return ""
	}
	for name, value := range labels {
		legend = strings.ReplaceAll(legend, fmt.Sprintf("{{%s}}", name), value)
	}
	for {
		prefix, reference, ok := strings.Cut(legend, "{{")
		if !ok {
			return strings.Join(strings.Fields(legend), " ") // without the spaces around removed labels
		}
		_, suffix, _ := strings.Cut(reference, "}}")
		legend = prefix + suffix
	}
}
