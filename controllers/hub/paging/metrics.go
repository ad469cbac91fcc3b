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
	readyDesc  = kit.NewDesc(series.PagingPolicyReady)
	passedDesc = kit.NewDesc(series.PagingSelfTestPassed)
	testedDesc = kit.NewDesc(series.PagingSelfTestTime)
)

// Gauges returns the collector of the policies' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, readyDesc, passedDesc, testedDesc)
}

// collect sends the gauges of all PagingPolicies in the cache to out.
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
		gaugeValues := map[bool]float64{true: 1, false: 0}
		ready := conditions.Get(p.Status.Conditions, v1alpha1.ConditionReady)
		// A condition of an older generation says nothing about this generation. The
		// reconciler updates it soon.
		if ready.ObservedGeneration == p.Generation {
			gauge(readyDesc, gaugeValues[ready.Status == "True"])
		}
		if test := p.Status.SelfTest; test != nil {
			gauge(passedDesc, gaugeValues[test.Passed])
			gauge(testedDesc, float64(test.At.Unix()))
		}
	}
	return nil
}
