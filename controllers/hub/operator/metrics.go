// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

var (
	clustersDesc = kit.NewDesc(series.OperatorClusters)
	versionsDesc = kit.NewDesc(series.OperatorVersionClusters)
	readyDesc    = kit.NewDesc(series.OperatorReady)
)

// Gauges returns the collector of the operators' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, clustersDesc, versionsDesc, readyDesc)
}

// collect sends the gauges of all ManagedOperators in the cache to out.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var operators v1alpha1.ManagedOperatorList
	if err := cache.List(ctx, &operators, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ManagedOperators: %w", err)
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for i := range operators.Items {
		o := &operators.Items[i]
		counts := o.Status.Clusters
		for state, n := range map[string]int32{
			"selected": counts.Selected, "updated": counts.Updated, "ready": counts.Ready, "offline": counts.Offline,
		} {
			gauge(clustersDesc, float64(n), o.Namespace, o.Name, state)
		}
		for _, v := range o.Status.Versions {
			gauge(versionsDesc, float64(v.Clusters), o.Namespace, o.Name, v.Version)
		}
		ready := 0.0
		if conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady) {
			ready = 1
		}
		gauge(readyDesc, ready, o.Namespace, o.Name)
	}
	return nil
}
