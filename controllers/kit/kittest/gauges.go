// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kittest has helpers for tests of controllers. Only tests import it.
package kittest

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Gauges collects the metrics of objects in memory.
type Gauges struct {
	collect func(context.Context, client.Reader, chan<- prometheus.Metric) error
	cache   client.Reader
}

// NewGauges returns gauges that call collect on the given objects.
func NewGauges(t *testing.T, collect func(context.Context, client.Reader, chan<- prometheus.Metric) error,
	objects ...client.Object) Gauges {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return Gauges{collect: collect, cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

// Compare fails the test unless the metrics with the given names are as wanted. Without names,
// it compares all metrics. want is in the text format of Prometheus.
func (g Gauges) Compare(t *testing.T, want string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(g, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

var failedDesc = prometheus.NewDesc("failed", "The metrics could not be collected.", nil, nil)

// Describe implements prometheus.Collector.
func (g Gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (g Gauges) Collect(out chan<- prometheus.Metric) {
	if err := g.collect(context.Background(), g.cache, out); err != nil {
		out <- prometheus.NewInvalidMetric(failedDesc, err)
	}
}
