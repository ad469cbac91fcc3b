// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

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

var expectedDesc = prometheus.NewDesc(series.OperatorExpected,
	"1 for each operator that should run on a cluster, as the hub knows it.", []string{series.Cluster, series.Operator}, nil)

// Gauges returns the collector of the inventory. Agents export the same series
// of themselves: a cluster whose agent is dead is missed because of this one.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, expectedDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var installs v1alpha1.OperatorInstallList
	if err := cache.List(ctx, &installs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	type place struct{ cluster, operator string }
	seen := map[place]bool{} // operators of one name in two namespaces are one series
	for i := range installs.Items {
		o := &installs.Items[i]
		at := place{o.Spec.Cluster, o.Spec.Operator.Name}
		if !expected(o) || seen[at] {
			continue
		}
		seen[at] = true
		out <- prometheus.MustNewConstMetric(expectedDesc, prometheus.GaugeValue, 1, at.cluster, at.operator)
	}
	return nil
}

// expected is an operator that was admitted to a cluster or is there already: one
// whose wave has not come is missed by nobody, nor is one that is being removed.
func expected(o *v1alpha1.OperatorInstall) bool {
	return o.DeletionTimestamp == nil && (o.Spec.Admission != nil || o.Status.Installed != nil)
}
