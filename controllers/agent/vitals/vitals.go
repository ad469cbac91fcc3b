// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vitals exports the metrics of each operator on the agent's cluster that rules
// and dashboards use, under the names of alerts/series: what is expected and installed,
// whether it is healthy, how many of its custom resources are ready, and how
// installations and upgrades ended.
//
// Gauges are read from the agent's caches at each scrape, so a series is removed with its
// object. Custom resources and pods are not cached: they are listed every minute, in pages that
// are not kept. A scrape does not wait for these lists.
//
// The package only reads. It must not write to the hub or to the cluster. If data cannot be
// read, it must export nothing about that data, except which operators are expected to run.
package vitals

import (
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// The agent's permissions on its cluster for this package. Custom resources are
// listed with the permissions that the aggregated role of the chart, and OLM's
// additions to the role view, grant.
//
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions;catalogsources,verbs=get;list;watch
// +kubebuilder:rbac:groups=operators.coreos.com,resources=subscriptions;operatorconditions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// Options configure the metrics.
type Options struct {
	// Cluster is the FleetCluster's name, a label of every series.
	Cluster string
	// OLM reports whether the cluster serves OLM's API; known is false if that is not known yet.
	OLM    func() (served, known bool)
	Engine Engine
	// CountEvery is how often custom resources are counted; default 1m.
	CountEvery time.Duration
	Now        func() time.Time
}

// Engine interprets the objects of the engine that installs operators.
type Engine struct {
	// BundleOf returns the bundle that an object was created for; empty if the object was not
	// created for a bundle of the engine.
	BundleOf func(metav1.Object) string
	// IsConnected reports whether OLM is connected to a catalog view.
	IsConnected func(*operatorsv1alpha1.CatalogSource) bool
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
	endings := newOutcomes(o.Cluster)
	watcher := &cacheWatcher{hub: hub.GetCache(), local: local, olm: o.OLM, now: o.Now, outcomes: endings}
	caches := &reader{hub: hub.GetCache(), local: local.GetCache(), engine: o.Engine, now: o.Now}
	counter := &operandCounter{reader: caches, visibility: watcher.visibility, lister: operands,
		interval: o.CountEvery, now: o.Now, pods: newPodObserver(local.GetAPIReader(), o.Now)}
	gauges := &collector{log: hub.GetLogger().WithName("vitals"), reader: caches, visibility: watcher.visibility,
		counter: counter,
		descs:   newDescriptions(o.Cluster)}
	for _, c := range []prometheus.Collector{gauges, endings} {
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
