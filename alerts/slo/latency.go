// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// judgeLatency looks at the classic histogram of reconciles. Where a Prometheus
// keeps only the native one, it looks at that.
func judgeLatency(of operators, t Thresholds) string {
	return ofOperator(of, func(from pods) string {
		return fmt.Sprintf("(%s)\nor %s (%s)", classicLatency(from, t), on(from.labels), nativeLatency(from, t))
	})
}

func classicLatency(from pods, t Thresholds) string {
	total := from.rate(series.ReconcileTimeCount)
	slow := fmt.Sprintf("(%s - %s)", total, from.rate(series.ReconcileTimeBucket, le(t.Duration)))
	return notOrFew(slow, t.BadShare.decimal()+" * "+total)
}

// nativeLatency estimates the slow reconciles within the bucket that has the
// threshold. Without reconciles their fraction is not a number, and none is slow.
func nativeLatency(from pods, t Thresholds) string {
	all := from.rate(series.ReconcileTime)
	total := fmt.Sprintf("histogram_count(%s)", all)
	slow := fmt.Sprintf("(%s * (histogram_fraction(%s, Inf, %s) >= 0) or 0 * %s)", total,
		number(t.Duration.Seconds()), all, total)
	return notOrFew(slow, t.BadShare.decimal()+" * "+total)
}
