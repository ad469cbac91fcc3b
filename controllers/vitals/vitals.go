// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vitals exports what rules and dashboards have to know of each
// operator on the agent's cluster, under the names of alerts/series: what is
// expected and installed, whether it is well, how many of its custom resources
// are ready, and how installations and upgrades ended.
//
// Gauges are read from the agent's caches when they are scraped, so a series
// goes with its object. Custom resources are no part of any cache: they are
// listed every minute, in pages that are not kept. A scrape waits for neither.
//
// It only reads. It must not write to the hub or the cluster, and must say
// nothing about what it cannot see: only the inventory goes on then.
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
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions;catalogsources;subscriptions;operatorconditions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch

// Options configure the vital signs.
type Options struct {
	// Cluster is the FleetCluster's name, a label of every series.
	Cluster string
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
	// CountEvery is how often custom resources are counted; default 1m.
	CountEvery time.Duration
	Now        func() time.Time
}

// Add exports the vital signs of the OperatorInstalls in the manager's cache,
// as seen on the local cluster.
func Add(hub ctrl.Manager, local cluster.Cluster, metrics prometheus.Registerer, o Options) error {
	if o.CountEvery == 0 {
		o.CountEvery = time.Minute
	}
	lists, err := newLister(local)
	if err != nil {
		return err
	}
	ends := newOutcomes(o.Cluster)
	view := &sight{hub: hub.GetCache(), local: local, olm: o.OLM, now: o.Now, ends: ends}
	see := &reader{hub: hub.GetCache(), local: local.GetCache(), now: o.Now}
	counted := &counts{reader: see, look: view.look, lister: lists, every: o.CountEvery, now: o.Now}
	gauges := &collector{log: hub.GetLogger().WithName("vitals"), reader: see, look: view.look, counts: counted,
		descs: descriptions(o.Cluster)}
	for _, c := range []prometheus.Collector{gauges, ends} {
		if err := metrics.Register(c); err != nil {
			return fmt.Errorf("register metrics of operators: %w", err)
		}
	}
	if err := hub.Add(view); err != nil {
		return fmt.Errorf("add sight: %w", err)
	}
	if err := hub.Add(counted); err != nil {
		return fmt.Errorf("add counts: %w", err)
	}
	return nil
}
