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
