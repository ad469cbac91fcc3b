// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Metrics of rollouts.
const (
	// MetricAdmissions counts admissions that were written.
	MetricAdmissions = "bellwether_rollout_admissions_total"
	// MetricPhase is 1 for the phase that an operator's newest rollout is in.
	MetricPhase = "bellwether_rollout_phase"
	// MetricClusters counts the clusters of an operator's newest rollout by
	// state: pending, in_progress, succeeded, failed, deferred, removed.
	MetricClusters = "bellwether_rollout_clusters"
)

var (
	phaseDesc    = prometheus.NewDesc(MetricPhase, "Phase of the newest rollout of a managed operator: 1 for the phase it is in.", []string{"namespace", "operator", "phase"}, nil)
	clustersDesc = prometheus.NewDesc(MetricClusters, "Clusters of the newest rollout of a managed operator, by state.", []string{"namespace", "operator", "state"}, nil)
)

// Gauges returns the collector of the rollouts' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, phaseDesc, clustersDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var all v1alpha1.OperatorRolloutList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorRollouts: %w", err)
	}
	latest := map[types.NamespacedName]*v1alpha1.OperatorRollout{}
	for i := range all.Items {
		ro := &all.Items[i]
		key := types.NamespacedName{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
		if known := latest[key]; known == nil || known.Spec.Revision < ro.Spec.Revision {
			latest[key] = ro
		}
	}
	for key, ro := range latest {
		gauge := func(desc *prometheus.Desc, value int32, label string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), key.Namespace, key.Name, label)
		}
		if ro.Status.Phase != "" {
			gauge(phaseDesc, 1, string(ro.Status.Phase))
		}
		c := ro.Status.Clusters
		for state, n := range map[string]int32{
			"pending": c.Pending, "in_progress": c.InProgress, "succeeded": c.Succeeded,
			"failed": c.Failed, "deferred": c.Deferred, "removed": c.Removed,
		} {
			gauge(clustersDesc, n, state)
		}
	}
	return nil
}
