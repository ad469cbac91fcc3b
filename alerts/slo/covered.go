// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

const (
	// coverMemory is how long an SLI that was bad still covers others: a container
	// that restarts is available in between.
	coverMemory = "30m"
	// probeMemory is that for probes.
	probeMemory = "5m"
)

// cover are SLIs that are bad for the same failure as others. While one of by is
// bad, a bad slice of slis does not count against their budget.
type cover struct{ slis, by []string }

// covers make one failure one alert. What pages covers tickets about its cause, and
// a ticket about a cause covers the one about missing replicas.
func covers() []cover {
	return []cover{
		{slis: []string{OOM, Restarts, Pending}, by: []string{"available"}},
		{slis: []string{Memory}, by: []string{"available", OOM}},
		{slis: []string{Redundancy}, by: []string{OOM, Restarts, Pending}},
	}
}

// badSlices selects the slices of a part that are bad and not covered.
func (s Set) badSlices(part Part) string {
	var covered, parts []string
	if part != Hub {
		for _, c := range covers() {
			covered = append(covered, c.slis...)
			parts = append(parts, s.uncovered(c))
		}
		slices.Sort(covered)
	}
	all := "sli!~%q"
	switch part {
	case Edge:
		covered = append(covered, Probe+".+")
	case Hub:
		all, covered = "sli=~%q", []string{insides}
	default:
		covered = append(covered, outsides)
	}
	if part != Edge {
		parts = append(parts, outsideSlices())
	}
	others := fmt.Sprintf("%s{"+all+"} > 0", series.SLIBad, strings.Join(covered, "|"))
	return others + "\nor " + strings.Join(parts, "\nor ")
}

// uncovered are the bad slices of the SLIs of a cover that are not covered. An SLI
// that an operator gets no alerts about covers nothing.
func (s Set) uncovered(c cover) string {
	of := func(slis []string) string { return fmt.Sprintf("{%s=~%q}", series.SLI, strings.Join(slis, "|")) }
	by := fmt.Sprintf("%s%s > 0 or last_over_time(%s%s[%s])", series.SLIBad, of(c.by), series.SLIBadSlice, of(c.by),
		coverMemory)
	var silent []string
	for _, sli := range c.by {
		if selected := s.withoutAlerts(series.SLIBad, sli); selected != "" {
			silent = append(silent, selected)
		}
	}
	if len(silent) > 0 {
		by = fmt.Sprintf("(%s) unless %s (%s)", by, on(budgetLabels), strings.Join(silent, " or "))
	}
	return fmt.Sprintf("(\n  %s%s > 0\n  unless %s (%s)\n)", series.SLIBad, of(c.slis), on(installLabels), by)
}

// withoutAlerts selects the series of an SLI of the operators that have no objective
// for it, or one without alerts; empty if all have alerts.
func (s Set) withoutAlerts(metric, sli string) string {
	byDefault, with, without := s.withAlerts(sli)
	of := fmt.Sprintf("%s=%q", series.SLI, sli)
	switch {
	case !byDefault:
		return selectOthers(metric, with, of)
	case len(without) > 0:
		return selectOperators(metric, without, of)
	}
	return ""
}

// The SLIs of probes inside and outside of clusters.
const (
	insides  = "probe:[^:]+"
	outsides = "probe:.+:.+"
)

// outsideSlices are those of probes from outside, except while the same probe fails
// inside the cluster.
func outsideSlices() string {
	of := func(expr, pattern string) string {
		return fmt.Sprintf("label_replace(%s, \"inside\", \"$1\", \"sli\", %q)", expr, pattern)
	}
	fails := fmt.Sprintf("(%[1]s{sli=~%[2]q} > 0 or last_over_time(%[3]s{sli=~%[2]q}[%[4]s])) and %[5]s %[6]s",
		series.SLIBad, insides, series.SLIBadSlice, probeMemory, on(objectiveLabels), series.SLOObjective)
	return fmt.Sprintf("max without (inside) (\n  %s\n  unless on (%s, inside) %s\n)",
		of(fmt.Sprintf("%s{sli=~%q} > 0", series.SLIBad, outsides), "(probe:[^:]+):.+"), installLabels,
		of(fails, "(.+)"))
}
