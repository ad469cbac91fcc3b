// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// AlertExhausted is about an error budget of which nothing is left.
const AlertExhausted = "BellwetherErrorBudgetExhausted"

// restored is what has to be left of a budget for AlertExhausted to end: a budget
// around 0 is not several alerts.
const restored = PPM(50_000)

// exhaustedGroup has what takes as long as all other rules about budgets: apart from
// them, Prometheus evaluates both at the same time.
func (s Set) exhaustedGroup() monitoringv1.RuleGroup {
	return group("exhausted", budgetInterval, s.exhaustedRules()...)
}

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
	atLeast := ">= " + number(few)
	for _, part := range s.budgetParts() {
		for _, p := range part.periods {
			left := s.budgetLeft(series.SLIBadCluster, part, p, atLeast)
			rules = append(rules, part.record(series.SLOBudgetCluster, left+" < "+restored.decimal()))
		}
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
