// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"errors"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestOpenSLOChecks refuses objects whose meaning is not clear, and names the field. OpenSLO's own checks refuse all of
// them, and more.
func TestOpenSLOChecks(t *testing.T) {
	const good, total = `    good: {metricSource: {type: Prometheus, spec: {query: 'fast_total{job="x"}'}}}`,
		`    total: {metricSource: {type: Prometheus, spec: {query: 'all_total'}}}`
	const source = "{metricSource: {spec: {query: x}}}"
	for name, test := range map[string]struct{ old, new, want string }{
		"no name":      {"{name: fast}", "{}", "metadata.name is required"},
		"name":         {"{name: fast}", "{name: Fast}", `metadata.name: "Fast"`},
		"unknown":      {"indicatorRef:", "indicatorReference:", `unknown field "indicatorReference"`},
		"kind":         {"kind: SLI", "kind: SLA", `OpenSLO has no kind "SLA"`},
		"no service":   {"  service: echo\n", "", "spec.service is required"},
		"method":       {"Occurrences", "Occasions", `spec.budgetingMethod: "Occasions": write Occurrences`},
		"two windows":  {"[{duration: 4w", "[{duration: 1w, isRolling: true}, {duration: 4w", "timeWindow: write one"},
		"window":       {"  timeWindow: [{duration: 4w, isRolling: true}]\n", "", "timeWindow: write one"},
		"no window":    {"isRolling: true", "isRolling: false", "spec.timeWindow[0]: write either isRolling"},
		"duration":     {"4w", "4 weeks", `spec.timeWindow[0].duration: "4 weeks"`},
		"no indicator": {"  indicatorRef: latency-sli\n", "", "spec: write indicator or indicatorRef"},
		"indicator":    {"Ref: latency-sli", "Ref: Latency", `spec.indicatorRef: "Latency"`},
		"indicators":   {"  indicatorRef", "  indicator: {}\n  indicatorRef", "either indicator or indicatorRef"},
		"inline":       {"indicatorRef: latency-sli", "indicator: {metadata: {name: a}}", "indicator.spec: write"},
		"two targets":  {"{target:", "{targetPercent: 99, target:", "spec.objectives[0]: write either target"},
		"no target":    {"{target: 0.999}", "{displayName: a}", "target or targetPercent is required"},
		"target":       {"{target: 0.999}", "{target: 1}", "spec.objectives[0].target: 1: write"},
		"percentage":   {"{target: 0.999}", "{targetPercent: 100}", "objectives[0].targetPercent: 100"},
		"no slices":    {"Occurrences", "RatioTimeslices", "spec.objectives[0].timeSliceWindow"},
		"slices":       {"Occurrences", "Timeslices", "spec.objectives[0].timeSliceTarget"},
		"no metric":    {good, "", "spec.ratioMetric: total needs good or bad"},
		"no total":     {total, "", "spec.ratioMetric: write either total or raw"},
		"raw and good": {total, "    raw: " + source, "write only one of raw, good and bad"},
		"good and bad": {good, good + "\n    bad: " + source, "write only one of raw, good and bad"},
		"raw type":     {good + "\n" + total, "    raw: " + source, "spec.ratioMetric.rawType"},
		"two metrics":  {"  ratioMetric:", "  thresholdMetric: {}\n  ratioMetric:", "spec: write either threshold"},
		"no query":     {"spec: {query: 'all_total'}", "spec: {}", "total.metricSource.spec is required"},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := File(&slo.Set{}, "fleet", []byte(edit(t, openText, test.old, test.new)))
			got := errors.Join(append(report.Refused, err)...)
			if !errors.Is(got, ErrFormat) || !strings.Contains(got.Error(), test.want) {
				t.Errorf("got: %v\nwant: %s", got, test.want)
			}
		})
	}
}

// TestOpenSLOIgnoresAlertsAndServices reads a file with kinds that no rule uses.
func TestOpenSLOIgnoresAlertsAndServices(t *testing.T) {
	text := openText
	for _, kind := range openIgnoredKinds {
		text += "---\napiVersion: openslo/v1\nkind: " + kind + "\nmetadata: {name: a}\nspec: {description: d}\n"
	}
	var set slo.Set
	readFile(t, &set, text)
	if len(set.Operators) != 1 {
		t.Errorf("set: %+v", set)
	}
}
