// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/vitals"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// installBuckets cover the range from an upgrade that only changes an image to an upgrade
// that waits for an approval.
var installBuckets = []float64{5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}

// outcomes counts how admissions ended. It uses changes of OperatorInstalls that the agent
// itself writes, as an event handler of their cache. Admissions that ended before the agent
// started were counted by the previous process.
type outcomes struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec

	mu      sync.Mutex
	counted vitals.Counted
}

// newOutcomes returns outcomes whose series have the name of the cluster as a label.
func newOutcomes(cluster string) *outcomes {
	labels := prometheus.Labels{series.Cluster: cluster}
	o := &outcomes{}
	for _, s := range series.Exported() {
		switch s.Name {
		case series.OperatorInstallTotal:
			o.total = prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.Name, Help: s.Help, ConstLabels: labels},
				s.Labels)
		case series.OperatorInstallDuration:
			o.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: s.Name, Help: s.Help,
				ConstLabels: labels, Buckets: installBuckets}, s.Labels)
		}
	}
	return o
}

// Describe implements prometheus.Collector.
func (o *outcomes) Describe(out chan<- *prometheus.Desc) {
	o.total.Describe(out)
	o.duration.Describe(out)
}

// Collect implements prometheus.Collector.
func (o *outcomes) Collect(out chan<- prometheus.Metric) {
	o.total.Collect(out)
	o.duration.Collect(out)
}

// OnAdd implements cache.ResourceEventHandler.
func (o *outcomes) OnAdd(object any, initially bool) {
	oi, ok := object.(*v1alpha1.OperatorInstall)
	if !ok {
		return
	}
	// The counters start at 0, so that a rate includes the first outcome.
	for _, outcome := range []string{series.OutcomeSucceeded, series.OutcomeFailed} {
		o.total.WithLabelValues(oi.Spec.Operator.Namespace, oi.Spec.Operator.Name, outcome)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if initially {
		o.counted.MarkCounted(oi)
	} else {
		o.countEnding(oi)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (o *outcomes) OnUpdate(_, object any) {
	oi, ok := object.(*v1alpha1.OperatorInstall)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countEnding(oi)
}

// countEnding counts the outcome of an admission if it has ended and is not counted yet.
func (o *outcomes) countEnding(oi *v1alpha1.OperatorInstall) {
	ending, ended := o.counted.Update(oi)
	if !ended {
		return
	}
	labels := []string{oi.Spec.Operator.Namespace, oi.Spec.Operator.Name, ending.Outcome}
	o.total.WithLabelValues(labels...).Inc()
	o.duration.WithLabelValues(labels...).Observe(ending.Took.Seconds())
}

// OnDelete implements cache.ResourceEventHandler.
func (o *outcomes) OnDelete(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	oi, ok := object.(*v1alpha1.OperatorInstall)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counted.Forget(oi)
	labels := prometheus.Labels{series.OperatorNamespace: oi.Spec.Operator.Namespace,
		series.Operator: oi.Spec.Operator.Name}
	o.total.DeletePartialMatch(labels)
	o.duration.DeletePartialMatch(labels)
}
