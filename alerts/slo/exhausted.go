// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// AlertExhausted is about an error budget of which nothing is left.
const AlertExhausted = "BellwetherErrorBudgetExhausted"

// restored is what has to be left of a budget for AlertExhausted to end: a budget
// around 0 is not several alerts.
const restored = PPM(50_000)

// exhaustedRules record what is left of budgets by the failures that no release and
// no cluster was blamed for, and alert if it is nothing. Those that were blamed had
// an alert for all of them, and are no reason for a ticket about each budget. One or
// two failures never alert, however little it takes to spend the budget. Only the alert
// reads what is left, so where it is enough to end the alert it is not recorded.
//
// The alert does not begin while the budget burns, nor within 6 hours of a page:
// the alerts about that say what is left. Once it fires, it goes on until some of
// the budget is back.
func (s Set) exhaustedRules() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, p := range s.periods() {
		rules = append(rules, record(series.SLOBudgetCluster, s.nearlySpent(p)))
	}
	if len(rules) == 0 {
		return nil
	}
	budget := series.SLOBudgetCluster
	if without := s.selectObjectives(series.SLOObjective, func(o Objective) bool {
		return !o.Alerts.has(series.Ticket)
	}); len(without) > 0 {
		budget = fmt.Sprintf("(%s unless %s (%s))", budget, on(objectiveLabels), strings.Join(without, " or "))
	}
	exhausted := fmt.Sprintf("%[1]s <= 0\nunless %[2]s %[3]s\nunless %[2]s max_over_time(%[3]s{%[4]s}[%[5]s])\n"+
		"or %[1]s\nand %[2]s ALERTS{alertname=%[6]q,alertstate=\"firing\"}", budget, on(budgetLabels), series.SLOBurn,
		s.pagingTiers(), duration(pageMemory), AlertExhausted)
	identity := []string{series.Cluster, series.OperatorNamespace, series.Operator, series.SLI}
	alert := rule(AlertExhausted, series.Ticket, series.ScopeOperator, owned(exhausted), s.annotate(map[string]string{
		"summary": "The error budget for {{ $labels.sli }} of " + nameOfOperator +
			" on cluster {{ $labels.cluster }} is spent",
		"description": "The SLI was bad for longer in its period than its target permits, also without what a " +
			"release or the whole cluster was blamed for. This alert ends when " + restored.String() + " % of the " +
			"budget is left again. Find out what spent it before the next change.",
		"budget_left": budgetLeft("%s", identity...),
		"criticality": s.criticality(),
	}, "&var-cluster={{ $labels.cluster | urlquery }}"))
	return append(merge(rules), alert)
}

// nearlySpent is what the failures of a period that nobody was blamed for left of its
// budgets, where that is at most what ends the alert, and was more than two failures.
// It reads the slices of the others only: all that is bad is in what is left already.
func (s Set) nearlySpent(p time.Duration) string {
	left := fmt.Sprintf("(%s <= %s and %s)", series.SLOBudgetLeft, restored.decimal(), ofPeriod(p))
	most := fmt.Sprintf("clamp_max(1 - %s / %s, %s)", number(few), s.budget(p), restored.decimal())
	requests := s.requestSLIs()
	if len(requests) > 0 {
		most = fmt.Sprintf("(0 * %s + %s or %s)", series.SLOMinRequests, restored.decimal(), most)
	}
	spent := fmt.Sprintf("(\n  %[1]s + %[2]s %[3]s\n  or %[2]s %[1]s\n) <= %[4]s %[5]s", left, on(budgetLabels),
		s.share(series.SLIBadBlamed, p), ofSLO, most)
	if len(requests) > 0 {
		spent += fmt.Sprintf("\nunless %s (sum_over_time(%s{%s}[%s]) and %s %s) < %s", on(budgetLabels),
			series.SLIBadCluster, requests.matcher(), duration(p), on(objectiveLabels), series.SLOMinRequests,
			number(few))
	}
	return spent
}
