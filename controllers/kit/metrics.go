// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// NewDesc returns the description of one of the hub's series, by its name in package series. It
// panics if the series does not exist.
func NewDesc(name string) *prometheus.Desc {
	for _, s := range series.Hub() {
		if s.Name == name {
			return prometheus.NewDesc(s.Name, s.Help, s.Labels, nil)
		}
	}
	panic("no series of the hub is named " + name)
}

// Gauges collects metrics from the manager's cache during a scrape, so that a series never
// outlives its object. Only the leader reports, so that each object is counted once.
type Gauges struct {
	manager ctrl.Manager
	descs   []*prometheus.Desc
	collect func(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error
}

// scrapeTimeout limits a scrape while the cache is still being filled.
const scrapeTimeout = 5 * time.Second

// NewGauges returns a collector of the metrics with the given descriptions.
func NewGauges(mgr ctrl.Manager, collect func(context.Context, client.Reader, chan<- prometheus.Metric) error,
	descs ...*prometheus.Desc) *Gauges {
	return &Gauges{manager: mgr, descs: descs, collect: collect}
}

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range g.descs {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (g *Gauges) Collect(out chan<- prometheus.Metric) {
	select {
	case <-g.manager.Elected():
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if err := g.collect(ctx, g.manager.GetClient(), out); err != nil {
		out <- prometheus.NewInvalidMetric(g.descs[0], err)
	}
}
