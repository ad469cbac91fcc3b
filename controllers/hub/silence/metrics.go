// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

var (
	endDesc    = kit.NewDesc(series.SilenceEnd)
	hiddenDesc = kit.NewDesc(series.SilenceHiddenPages)

	excludedDesc = kit.NewDesc(series.BudgetExcluded)
)

// maxReasonLength is the length of a reason in a label.
const maxReasonLength = 128

// Gauges returns the collector of the metrics of silences.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, endDesc, hiddenDesc, excludedDesc)
}

// collect sends the gauges of all active AlertSilences to out.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var all v1alpha1.AlertSilenceList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list AlertSilences: %w", err)
	}
	now := time.Now()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for i := range all.Items {
		s := &all.Items[i]
		if !conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionActive) {
			continue
		}
		owner := phrase.OneLine(s.Spec.Owner)
		gauge(endDesc, float64(s.Spec.End.Unix()), s.Namespace, s.Name, owner, s.Labels[v1alpha1.LabelAutomaticSilence])
		if !silences.IsReported(s, now) {
			continue
		}
		for _, h := range s.Status.Hidden {
			gauge(hiddenDesc, float64(h.Pages), h.OperatorNamespace, h.Operator, h.Cluster, s.Namespace, s.Name, owner)
		}
	}
	return collectExcluded(ctx, cache, all.Items, now, out)
}

// collectExcluded sends a gauge for each operator on each cluster whose time is excluded from
// error budgets. If no silence excludes time, it lists nothing.
func collectExcluded(ctx context.Context, cache client.Reader, all []v1alpha1.AlertSilence, now time.Time,
	out chan<- prometheus.Metric) error {
	if !slices.ContainsFunc(all, func(s v1alpha1.AlertSilence) bool { return silences.IsExcluding(&s, now) }) {
		return nil
	}
	var clusters v1alpha1.FleetClusterList
	var installs v1alpha1.OperatorInstallList
	for _, list := range []client.ObjectList{&clusters, &installs} {
		if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	for i := range all {
		s := &all[i]
		owner, reason := phrase.OneLine(s.Spec.Owner), phrase.Truncate(phrase.OneLine(s.Spec.Reason), maxReasonLength)
		for _, e := range silences.Excludes(s, now, clusters.Items, installs.Items) {
			out <- prometheus.MustNewConstMetric(excludedDesc, prometheus.GaugeValue, 1, e.Operator.Namespace,
				e.Operator.Name, e.Cluster, s.Namespace, s.Name, owner, reason)
		}
	}
	return nil
}
