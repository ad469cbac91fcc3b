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

// AlertExhausted is about an error budget that is used up.
const AlertExhausted = "BellwetherErrorBudgetExhausted"

// restoredShare is the part of a budget that must be available again before
// AlertExhausted ends, so that a budget around 0 does not make several alerts.
const restoredShare = PPM(50_000)

// buildExhaustedRules returns rules that record the remaining budgets after failures for which no release and no
// cluster was blamed, and an alert if nothing is left. Blamed failures already had one alert for all budgets, and are
// not a reason for a ticket about each budget. One or two failures never alert, even if they use up the budget. The
// recorded budgets are used only by the alert, so budgets that are large enough to end the alert are not recorded.
//
// The alert does not begin while the budget burns, nor within 6 hours of a page: those alerts already show
// the remaining budget. Once the alert fires, it continues until a part of the budget is available again.
func (s Set) buildExhaustedRules() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, p := range s.listPeriods() {
		rules = append(rules, newRecord(series.SLOBudgetCluster, s.buildNearlySpent(p)))
	}
	if len(rules) == 0 {
		return nil
	}
	budget := series.SLOBudgetCluster
	if without := s.selectObjectives(series.SLOObjective, func(o Objective) bool {
		return !o.Alerts.hasAlerts(series.Ticket)
	}); len(without) > 0 {
		budget = fmt.Sprintf("(%s unless %s (%s))", budget, matchOn(objectiveLabels), strings.Join(without, " or "))
	}
	exhausted := fmt.Sprintf("%[1]s <= 0\nunless %[2]s %[3]s\nunless %[2]s max_over_time(%[3]s{%[4]s}[%[5]s])\n"+
		"or %[1]s\nand %[2]s ALERTS{alertname=%[6]q,alertstate=\"firing\"}", budget, matchOn(budgetLabels),
		series.SLOBurn, s.matchPagingTiers(), formatDuration(pageMemory), AlertExhausted)
	identity := []string{series.Cluster, series.OperatorNamespace, series.Operator, series.SLI}
	alert := newAlert(AlertExhausted, series.Ticket, series.ScopeOperator, addSLOAndTeam(exhausted),
		s.addDashboard(map[string]string{
			"summary": "The error budget for {{ $labels.sli }} of " + operatorName +
				" on cluster {{ $labels.cluster }} is spent",
			"description": "The SLI was bad for longer in its period than its target permits, also without what a " +
				"release or the whole cluster was blamed for. This alert ends when " + restoredShare.String() +
				" % of the " +
				"budget is left again. Find out what spent it before the next change.",
			"budget_left": formatBudgetLeft("%s", identity...),
			"criticality": s.buildCriticality(),
		}, "&var-cluster={{ $labels.cluster | urlquery }}"))
	return append(merge(rules), alert)
}

// buildNearlySpent returns PromQL for the budgets of a period after failures without blame,
// if the rest is small enough not to end the alert and more than two failures used it. It
// reads only the blamed slices, because the remaining budget already includes all bad slices.
func (s Set) buildNearlySpent(p time.Duration) string {
	remaining := fmt.Sprintf("(%s <= %s and %s)", series.SLOBudgetLeft, restoredShare.formatDecimal(), matchPeriod(p))
	// The part that is left is at most maxLeft only after more than two bad slices.
	maxLeft := fmt.Sprintf("clamp_max(1 - %s / %s, %s)", formatNumber(minBadRequests), s.buildBudget(p),
		restoredShare.formatDecimal())
	requests := s.listRequestSLIs()
	if len(requests) > 0 {
		maxLeft = fmt.Sprintf("(0 * %s + %s or %s)", series.SLOMinRequests, restoredShare.formatDecimal(), maxLeft)
	}
	spent := fmt.Sprintf("(\n  %[1]s + %[2]s %[3]s\n  or %[2]s %[1]s\n) <= %[4]s %[5]s", remaining,
		matchOn(budgetLabels),
		s.buildShare(series.SLIBadBlamed, p), onObjective, maxLeft)
	if len(requests) > 0 {
		spent += fmt.Sprintf("\nunless %s (sum_over_time(%s{%s}[%s]) and %s %s) < %s", matchOn(budgetLabels),
			series.SLIBadCluster, requests.matchNames(), formatDuration(p), matchOn(objectiveLabels),
			series.SLOMinRequests, formatNumber(minBadRequests))
	}
	return spent
}
