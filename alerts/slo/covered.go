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
	// coverMemory is how long an SLI that was bad still covers other SLIs: a
	// container that restarts repeatedly is available between the restarts.
	coverMemory = "30m"
	// probeMemory is how long a probe that failed still covers other probes.
	probeMemory = "5m"
)

// cover relates SLIs that are bad because of the same failure. While one of
// coveredBy is bad, a bad slice of slis does not count against the budget.
type cover struct{ slis, coveredBy []string }

// listCovers returns the covers that reduce one failure to one alert. An SLI that pages covers
// tickets about its cause, and a ticket about a cause covers the ticket about missing replicas.
func listCovers() []cover {
	return []cover{
		{slis: []string{OOM, Restarts, Pending}, coveredBy: []string{"available"}},
		{slis: []string{Memory}, coveredBy: []string{"available", OOM}},
		{slis: []string{Redundancy}, coveredBy: []string{OOM, Restarts, Pending}},
	}
}

// selectBadSlices returns PromQL for the slices of a part that are bad and not covered.
func (s Set) selectBadSlices(part Part) string {
	var covered, parts []string
	if part != Hub {
		for _, c := range listCovers() {
			covered = append(covered, c.slis...)
			parts = append(parts, s.selectUncovered(c))
		}
		slices.Sort(covered)
	}
	matcher := "sli!~%q"
	switch part {
	case Edge:
		covered = append(covered, Probe+".+")
	case Hub:
		// The hub part makes only slices of probes. Probes from outside are added below.
		matcher, covered = "sli=~%q", []string{insidePattern}
	default:
		covered = append(covered, outsidePattern)
	}
	if part != Edge {
		parts = append(parts, selectOutsideSlices())
	}
	otherSlices := fmt.Sprintf("%s{"+matcher+"} > 0", series.SLIBad, strings.Join(covered, "|"))
	return otherSlices + "\nor " + strings.Join(parts, "\nor ")
}

// selectUncovered returns PromQL for the bad slices of a cover's SLIs that
// are not covered. An SLI without alerts for an operator covers nothing.
func (s Set) selectUncovered(c cover) string {
	matchSLIs := func(slis []string) string { return fmt.Sprintf("{%s=~%q}", series.SLI, strings.Join(slis, "|")) }
	covering := fmt.Sprintf("%s%s > 0 or last_over_time(%s%s[%s])", series.SLIBad, matchSLIs(c.coveredBy),
		series.SLIBadSlice, matchSLIs(c.coveredBy), coverMemory)
	var withoutAlerts []string
	for _, sli := range c.coveredBy {
		if selected := s.selectWithoutAlerts(series.SLIBad, sli); selected != "" {
			withoutAlerts = append(withoutAlerts, selected)
		}
	}
	if len(withoutAlerts) > 0 {
		covering = fmt.Sprintf("(%s) unless %s (%s)", covering, matchOn(budgetLabels),
			strings.Join(withoutAlerts, " or "))
	}
	return fmt.Sprintf("(\n  %s%s > 0\n  unless %s (%s)\n)", series.SLIBad, matchSLIs(c.slis), matchOn(installLabels),
		covering)
}

// selectWithoutAlerts selects the series of an SLI of the operators that have no objective
// for the SLI, or an objective without alerts. It is empty if all operators have alerts.
func (s Set) selectWithoutAlerts(metric, sli string) string {
	byDefault, alerted, silenced := s.splitByAlerts(sli)
	matcher := fmt.Sprintf("%s=%q", series.SLI, sli)
	switch {
	case !byDefault:
		return selectOthers(metric, alerted, matcher)
	case len(silenced) > 0:
		return selectOperators(metric, silenced, matcher)
	}
	return ""
}

// Patterns of the SLIs of probes inside and outside of clusters.
const (
	insidePattern  = "probe:[^:]+"
	outsidePattern = "probe:.+:.+"
)

// selectOutsideSlices returns PromQL for the slices of probes from
// outside, except while the same probe fails inside the cluster.
func selectOutsideSlices() string {
	addInsideLabel := func(expr, pattern string) string {
		return fmt.Sprintf("label_replace(%s, \"inside\", \"$1\", \"sli\", %q)", expr, pattern)
	}
	failingInside := fmt.Sprintf("(%[1]s{sli=~%[2]q} > 0 or last_over_time(%[3]s{sli=~%[2]q}[%[4]s])) and %[5]s %[6]s",
		series.SLIBad, insidePattern, series.SLIBadSlice, probeMemory, matchOn(objectiveLabels), series.SLOObjective)
	return fmt.Sprintf("max without (inside) (\n  %s\n  unless on (%s, inside) %s\n)",
		addInsideLabel(fmt.Sprintf("%s{sli=~%q} > 0", series.SLIBad, outsidePattern), "(probe:[^:]+):.+"),
		installLabels, addInsideLabel(failingInside, "(.+)"))
}
