// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

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
	readyDesc  = kit.Desc(series.PagingPolicyReady)
	passedDesc = kit.Desc(series.PagingSelfTestPassed)
	testedDesc = kit.Desc(series.PagingSelfTestTime)
)

// Gauges returns the collector of the policies' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, readyDesc, passedDesc, testedDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var policies v1alpha1.PagingPolicyList
	if err := cache.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list PagingPolicies: %w", err)
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		gauge := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, p.Namespace, p.Name)
		}
		truth := map[bool]float64{true: 1}
		ready := conditions.Get(p.Status.Conditions, v1alpha1.ConditionReady)
		// What was said of another generation is not known of this one, and soon will be.
		if ready.ObservedGeneration == p.Generation {
			gauge(readyDesc, truth[ready.Status == "True"])
		}
		if test := p.Status.SelfTest; test != nil {
			gauge(passedDesc, truth[test.Passed])
			gauge(testedDesc, float64(test.At.Unix()))
		}
	}
	return nil
}
