// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// What a period took of a budget is the sum of its complete hours, which is made once
// an hour from all slices, and the slices since then. Each of these has the hour that
// it is of as a label, so that no slice is in both, whenever rules are evaluated.
const (
	// hoursGroup is the group that sums complete hours. It is evaluated once in sumEvery.
	hoursGroup = "hours"
	sumEvery   = time.Hour
	// sumDelay is how far behind it is evaluated: slices and the hour that they are of
	// are recorded one after the other, and sums need both.
	sumDelay = time.Minute
	// sumMemory is how old sums may be, and recentHours the window in which slices of
	// later hours are looked for: an hour more, as sums end with the hour before.
	sumMemory   = 3 * sumEvery
	recentHours = sumMemory + sumEvery
)

// sumParts match the SLIs of each query that makes sums, by the first letter of their
// names. One query for all of them would take longer in a large fleet than Prometheus lets
// a query take. They depend on no objective and on no list of SLIs: what is in another part
// after an edit would be summed twice.
func sumParts() []string {
	return []string{series.SLI + `=~"[a-c].*"`, series.SLI + `=~"[d-o].*"`, series.SLI + `=~"[p-q].*"`,
		series.SLI + `!~"[a-q].*"`}
}

// hourRules record which hour it is, and the bad slices with their hour.
func hourRules() []monitoringv1.Rule {
	seconds := number(sumEvery.Seconds())
	withHour := func(bad string) string {
		return fmt.Sprintf("(%s) * on () group_left (%s) (topk(1, %s) ^ 0)", bad, series.Hour, series.HourStart)
	}
	ownFault := fmt.Sprintf("%s %s > 0", on(budgetLabels), series.SLIBadCluster)
	return []monitoringv1.Rule{
		record(series.HourStart, fmt.Sprintf("count_values(%q, floor(vector(time() / %[2]s)) %% 24) * "+
			"(time() - time() %% %[2]s)", series.Hour, seconds)),
		record(series.SLIBadHour, withHour(fmt.Sprintf("%s and %s", series.SLIBadSlice, ownFault))),
		record(series.SLIBadHour, withHour(fmt.Sprintf("%s unless %s", series.SLIBadSlice, ownFault)),
			series.Blamed, "true"),
	}
}

// sumGroup sums the slices of all complete hours of periods, and those of them that a
// release or a cluster was blamed for. It needs no sums of before: it makes them from
// slices each time, so they are right whatever was missed.
func (s Set) sumGroup() monitoringv1.RuleGroup {
	var rules []monitoringv1.Rule
	for i, matcher := range sumParts() {
		rules = append(rules, sumRule(series.SLIBadHours, fmt.Sprintf("%s (\n  %s\n  or %s\n)", withoutHours,
			s.completeHours(series.SLIBadSlice, matcher, series.SLIBadHour+"{"+matcher+"}"),
			zeros(series.SLIBadHours, matcher)), i))
	}
	for i, matcher := range sumParts() {
		own := s.completeHours(series.SLIBadCluster, matcher, fmt.Sprintf("%s{%s,%s=\"\"}", series.SLIBadHour,
			matcher, series.Blamed))
		rules = append(rules, sumRule(series.SLIBlamedHours, fmt.Sprintf("(%s{%s,%s} - %s %s (\n  %s\n)) > 0\nor %s %s",
			series.SLIBadHours, matcher, ofOperators, on(budgetLabels), withoutHours, own, on(budgetLabels),
			zeros(series.SLIBlamedHours, matcher)), i))
	}
	g := group(hoursGroup, sumEvery, rules...)
	d := monitoringv1.Duration(duration(sumDelay))
	g.QueryOffset = &d
	return g
}

// sumRule records sums of a part of the SLIs, and as the only series without an operator
// when the hour began in which they end: in the same rule, so that whoever sees one sees
// the other.
func sumRule(name, sums string, part int) monitoringv1.Rule {
	return record(name, fmt.Sprintf("%s\nor max(%s)", sums, series.HourStart), series.Part, strconv.Itoa(part+1))
}

// zeros are 0 for the sums of before. Where nothing is left of one, it is 0 once: whoever
// asks for the last one would get the one before otherwise.
func zeros(name, matcher string) string {
	return fmt.Sprintf("0 * (last_over_time(%s{%s,%s}[%s]) != 0)", name, matcher, ofOperators, duration(sumMemory))
}

// ofOperators matches the sums among the series of sumRule.
const ofOperators = series.Operator + `!=""`

// withoutHours sums over the labels that tell when slices were, and which query summed them.
const withoutHours = "sum without (" + series.Hour + ", " + series.Blamed + ", " + series.Part + ")"

// completeHours sums slices over their periods, without those of the current hour.
func (s Set) completeHours(bad, matcher, ofHours string) string {
	return fmt.Sprintf("%s\n  or -sum_over_time(%s[%s]) and on (%s) %s", s.inPeriods(func(window string) string {
		return fmt.Sprintf("sum_over_time(%s{%s}[%s])", bad, matcher, window)
	}), ofHours, duration(recentHours), series.Hour, series.HourStart)
}

// inPeriods evaluates something over the period of each objective. What has no objective
// yet has the longest period, so that there are sums once it has one.
func (s Set) inPeriods(over func(window string) string) string {
	periods := s.periods()
	if len(periods) == 0 {
		return over(duration(DefaultPeriod))
	}
	last := periods[len(periods)-1]
	if len(periods) == 1 {
		return over(duration(last))
	}
	ofPeriod := func(p time.Duration, comparison string) string {
		return fmt.Sprintf("%s (%s %s %s)", on(objectiveLabels), series.SLOPeriod, comparison, number(p.Seconds()))
	}
	var parts []string
	for _, p := range periods[:len(periods)-1] {
		parts = append(parts, fmt.Sprintf("(%s and %s)", over(duration(p)), ofPeriod(p, "==")))
	}
	parts = append(parts, fmt.Sprintf("(%s unless %s)", over(duration(last)), ofPeriod(last, "!=")))
	return "(" + strings.Join(parts, " or ") + ")"
}

// spent are the slices of a period by the newest sums and the slices since then, for
// slices that meet matchers. Of bad requests it makes slices.
func (s Set) spent(sums string, matchers ...string) string {
	r := s.requestSLIs()
	if len(r) == 0 {
		return counted(sums, "", matchers...)
	}
	// A sample has the requests of 5 minutes, so one in 5 minutes has them all. Slices without measurements count as
	// good ones with as many requests as the others have.
	mean := s.inPeriods(func(window string) string {
		return fmt.Sprintf("avg_over_time(%s[%s:%s])", series.SLIRequests, window, Lookback)
	})
	return fmt.Sprintf("(\n  %s / on (%s) group_left () %s\n  or (%s unless %s %s)\n)", counted(sums, r.matcher(),
		matchers...), budgetLabels, mean, counted(sums, "", matchers...), on(objectiveLabels), series.SLOMinRequests)
}

// counted are the bad slices or requests of a period, of SLIs that meet a matcher or of
// all: the newest sums, and the slices since then that meet further matchers.
func counted(sums, of string, matchers ...string) string {
	selected := func(name string, matchers ...string) string {
		all := slices.DeleteFunc(append([]string{of}, matchers...), func(m string) bool { return m == "" })
		if len(all) == 0 {
			return name
		}
		return name + "{" + strings.Join(all, ",") + "}"
	}
	return fmt.Sprintf("%s (\n  last_over_time(%s[%s])\n  or sum_over_time(%s[%s]) and on (%s) "+
		"(last_over_time(%s[%s]) >= on () group_left () (max(%s) or vector(0)))\n)", withoutHours, selected(sums, ofOperators),
		duration(sumMemory), selected(series.SLIBadHour, matchers...), duration(recentHours), series.Hour,
		series.HourStart, duration(recentHours), sumEnds(sums))
}

// blamedOnly matches the slices that a release or the whole cluster is blamed for.
const blamedOnly = series.Blamed + `="true"`

// failures are the bad slices, or the bad requests, that a series of what is left of
// budgets by SLIBadCluster stands for.
func (s Set) failures(left string) string {
	bad := fmt.Sprintf("(1 - %s) * %s %s", left, ofSLO, budget)
	r := s.requestSLIs()
	if len(r) == 0 {
		return bad
	}
	all := counted(series.SLIBadHours, r.matcher())
	return fmt.Sprintf("(\n  (%[1]s - %[2]s %[3]s or %[2]s %[1]s) and %[4]s %[5]s\n  or (%[6]s unless %[4]s %[5]s)\n)",
		all, on(budgetLabels), counted(series.SLIBlamedHours, r.matcher(), blamedOnly), on(objectiveLabels),
		series.SLOMinRequests, bad)
}

// sumEnds are the beginnings of the hours in which the parts of sums end.
func sumEnds(sums string) string {
	return fmt.Sprintf("last_over_time(%s{%s=\"\"}[%s])", sums, series.Operator, duration(sumMemory))
}

// whileSummed has an expression where sums of the same hour are there for all parts, or
// where they cannot be yet as rules were not evaluated before. Until then it has what was
// recorded last: what is not known yet is no budget that is whole again.
func whileSummed(recorded, sums, expr string) string {
	ends := sumEnds(sums)
	known := fmt.Sprintf("(\n  count(%[1]s) == %[2]d and max(%[1]s) == min(%[1]s)\n  or group(%[3]s) unless "+
		"present_over_time(%[3]s[%[4]s] offset %[5]s) unless on () %[1]s\n)", ends, len(sumParts()),
		series.RulesEvaluated, duration(DefaultPeriod), duration(sumMemory))
	return fmt.Sprintf("(\n%s\n)\nand on () %s\nor (%s unless on () %s)", indent(expr), known, recorded, known)
}

// budget is how many slices of its period an objective lets be bad.
var budget = fmt.Sprintf("(%s / %s * (1 - %s))", series.SLOPeriod, number(Step.Seconds()), series.SLOObjective)
