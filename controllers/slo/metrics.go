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
	loadedDesc   = kit.Desc(series.SLORulesLoaded)
	feasibleDesc = kit.Desc(series.SLOFeasible)
)

// Gauges returns the collector of the inventory and of the conditions of
// OperatorSLOs. Agents export the inventory of their own clusters too; the hub's
// is there also while an agent is down.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, expectedDesc, loadedDesc, feasibleDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	return errors.Join(collectExpected(ctx, cache, out), collectConditions(ctx, cache, out))
}

// collectConditions reports the worst condition of an operator's OperatorSLOs, if
// it has several.
func collectConditions(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var slos v1alpha1.OperatorSLOList
	if err := cache.List(ctx, &slos, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorSLOs: %w", err)
	}
	for condition, desc := range map[string]*prometheus.Desc{v1alpha1.ConditionRulesLoaded: loadedDesc,
		v1alpha1.ConditionFeasible: feasibleDesc} {
		holds := map[types.NamespacedName]float64{}
		for i := range slos.Items {
			o := &slos.Items[i]
			key := types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.Operator}
			switch conditions.Get(o.Status.Conditions, condition).Status {
			case metav1.ConditionFalse:
				holds[key] = 0
			case metav1.ConditionTrue:
				if _, known := holds[key]; !known {
					holds[key] = 1
				}
			}
		}
		for key, value := range holds {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, key.Namespace, key.Name)
		}
	}
	return nil
}

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

// isExpected tells whether an operator should run on a cluster: it was admitted to
// it or is installed already, and is not being removed.
func isExpected(o *v1alpha1.OperatorInstall) bool {
	return o.DeletionTimestamp == nil && (o.Spec.Admission != nil || o.Status.Installed != nil)
}
