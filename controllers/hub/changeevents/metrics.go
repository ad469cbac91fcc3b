// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

var eventsDesc = kit.NewDesc(series.RolloutChangeEvents)

// Gauges returns the collector of the numbers of change events by state.
func Gauges(mgr ctrl.Manager) prometheus.Collector { return kit.NewGauges(mgr, collect, eventsDesc) }

// collect counts the change events of each operator by state and sends the gauges to out.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var rollouts v1alpha1.OperatorRolloutList
	if err := cache.List(ctx, &rollouts, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorRollouts: %w", err)
	}
	counts := map[[3]string]int{}
	for i := range rollouts.Items {
		ro := &rollouts.Items[i]
		for _, d := range ro.Status.ChangeEvents {
			counts[[3]string{ro.Namespace, ro.Spec.Operator.Name, string(d.State)}]++
		}
	}
	for key, n := range counts {
		out <- prometheus.MustNewConstMetric(eventsDesc, prometheus.GaugeValue, float64(n), key[:]...)
	}
	return nil
}
