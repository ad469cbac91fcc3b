// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// scrapeTimeout is for the worst case only: caches are asked once they are
// filled, and answer at once.
const scrapeTimeout = 2 * time.Second

// descriptions are those of the gauges, by name.
func descriptions(cluster string) map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	for _, s := range series.Exported() {
		if s.Type == "gauge" {
			all[s.Name] = prometheus.NewDesc(s.Name, s.Help, s.Labels, prometheus.Labels{series.Cluster: cluster})
		}
	}
	return all
}

// collector collects the gauges when it is scraped. What it cannot read it
// leaves out and logs: one operator must not cost the metrics of all others.
type collector struct {
	log    logr.Logger
	reader *reader
	look   func() Sight
	counts *counts
	descs  map[string]*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	see := c.look()
	if !see.Hub {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	installs, err := c.reader.expected(ctx)
	if err != nil {
		c.log.Error(err, "Cannot export the metrics of operators")
		return
	}
	for _, oi := range installs {
		c.gauge(out, series.OperatorExpected, 1, oi.Spec.Operator)
		if !see.Cluster {
			continue
		}
		seen, err := c.reader.observe(ctx, oi, see)
		if err != nil {
			c.log.Error(err, "Cannot export the metrics of an operator", "namespace", oi.Spec.Operator.Namespace,
				"operator", oi.Spec.Operator.Name)
			continue
		}
		c.vital(out, seen)
		for _, counted := range c.counts.of(oi.Name) {
			c.operands(out, seen.operator, counted)
		}
	}
}

func (c *collector) vital(out chan<- prometheus.Metric, v vital) {
	if v.csv != nil {
		c.gauge(out, series.OperatorInfo, 1, v.operator, v.namespace, v.csv.Name, v.csv.Spec.Version.String(),
			series.ShortHash(v.release))
		for _, name := range webhooks(v.csv) {
			c.gauge(out, series.OperatorWebhook, 1, v.operator, name)
		}
	}
	c.gauge(out, series.OperatorCSVSucceeded, number(v.succeeded), v.operator)
	c.gauge(out, series.OperatorUpgrading, number(v.upgrading), v.operator)
	if v.catalogReady || !v.installing {
		c.gauge(out, series.OperatorCatalogReady, number(v.catalogReady), v.operator)
	}
	for _, d := range v.deployments {
		c.gauge(out, series.OperatorReplicasDesired, float64(d.desired), v.operator, d.deployment)
		c.gauge(out, series.OperatorReplicasAvailable, float64(d.available), v.operator, d.deployment)
	}
	for _, condition := range v.conditions {
		c.gauge(out, series.OperatorConditionStatus, number(condition.Status == metav1.ConditionTrue), v.operator,
			condition.Type)
	}
}

func (c *collector) operands(out chan<- prometheus.Metric, operator v1alpha1.OperatorReference, of counted) {
	if of.uncounted != "" {
		c.gauge(out, series.OperatorOperandsUncounted, 1, operator, of.kind, of.uncounted)
	}
	if of.at.IsZero() {
		return
	}
	for _, ready := range []string{series.ReadyTrue, series.ReadyFalse, series.ReadyUnknown} {
		c.gauge(out, series.OperatorOperands, float64(of.ready[ready]), operator, of.kind, ready)
	}
}

func (c *collector) gauge(out chan<- prometheus.Metric, name string, value float64,
	operator v1alpha1.OperatorReference, further ...string) {
	labels := append([]string{operator.Namespace, operator.Name}, further...)
	metric, err := prometheus.NewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
	if err != nil {
		c.log.Error(err, "Cannot export a series", "metric", name, "labels", labels)
		return
	}
	out <- metric
}

func number(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
