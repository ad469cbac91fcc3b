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

// look is how values of a panel or a column are shown.
type look struct {
	unit       string
	decimals   *float64
	thresholds *dashboard.ThresholdsConfig
	mappings   []dashboard.ValueMapping
}

// text is a value as Grafana writes it, nearly.
func (l look) text(value float64) string {
	if mapped, ok := l.mapped(value); ok {
		return ptr.Deref(mapped.Text, "")
	}
	switch {
	case l.unit == units.PercentUnit:
		return l.digits(100*value) + " %"
	case l.unit == units.Seconds || l.unit == units.DurationSeconds:
		return l.duration(value)
	case l.unit == units.BytesIEC:
		return l.digits(value/(1<<20)) + " MiB"
	case strings.HasPrefix(l.unit, "suffix:"):
		return l.digits(value) + strings.TrimPrefix(l.unit, "suffix:")
	case l.unit == units.OpsPerSecond:
		return l.digits(value) + " ops/s"
	case l.unit == units.RequestsPerSecond:
		return l.digits(value) + " req/s"
	}
	return l.digits(value)
}

func (l look) duration(seconds float64) string {
	size := math.Abs(seconds)
	switch {
	case size != 0 && size < 1:
		return l.digits(1000*seconds) + " ms"
	case size < 120:
		return l.digits(seconds) + " s"
	case size < 7200:
		return l.digits(seconds/60) + " min"
	case size < 172800:
		return l.digits(seconds/3600) + " h"
	}
	return l.digits(seconds/86400) + " d"
}

// digits writes a number with the chosen decimals, or three digits that count.
func (l look) digits(value float64) string {
	if l.decimals != nil {
		return trim(strconv.FormatFloat(value, 'f', int(*l.decimals), 64))
	}
	size := math.Abs(value)
	if size >= 100 || size == 0 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(size))))
	return trim(strconv.FormatFloat(value, 'f', min(decimals, 4), 64))
}

func trim(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}

func (l look) mapped(value float64) (dashboard.ValueMappingResult, bool) {
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

// colour is the class of a value: that of its mapping, or else of its threshold.
func (l look) colour(value float64) string {
	if mapped, ok := l.mapped(value); ok {
		return class(ptr.Deref(mapped.Color, ""))
	}
	if l.thresholds == nil {
		return class("")
	}
	out := ""
	for _, step := range l.thresholds.Steps {
		if step.Value == nil || value >= *step.Value {
			out = step.Color
		}
	}
	return class(out)
}

// class is what style.html calls one of Grafana's colours.
func class(colour string) string {
	switch colour {
	case "green", "orange", "red", "blue", "purple":
		return colour
	}
	return "plain"
}

// named is a legend with the values of labels in it.
func named(legend string, labels map[string]string) string {
	if legend == "" {
		return ""
	}
	for name, value := range labels {
		legend = strings.ReplaceAll(legend, fmt.Sprintf("{{%s}}", name), value)
	}
	for {
		before, rest, ok := strings.Cut(legend, "{{")
		if !ok {
			return strings.Join(strings.Fields(legend), " ")
		}
		_, after, _ := strings.Cut(rest, "}}")
		legend = before + after // a label that the series does not have
	}
}
