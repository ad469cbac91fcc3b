// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// connections knows of each hosted cluster why the hub does not accept its agent's
// reports. It is a health check and a collector of metrics.
type connections struct {
	mu        sync.Mutex
	byCluster map[string]func() error
}

// set replaces what tells of a cluster; nil removes the cluster.
func (c *connections) set(cluster string, check func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if check == nil {
		delete(c.byCluster, cluster)
		return
	}
	if c.byCluster == nil {
		c.byCluster = map[string]func() error{}
	}
	c.byCluster[cluster] = check
}

// all returns the clusters, and why one is not connected.
func (c *connections) all() map[string]error {
	c.mu.Lock()
	checks := maps.Clone(c.byCluster)
	c.mu.Unlock()
	result := map[string]error{}
	for cluster, check := range checks {
		result[cluster] = check()
	}
	return result
}

// Check is a health check that fails while some cluster is not connected. The chart's
// readiness probe leaves it out: the others are served all the same.
func (c *connections) Check(*http.Request) error {
	all := c.all()
	var errs []error
	for _, cluster := range slices.Sorted(maps.Keys(all)) {
		if all[cluster] != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", cluster, all[cluster]))
		}
	}
	return errors.Join(errs...)
}

var hostedConnected = prometheus.NewDesc(series.HostedConnected, series.Hosting()[0].Help, series.Hosting()[0].Labels,
	nil)

// Describe implements prometheus.Collector.
func (c *connections) Describe(to chan<- *prometheus.Desc) { to <- hostedConnected }

// Collect implements prometheus.Collector.
func (c *connections) Collect(to chan<- prometheus.Metric) {
	for cluster, err := range c.all() {
		connected := 0.0
		if err == nil {
			connected = 1
		}
		to <- prometheus.MustNewConstMetric(hostedConnected, prometheus.GaugeValue, connected, cluster)
	}
}

// warnings are Events about a Secret with credentials.
type warnings struct {
	events events.EventRecorder
	secret *corev1.Secret
}

// emit does nothing where there is no Secret.
func (w warnings) emit(reason, action, message string) {
	if w.secret != nil {
		kit.Emit(w.events, w.secret, reason, action, "%s", message)
	}
}
