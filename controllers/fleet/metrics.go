// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/kit/conditions"
)

// MetricClusters counts clusters by state: online, offline, never_joined.
const MetricClusters = "bellwether_fleet_clusters"

var clustersDesc = prometheus.NewDesc(MetricClusters, "Clusters of the fleet by state of their agent.", []string{"state"}, nil)

// Gauges returns the collector of the fleet's metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, clustersDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var clusters v1alpha1.FleetClusterList
	if err := cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list FleetClusters: %w", err)
	}
	states := map[string]int{"online": 0, "offline": 0, "never_joined": 0}
	for i := range clusters.Items {
		states[stateOf(&clusters.Items[i])]++
	}
	for state, n := range states {
		out <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(n), state)
	}
	return nil
}

func stateOf(c *v1alpha1.FleetCluster) string {
	online := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline)
	switch {
	case conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline):
		return "online"
	case online.Reason == v1alpha1.ReasonLeaseExpired:
		return "offline"
	default:
		return "never_joined"
	}
}
