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

// connections stores for each hosted cluster a function that returns why the hub does not accept
// the reports of its agent. It is a health check and a collector of metrics.
type connections struct {
	mu        sync.Mutex
	byCluster map[string]func() error
}

// set replaces the function of a cluster; nil removes the cluster.
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

// checkAll returns for each cluster why it is not connected; nil if it is connected.
func (c *connections) checkAll() map[string]error {
	c.mu.Lock()
	checks := maps.Clone(c.byCluster)
	c.mu.Unlock()
	result := map[string]error{}
	for cluster, check := range checks {
		result[cluster] = check()
	}
	return result
}

// Check is a health check that fails while a cluster is not connected. The chart's readiness
// probe does not use it, because the other clusters are still served.
func (c *connections) Check(*http.Request) error {
	all := c.checkAll()
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
func (c *connections) Describe(out chan<- *prometheus.Desc) { out <- hostedConnected }

// Collect implements prometheus.Collector.
func (c *connections) Collect(out chan<- prometheus.Metric) {
	for cluster, err := range c.checkAll() {
		connected := 0.0
		if err == nil {
			connected = 1
		}
		out <- prometheus.MustNewConstMetric(hostedConnected, prometheus.GaugeValue, connected, cluster)
	}
}

// warnings emits Events about a Secret with credentials.
type warnings struct {
	events events.EventRecorder
	secret *corev1.Secret
}

// emit emits an Event. It does nothing if there is no Secret.
func (w warnings) emit(reason, action, message string) {
	if w.secret != nil {
		kit.Emit(w.events, w.secret, reason, action, "%s", message)
	}
}
