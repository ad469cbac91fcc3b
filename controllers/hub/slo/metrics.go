// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var expectedDesc = prometheus.NewDesc(series.OperatorExpected,
	"1 for each operator that should run on a cluster, as the hub knows it.",
	append([]string{series.Cluster}, series.OfOperator()...), nil)

var (
	loadedDesc   = kit.NewDesc(series.SLORulesLoaded)
	feasibleDesc = kit.NewDesc(series.SLOFeasible)
)

// Gauges returns the collector of the inventory and of the conditions of
// OperatorSLOs. Agents export the inventory of their own clusters too; the hub
// exports it also while an agent is down.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, expectedDesc, loadedDesc, feasibleDesc)
}

// collect sends the gauges of the inventory and of the conditions to out.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	return errors.Join(collectExpected(ctx, cache, out), collectConditions(ctx, cache, out))
}

// collectConditions sends a gauge for each condition of each operator's OperatorSLOs: 1 if the
// condition is true, 0 if it is false, and no gauge if it is unknown. If an operator has several
// OperatorSLOs, one false condition is sufficient for 0.
func collectConditions(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var slos v1alpha1.OperatorSLOList
	if err := cache.List(ctx, &slos, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorSLOs: %w", err)
	}
	for condition, desc := range map[string]*prometheus.Desc{v1alpha1.ConditionRulesLoaded: loadedDesc,
		v1alpha1.ConditionFeasible: feasibleDesc} {
		values := map[types.NamespacedName]float64{}
		for i := range slos.Items {
			o := &slos.Items[i]
			key := types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.Operator}
			switch conditions.Get(o.Status.Conditions, condition).Status {
			case metav1.ConditionFalse:
				values[key] = 0
			case metav1.ConditionTrue:
				if _, known := values[key]; !known {
					values[key] = 1
				}
			}
		}
		for key, value := range values {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, key.Namespace, key.Name)
		}
	}
	return nil
}

// collectExpected sends a gauge for each operator that should run on a cluster. Clusters
// that hibernate are left out.
func collectExpected(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var installs v1alpha1.OperatorInstallList
	if err := cache.List(ctx, &installs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	var clusters v1alpha1.FleetClusterList
	if err := cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list FleetClusters: %w", err)
	}
	stopped := map[string]bool{}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		stopped[c.Name] = c.Status.IsHibernating() && !rollouts.ObserveCluster(c).Online
	}
	for i := range installs.Items {
		if o := &installs.Items[i]; isExpected(o) && !stopped[o.Spec.Cluster] {
			out <- prometheus.MustNewConstMetric(expectedDesc, prometheus.GaugeValue, 1, o.Spec.Cluster,
				o.Spec.Operator.Namespace, o.Spec.Operator.Name)
		}
	}
	return nil
}

// isExpected reports whether an operator should run on a cluster: it is admitted or installed
// there, and is not being removed.
func isExpected(o *v1alpha1.OperatorInstall) bool {
	return o.DeletionTimestamp == nil && (o.Spec.Admission != nil || o.Status.Installed != nil)
}
