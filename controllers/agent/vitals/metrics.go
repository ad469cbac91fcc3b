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

// scrapeTimeout is a precaution: the caches are filled before they are
// read, and answer immediately.
const scrapeTimeout = 2 * time.Second

// newDescriptions returns the descriptions of the collector's metrics, by name: the gauges and
// the counter of restarts. The type outcomes has the other counters.
func newDescriptions(cluster string) map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	for _, s := range series.Exported() {
		if s.Type == "gauge" || s.Name == series.OperatorRestarts {
			all[s.Name] = prometheus.NewDesc(s.Name, s.Help, s.Labels, prometheus.Labels{series.Cluster: cluster})
		}
	}
	return all
}

// collector collects the gauges during a scrape. If an operator cannot be read, it
// logs the error and leaves that operator out, so that the metrics of the other
// operators are still exported.
type collector struct {
	log        logr.Logger
	reader     *reader
	visibility func() Visibility
	counter    *operandCounter
	descs      map[string]*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		out <- desc
	}
}

// Collect implements prometheus.Collector. It sends nothing until the OperatorInstalls are known.
// While the data of the cluster is not current, it sends only which operators are expected.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	visible := c.visibility()
	if !visible.Hub {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	installs, err := c.reader.listExpected(ctx)
	if err != nil {
		c.log.Error(err, "Cannot export the metrics of operators")
		return
	}
	for _, oi := range installs {
		c.collectGauge(out, series.OperatorExpected, 1, oi.Spec.Operator)
		if !visible.Cluster {
			continue
		}
		observed, err := c.reader.observe(ctx, oi, visible)
		if err != nil {
			c.log.Error(err, "Cannot export the metrics of an operator", "namespace", oi.Spec.Operator.Namespace,
				"operator", oi.Spec.Operator.Name)
			continue
		}
		c.collectOperator(out, observed)
		c.collectPods(out, observed.operator)
		for _, counted := range c.counter.listCounts(oi.Name) {
			c.collectOperands(out, observed.operator, counted)
		}
	}
}

// collectOperator sends the metrics of an operator's OLM objects. If no ClusterServiceVersion is
// installed, it leaves out the metrics with the details of the installed version.
func (c *collector) collectOperator(out chan<- prometheus.Metric, v observation) {
	if v.csv != nil {
		c.collectGauge(out, series.OperatorInfo, 1, v.operator, v.namespace, v.csv.Name, v.csv.Spec.Version.String(),
			series.ShortHash(v.release))
		if at := v.csv.Status.CertsRotateAt; at != nil && !at.IsZero() {
			c.collectGauge(out, series.OperatorCertificateRotation, float64(at.Unix()), v.operator)
		}
		for _, name := range listWebhooks(v.csv) {
			c.collectGauge(out, series.OperatorWebhook, 1, v.operator, name)
		}
	}
	c.collectGauge(out, series.OperatorCSVSucceeded, toFloat(v.succeeded), v.operator)
	c.collectGauge(out, series.OperatorUpgrading, toFloat(v.upgrading), v.operator)
	if v.catalogReady || !v.installing { // during an installation, the catalog is not ready at first
		c.collectGauge(out, series.OperatorCatalogReady, toFloat(v.catalogReady), v.operator)
	}
	for _, d := range v.deployments {
		c.collectGauge(out, series.OperatorReplicasDesired, float64(d.desired), v.operator, d.deployment)
		c.collectGauge(out, series.OperatorReplicasAvailable, float64(d.available), v.operator, d.deployment)
	}
	for _, claim := range v.claims {
		c.collectGauge(out, series.OperatorVolumeClaim, 1, v.operator, v.namespace, claim)
	}
	for _, condition := range v.conditions {
		isTrue := condition.Status == metav1.ConditionTrue
		c.collectGauge(out, series.OperatorConditionStatus, toFloat(isTrue), v.operator, condition.Type)
	}
}

// collectOperands sends the counts of one kind of an operator's custom resources.
func (c *collector) collectOperands(out chan<- prometheus.Metric, operator v1alpha1.OperatorReference,
	count operandCount) {
	if count.uncounted != "" {
		c.collectGauge(out, series.OperatorOperandsUncounted, 1, operator, count.kind, count.uncounted)
	}
	if count.at.IsZero() {
		return
	}
	c.collectGauge(out, series.OperatorCustomResources, float64(count.total), operator, count.kind)
	for _, ready := range []string{series.ReadyTrue, series.ReadyFalse, series.ReadyUnknown} {
		c.collectGauge(out, series.OperatorOperands, float64(count.ready[ready]), operator, count.kind, ready)
	}
}

// collectPods sends the metrics of an operator's pods, if the pods were observed.
func (c *collector) collectPods(out chan<- prometheus.Metric, operator v1alpha1.OperatorReference) {
	state, isKnown := c.counter.pods.getState(operator)
	if !isKnown {
		return
	}
	for reason, n := range state.restarts {
		c.sendMetric(out, series.OperatorRestarts, prometheus.CounterValue, float64(n), operator, reason)
	}
	if state.pending != nil {
		c.collectGauge(out, series.OperatorPodsPending, float64(*state.pending), operator)
	}
}

// collectGauge sends one gauge of an operator.
func (c *collector) collectGauge(out chan<- prometheus.Metric, name string, value float64,
	operator v1alpha1.OperatorReference, extraLabels ...string) {
	c.sendMetric(out, name, prometheus.GaugeValue, value, operator, extraLabels...)
}

// sendMetric sends one metric of an operator. The operator's namespace and name are the first
// labels. A metric with invalid labels is logged and left out.
func (c *collector) sendMetric(out chan<- prometheus.Metric, name string, valueType prometheus.ValueType, value float64,
	operator v1alpha1.OperatorReference, extraLabels ...string) {
	labels := append([]string{operator.Namespace, operator.Name}, extraLabels...)
	metric, err := prometheus.NewConstMetric(c.descs[name], valueType, value, labels...)
	if err != nil {
		c.log.Error(err, "Cannot export a series", "metric", name, "labels", labels)
		return
	}
	out <- metric
}

// toFloat returns 1 for true and 0 for false.
func toFloat(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
