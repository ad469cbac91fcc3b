// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// excludedSlices records the bad slices in time that an AlertSilence excludes from error
// budgets. They are copies: alerts, and what is left of budgets, are made of all bad
// slices, as if nothing were excluded.
func excludedSlices() monitoringv1.Rule {
	return record(series.SLIBadExcluded, fmt.Sprintf("%s and %s %s", series.SLIBadSlice, on(installLabels),
		series.BudgetExcluded))
}

// budgetExcluding is what would be left of the budgets of a period if the excluded slices
// were good. It reads nothing of a budget whose period has none of them, but for what is
// left of it.
func (s Set) budgetExcluding(p time.Duration) string {
	return fmt.Sprintf("clamp_max(%s + %s\n%s,\n1)", series.SLOBudgetLeft, on(budgetLabels),
		s.share(series.SLIBadExcluded, p))
}

// share is what some of the bad slices took of the budgets of a period. Bad requests are
// compared with all bad ones, which costs less than to count all requests of the period.
func (s Set) share(some string, p time.Duration) string {
	over := func(metric, matcher string) string {
		return fmt.Sprintf("sum_over_time(%s%s[%s])", metric, matcher, duration(p))
	}
	requests := s.requestSLIs()
	if len(requests) == 0 {
		return fmt.Sprintf("%s\n/ %s %s", over(some, ""), ofSLO, s.budget(p))
	}
	of := "{" + requests.matcher() + "}"
	return fmt.Sprintf("(\n  (%[1]s unless %[2]s %[3]s)\n/ %[4]s %[5]s\n  or %[6]s %[7]s / %[6]s %[8]s * %[6]s "+
		"(1 - %[9]s and %[10]s)\n)", over(some, ""), on(objectiveLabels), series.SLOMinRequests, ofSLO, s.budget(p),
		on(budgetLabels), over(some, of), over(series.SLIBadSlice, of), series.SLOBudgetLeft, ofPeriod(p))
}
