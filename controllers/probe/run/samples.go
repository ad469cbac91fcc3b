// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// sample is one value of the newest run of a probe.
type sample struct {
	series string
	// label is the value of the series' own label, if it has one.
	label string
	value float64
}

// exported are the prober's series that are exported. All others are dropped.
var exported = func() map[string]exportedSeries {
	all := map[string]exportedSeries{}
	for _, s := range series.Probed() {
		k := exportedSeries{desc: prometheus.NewDesc(s.Name, s.Help, append([]string{series.Cluster}, s.Labels...),
			nil)}
		if last := s.Labels[len(s.Labels)-1]; last != series.Vantage {
			k.ownLabel = last
		}
		all[s.Name] = k
	}
	return all
}()

// exportedSeries is a series with the name of its additional label, if it has
// one.
type exportedSeries struct {
	desc     *prometheus.Desc
	ownLabel string
}

// gather returns the samples to export from a run's registry, and the facts
// that explain a failure.
func gather(registry *prometheus.Registry) ([]sample, facts) {
	families, err := registry.Gather()
	if err != nil {
		return nil, facts{} // a registry of gauges only does not fail
	}
	var samples []sample
	var f facts
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			s := sample{series: family.GetName(), value: metric.GetGauge().GetValue()}
			if labels := metric.GetLabel(); len(labels) > 0 {
				s.label = labels[0].GetValue()
			}
			f.add(s)
			if s.series == series.ProbeSSLChainExpiry && s.value <= 0 {
				continue // no chain was verified
			}
			if _, ok := exported[s.series]; ok {
				samples = append(samples, s)
			}
		}
	}
	return samples, f
}

// add takes a fact from a sample.
func (f *facts) add(s sample) {
	switch s.series {
	case series.ProbeHTTPStatusCode:
		f.status = int(s.value)
	case series.ProbeHTTPUncompressed:
		f.bodyBytes = s.value
	case series.ProbeHTTPRedirects:
		f.redirects = int(s.value)
	case series.ProbeFailedDueToRegex:
		f.regexFailed = s.value == 1
	case series.ProbeFailedDueToCEL:
		f.jsonFailed = s.value == 1
	case "probe_dns_query_succeeded":
		f.dnsAnswered = s.value == 1
	case series.ProbeGRPCHealthResponse:
		if s.value == 1 {
			f.health = grpc_health_v1.HealthCheckResponse_ServingStatus(
				grpc_health_v1.HealthCheckResponse_ServingStatus_value[s.label])
		}
	}
}

// Describe implements prometheus.Collector.
func (e *Engine) Describe(out chan<- *prometheus.Desc) {
	for _, s := range exported {
		out <- s.desc
	}
	e.lateness.Describe(out)
	e.runs.Describe(out)
	out <- e.probes
}

// Collect implements prometheus.Collector. A probe that has not run has no
// series, and the series of a removed probe are removed.
func (e *Engine) Collect(out chan<- prometheus.Metric) {
	type probeSeries struct {
		labels  []*dto.LabelPair
		samples []sample
		// attempts and successes count all runs; the samples are of the newest one.
		attempts, successes float64
	}
	// A scrape of thousands of probes takes time and must not delay them: the
	// lock is held for a copy only. Samples are never changed in place.
	e.mu.Lock()
	results := make([]probeSeries, 0, len(e.set))
	for _, probe := range e.set {
		for _, x := range probe.targets {
			results = append(results, probeSeries{x.labels, x.samples, x.attempts, x.successes})
		}
	}
	e.mu.Unlock()
	for _, r := range results {
		for _, s := range r.samples {
			exportedAs := exported[s.series]
			out <- gauge{desc: exportedAs.desc, labels: r.labels, own: s.label, ownName: exportedAs.ownLabel,
				value: s.value}
		}
		if r.attempts > 0 {
			out <- counter{desc: exported[series.ProbeAttempts].desc, labels: r.labels, value: r.attempts}
			out <- counter{desc: exported[series.ProbeSuccesses].desc, labels: r.labels, value: r.successes}
		}
	}
	out <- prometheus.MustNewConstMetric(e.probes, prometheus.GaugeValue, float64(len(results)))
	e.lateness.Collect(out)
	e.runs.Collect(out)
}

// gauge is a metric that shares its labels with the other metrics of the probe,
// because each scrape of 5,000 probes creates a hundred thousand of them.
type gauge struct {
	desc         *prometheus.Desc
	labels       []*dto.LabelPair
	ownName, own string
	value        float64
}

// Desc implements prometheus.Metric.
func (g gauge) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g gauge) Write(out *dto.Metric) error {
	out.Gauge = &dto.Gauge{Value: proto.Float64(g.value)}
	out.Label = g.labels
	if g.ownName == "" {
		return nil
	}
	// A registry requires labels in the order of their names.
	out.Label = make([]*dto.LabelPair, 0, len(g.labels)+1)
	added := false
	for _, label := range g.labels {
		if !added && label.GetName() > g.ownName {
			out.Label, added = append(out.Label, &dto.LabelPair{Name: proto.String(g.ownName),
				Value: proto.String(g.own)}), true
		}
		out.Label = append(out.Label, label)
	}
	if !added {
		out.Label = append(out.Label, &dto.LabelPair{Name: proto.String(g.ownName), Value: proto.String(g.own)})
	}
	return nil
}

// counter is a counter that shares its labels with the probe's other metrics.
type counter struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc implements prometheus.Metric.
func (c counter) Desc() *prometheus.Desc { return c.desc }

// Write implements prometheus.Metric.
func (c counter) Write(out *dto.Metric) error {
	out.Counter, out.Label = &dto.Counter{Value: proto.Float64(c.value)}, c.labels
	return nil
}

// labelsOf returns the labels of an endpoint in the order of their names. Prometheus
// takes an empty label for none.
func labelsOf(p *Probe, target string) []*dto.LabelPair {
	return []*dto.LabelPair{
		{Name: proto.String(series.Cluster), Value: proto.String(p.Cluster)},
		{Name: proto.String(series.Operator), Value: proto.String(p.Spec.Operator.Name)},
		{Name: proto.String(series.OperatorNamespace), Value: proto.String(p.Spec.Operator.Namespace)},
		{Name: proto.String(series.Probe), Value: proto.String(p.Name)},
		{Name: proto.String(series.Target), Value: proto.String(target)},
		{Name: proto.String(series.Vantage), Value: proto.String(p.Vantage)},
	}
}
