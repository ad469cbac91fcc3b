// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// buildExcludedSlices returns the rule that records the bad slices in the time
// that an AlertSilence excludes from error budgets. The series are copies: alerts
// and remaining budgets still use all bad slices, including the excluded slices.
func buildExcludedSlices() monitoringv1.Rule {
	return newRecord(series.SLIBadExcluded, fmt.Sprintf("%s and %s %s", series.SLIBadSlice, matchOn(installLabels),
		series.BudgetExcluded))
}

// buildBudgetExcluding returns PromQL for the remaining budgets of a period as if the excluded
// slices were good. For a budget without excluded slices it reads only the remaining budget.
func (s Set) buildBudgetExcluding(p time.Duration) string {
	return fmt.Sprintf("clamp_max(%s + %s\n%s,\n1)", series.SLOBudgetLeft, matchOn(budgetLabels),
		s.buildShare(series.SLIBadExcluded, p))
}
