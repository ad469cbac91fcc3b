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
	return ofOperator(of, fmt.Sprintf("(%s)\nor on (cluster, namespace) (%s)", classicLatency(t), nativeLatency(t)))
}

func classicLatency(t Thresholds) string {
	total := rate(series.ReconcileTimeCount, "")
	slow := fmt.Sprintf("(%s - %s)", total, rate(series.ReconcileTimeBucket, le(t.Duration)))
	return notOrFew(slow, t.BadShare.decimal()+" * "+total)
}

// nativeLatency estimates the slow reconciles within the bucket that has the
// threshold. Without reconciles their fraction is not a number, and none is slow.
func nativeLatency(t Thresholds) string {
	all := rate(series.ReconcileTime, "")
	total := fmt.Sprintf("histogram_count(%s)", all)
	slow := fmt.Sprintf("(%s * (histogram_fraction(%s, Inf, %s) >= 0) or 0 * %s)", total,
		number(t.Duration.Seconds()), all, total)
	return notOrFew(slow, t.BadShare.decimal()+" * "+total)
}
