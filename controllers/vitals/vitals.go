// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vitals exports what rules and dashboards need to know about each
// operator on the agent's cluster, under the names of alerts/series: what is
// expected and installed, whether it is healthy, how many of its custom
// resources are ready, and how installations and upgrades ended.
//
// Gauges are read from the agent's caches at each scrape, so a series is
// removed with its object. Custom resources and pods are not cached: they are
// listed every minute, in pages that are not kept. A scrape waits for neither.
//
// It only reads. It must not write to the hub or the cluster, and must export
// nothing about what it cannot read, except what is expected to run.
package vitals

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// What the agent may read on its cluster for this. Custom resources are listed
// with what the aggregated role of the chart adds, and OLM's additions to the
// role view.
//
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions;catalogsources,verbs=get;list;watch
// +kubebuilder:rbac:groups=operators.coreos.com,resources=subscriptions;operatorconditions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// Options configure the metrics.
type Options struct {
	// Cluster is the FleetCluster's name, a label of every series.
	Cluster string
	// OLM tells whether the cluster serves OLM's API, if that is known yet.
	OLM func() (served, known bool)
	// CountEvery is how often custom resources are counted; default 1m.
	CountEvery time.Duration
	Now        func() time.Time
}

// Add exports metrics of the OperatorInstalls in the manager's cache, as
// observed on the local cluster.
func Add(hub ctrl.Manager, local cluster.Cluster, metrics prometheus.Registerer, o Options) error {
	if o.CountEvery == 0 {
		o.CountEvery = time.Minute
	}
	operands, err := newLister(local)
	if err != nil {
		return err
	}
	ended := newOutcomes(o.Cluster)
	watcher := &cacheWatcher{hub: hub.GetCache(), local: local, olm: o.OLM, now: o.Now, outcomes: ended}
	caches := &reader{hub: hub.GetCache(), local: local.GetCache(), now: o.Now}
	counter := &operandCounter{reader: caches, visibility: watcher.visibility, lister: operands,
		interval: o.CountEvery, now: o.Now, pods: newPodObserver(local.GetAPIReader(), o.Now)}
	gauges := &collector{log: hub.GetLogger().WithName("vitals"), reader: caches, visibility: watcher.visibility,
		counter: counter,
		descs:   descriptions(o.Cluster)}
	for _, c := range []prometheus.Collector{gauges, ended} {
		if err := metrics.Register(c); err != nil {
			return fmt.Errorf("register metrics of operators: %w", err)
		}
	}
	if err := hub.Add(watcher); err != nil {
		return fmt.Errorf("add cache watcher: %w", err)
	}
	if err := hub.Add(counter); err != nil {
		return fmt.Errorf("add operand counter: %w", err)
	}
	return nil
}
