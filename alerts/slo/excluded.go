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
// left of it. Bad requests are compared with all bad ones, which costs less than to count
// all requests of the period.
func (s Set) budgetExcluding(p time.Duration) string {
	requests := s.requestSLIs()
	over := func(metric, matcher string) string {
		return fmt.Sprintf("sum_over_time(%s%s[%s])", metric, matcher, duration(p))
	}
	excluded := over(series.SLIBadExcluded, "")
	if len(requests) > 0 {
		excluded = fmt.Sprintf("(%s unless %s %s)", excluded, on(objectiveLabels), series.SLOMinRequests)
	}
	share := fmt.Sprintf("%s\n/ %s %s", excluded, ofSLO, s.budget(p))
	if len(requests) > 0 {
		of := "{" + requests.matcher() + "}"
		share = fmt.Sprintf("(\n  %[1]s\n  or %[2]s %[3]s / %[2]s %[4]s * %[2]s (1 - %[5]s and %[6]s)\n)", share,
			on(budgetLabels), over(series.SLIBadExcluded, of), over(series.SLIBadSlice, of), series.SLOBudgetLeft,
			ofPeriod(p))
	}
	return fmt.Sprintf("clamp_max(%s + %s\n%s,\n1)", series.SLOBudgetLeft, on(budgetLabels), share)
}
