// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

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

// Metrics of catalogs.
const (
	// MetricReady is 1 while what the source has now is what is in use.
	MetricReady = "bellwether_catalog_ready"
	// MetricBlocked counts the clusters that run a blocked version. A version
	// that nobody runs has no series.
	MetricBlocked = "bellwether_catalog_blocked_version_clusters"
)

var (
	readyDesc   = prometheus.NewDesc(MetricReady, "Whether what a catalog's source has now is what is in use.", []string{"namespace", "catalog"}, nil)
	blockedDesc = prometheus.NewDesc(MetricBlocked, "Clusters that run a blocked version; at most 100 versions of a catalog.", []string{"namespace", "catalog", "package", "version"}, nil)
)

// Gauges returns the collector of the catalogs' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, readyDesc, blockedDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var catalogs v1alpha1.OperatorCatalogList
	if err := cache.List(ctx, &catalogs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorCatalogs: %w", err)
	}
	for i := range catalogs.Items {
		c := &catalogs.Items[i]
		ready := 0.0
		if conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionReady) {
			ready = 1
		}
		out <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready, c.Namespace, c.Name)
		for _, b := range c.Status.BlockedVersions {
			if b.Clusters > 0 {
				out <- prometheus.MustNewConstMetric(blockedDesc, prometheus.GaugeValue, float64(b.Clusters), c.Namespace, c.Name, b.Package, b.Version)
			}
		}
	}
	return nil
}
