// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// judgeLatency returns PromQL for the slices of latency. It reads the classic histogram of
// reconciles, or the native histogram if a Prometheus keeps only the native histogram.
func judgeLatency(ops operators, t Thresholds) string {
	return aggregateByOperator(ops, func(from pods) string {
		return fmt.Sprintf("(%s)\nor %s (%s)", buildClassicLatency(from, t), matchOn(from.labels),
			buildNativeLatency(from, t))
	})
}

// buildClassicLatency returns PromQL for slices of latency from the classic histogram.
func buildClassicLatency(from pods, t Thresholds) string {
	total := from.buildRate(series.ReconcileTimeCount)
	slow := fmt.Sprintf("(%s - %s)", total, from.buildRate(series.ReconcileTimeBucket, matchLE(t.Duration)))
	return requireSeveral(slow, t.BadShare.formatDecimal()+" * "+total)
}

// buildNativeLatency returns PromQL for slices of latency from the native histogram: 1 if too many reconciles
// were slow, else 0. It estimates the slow reconciles within the bucket that contains the threshold.
func buildNativeLatency(from pods, t Thresholds) string {
	rate := from.buildRate(series.ReconcileTime)
	total := fmt.Sprintf("histogram_count(%s)", rate)
	// Without reconciles the fraction is NaN. `>= 0` drops NaN, and `or 0 *` replaces it: no reconcile is slow.
	slow := fmt.Sprintf("(%s * (histogram_fraction(%s, Inf, %s) >= 0) or 0 * %s)", total,
		formatNumber(t.Duration.Seconds()), rate, total)
	return requireSeveral(slow, t.BadShare.formatDecimal()+" * "+total)
}
