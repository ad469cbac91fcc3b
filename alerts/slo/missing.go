// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// missingAbove is the part of an hour's slices above which slices count as missing.
// Windows and slices begin at different moments, which makes a difference of one slice.
const missingAbove = "0.02"

// buildMissingSlices returns the rule that records the part of an hour's slices of a cluster that never arrived. The
// hour ended so long ago that none of its slices can still arrive, and the cluster was expected to have slices in it.
//
// A missing slice counts as good, so the real remaining budget may be smaller by up to this part.
func buildMissingSlices() monitoringv1.Rule {
	const hour = time.Hour
	window := fmt.Sprintf("[%s] offset %s", formatDuration(hour), formatDuration(OutOfOrderWindow))
	expected := func(offset time.Duration) string {
		return fmt.Sprintf("%s offset %s", series.ClusterExpected, formatDuration(offset))
	}
	// A cluster without any slices in the hour counts as 0 slices.
	return newRecord(series.SlicesMissing, fmt.Sprintf("1 -\n(\n  sum by (cluster) (count_over_time(%s%s))\n"+
		"  or on (cluster) 0 * %s\n) / %d > %s\nand on (cluster) %s\nand on (cluster) %s",
		series.SlicesRecorded, window,
		expected(OutOfOrderWindow), int(hour/Step), missingAbove, expected(OutOfOrderWindow),
		expected(OutOfOrderWindow+hour)))
}

// MissingShare returns PromQL for the part of a period's slices that never arrived, by
// cluster. Clusters without missing slices have no result. The selector is empty or {...}.
func MissingShare(selector string, period time.Duration) string {
	return fmt.Sprintf("sum_over_time(%s%s[%s]) * %d / %d", series.SlicesMissing, selector, formatDuration(period),
		int(budgetInterval.Seconds()), int(period.Seconds()))
}
