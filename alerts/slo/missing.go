// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// missingAbove is the part of an hour's slices from which on some are missing. Windows begin
// and end at another moment than slices, which makes a difference of one.
const missingAbove = "0.02"

// missingSlices records the part of an hour's slices of a cluster that never arrived. The
// hour is one that has been over for so long that nothing of it arrives any more, and in
// which the cluster was expected to have some.
//
// A slice that is missing counts as good, so what is left of budgets is less by up to
// that.
func missingSlices() monitoringv1.Rule {
	const hour = time.Hour
	window := fmt.Sprintf("[%s] offset %s", duration(hour), duration(OutOfOrderWindow))
	expected := func(before time.Duration) string {
		return fmt.Sprintf("%s offset %s", series.ClusterExpected, duration(before))
	}
	return record(series.SlicesMissing, fmt.Sprintf("1 -\n(\n  sum by (cluster) (count_over_time(%s%s))\n"+
		"  or on (cluster) 0 * %s\n) / %d > %s\nand on (cluster) %s\nand on (cluster) %s",
		series.SlicesRecorded, window,
		expected(OutOfOrderWindow), int(hour/Step), missingAbove, expected(OutOfOrderWindow),
		expected(OutOfOrderWindow+hour)))
}

// MissingShare is PromQL for the part of a period's slices that never arrived, by cluster;
// there is no result where none is missing. The selector is empty or {...}.
func MissingShare(selector string, period time.Duration) string {
	return fmt.Sprintf("sum_over_time(%s%s[%s]) * %d / %d", series.SlicesMissing, selector, duration(period),
		int(budgetInterval.Seconds()), int(period.Seconds()))
}
