// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

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
	readyDesc    = kit.NewDesc(series.CatalogReady)
	infoDesc     = kit.NewDesc(series.CatalogInfo)
	readDesc     = kit.NewDesc(series.CatalogRead)
	packagesDesc = kit.NewDesc(series.CatalogPackages)
	blockedDesc  = kit.NewDesc(series.CatalogBlocked)
)

// Gauges returns the collector of the catalogs' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, readyDesc, infoDesc, readDesc, packagesDesc, blockedDesc)
}

// collect sends the gauges of all OperatorCatalogs in the cache to out.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var catalogs v1alpha1.OperatorCatalogList
	if err := cache.List(ctx, &catalogs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorCatalogs: %w", err)
	}
	for i := range catalogs.Items {
		c := &catalogs.Items[i]
		gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value,
				append([]string{c.Namespace, c.Name}, labels...)...)
		}
		ready := 0.0
		if conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionReady) {
			ready = 1
		}
		gauge(readyDesc, ready)
		gauge(packagesDesc, float64(c.Status.PackageCount))
		if c.Status.Digest != "" {
			gauge(infoDesc, 1, c.Status.Digest)
		}
		if c.Status.LastReadTime != nil {
			gauge(readDesc, float64(c.Status.LastReadTime.Unix()))
		}
		for _, b := range c.Status.BlockedVersions {
			if b.Clusters > 0 {
				gauge(blockedDesc, float64(b.Clusters), b.Package, b.Version)
			}
		}
	}
	return nil
}
