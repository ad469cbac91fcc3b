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
	// labelValue is the value of the series' additional label; empty if the series has none.
	labelValue string
	value      float64
}

// exportedByName are the prober's series that are exported, by name. All
// other series are discarded.
var exportedByName = func() map[string]exportedSeries {
	all := map[string]exportedSeries{}
	for _, s := range series.Probed() {
		labels := append([]string{series.Cluster}, s.Labels...)
		exported := exportedSeries{desc: prometheus.NewDesc(s.Name, s.Help, labels, nil)}
		// All series have the same labels up to vantage, and some have an additional label.
		if lastLabel := s.Labels[len(s.Labels)-1]; lastLabel != series.Vantage {
			exported.labelName = lastLabel
		}
		all[s.Name] = exported
	}
	return all
}()

// exportedSeries is a series with the name of its additional label; empty if it has none.
type exportedSeries struct {
	desc      *prometheus.Desc
	labelName string
}

// gatherSamples returns the samples to export from a run's registry, and the
// facts that explain a failure.
func gatherSamples(registry *prometheus.Registry) ([]sample, facts) {
	families, err := registry.Gather()
	if err != nil {
		return nil, facts{} // a registry with only gauges does not fail
	}
	var samples []sample
	var f facts
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			s := sample{series: family.GetName(), value: metric.GetGauge().GetValue()}
			if labels := metric.GetLabel(); len(labels) > 0 {
				s.labelValue = labels[0].GetValue()
			}
			f.addSample(s)
			if s.series == series.ProbeSSLChainExpiry && s.value <= 0 {
				continue // no chain was verified
			}
			if _, ok := exportedByName[s.series]; ok {
				samples = append(samples, s)
			}
		}
	}
	return samples, f
}

// addSample updates the facts from a sample.
func (f *facts) addSample(s sample) {
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
				grpc_health_v1.HealthCheckResponse_ServingStatus_value[s.labelValue])
		}
	}
}

// Describe implements prometheus.Collector.
func (e *Engine) Describe(out chan<- *prometheus.Desc) {
	for _, s := range exportedByName {
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
	// A scrape of thousands of probes takes time and must not delay them, so the lock is held
	// only for a copy. Samples are never changed in place.
	e.mu.Lock()
	results := make([]probeSeries, 0, len(e.entries))
	for _, probe := range e.entries {
		for _, x := range probe.targets {
			results = append(results, probeSeries{labels: x.labels, samples: x.samples, attempts: x.attempts,
				successes: x.successes})
		}
	}
	e.mu.Unlock()
	for _, r := range results {
		for _, s := range r.samples {
			exportedAs := exportedByName[s.series]
			out <- gauge{desc: exportedAs.desc, labels: r.labels, labelName: exportedAs.labelName,
				labelValue: s.labelValue, value: s.value}
		}
		if r.attempts > 0 {
			out <- counter{desc: exportedByName[series.ProbeAttempts].desc, labels: r.labels, value: r.attempts}
			out <- counter{desc: exportedByName[series.ProbeSuccesses].desc, labels: r.labels, value: r.successes}
		}
	}
	out <- prometheus.MustNewConstMetric(e.probes, prometheus.GaugeValue, float64(len(results)))
	e.lateness.Collect(out)
	e.runs.Collect(out)
}

// gauge is a metric that shares its labels with the other metrics of the probe, because each
// scrape of 5,000 probes creates a hundred thousand metrics.
type gauge struct {
	desc                  *prometheus.Desc
	labels                []*dto.LabelPair
	labelName, labelValue string
	value                 float64
}

// Desc implements prometheus.Metric.
func (g gauge) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g gauge) Write(out *dto.Metric) error {
	out.Gauge = &dto.Gauge{Value: proto.Float64(g.value)}
	out.Label = g.labels
	if g.labelName == "" {
		return nil
	}
	// A registry requires labels in the order of their names.
	out.Label = make([]*dto.LabelPair, 0, len(g.labels)+1)
	added := false
	for _, label := range g.labels {
		if !added && label.GetName() > g.labelName {
			out.Label, added = append(out.Label, &dto.LabelPair{Name: proto.String(g.labelName),
				Value: proto.String(g.labelValue)}), true
		}
		out.Label = append(out.Label, label)
	}
	if !added {
		out.Label = append(out.Label, &dto.LabelPair{Name: proto.String(g.labelName),
			Value: proto.String(g.labelValue)})
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

// buildLabels returns the labels of an endpoint, sorted by name. Prometheus treats an empty
// label as a missing label.
func buildLabels(p *Probe, target string) []*dto.LabelPair {
	return []*dto.LabelPair{
		{Name: proto.String(series.Cluster), Value: proto.String(p.Cluster)},
		{Name: proto.String(series.Operator), Value: proto.String(p.Spec.Operator.Name)},
		{Name: proto.String(series.OperatorNamespace), Value: proto.String(p.Spec.Operator.Namespace)},
		{Name: proto.String(series.Probe), Value: proto.String(p.Name)},
		{Name: proto.String(series.Target), Value: proto.String(target)},
		{Name: proto.String(series.Vantage), Value: proto.String(p.Vantage)},
	}
}
