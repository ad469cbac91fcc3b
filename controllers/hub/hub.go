// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub lists the controllers of the hub, which are in the folders below. It only connects them and makes no
// decisions.
package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/bellwether-dev/bellwether/controllers/hub/catalog"
	"github.com/bellwether-dev/bellwether/controllers/hub/changeevents"
	"github.com/bellwether-dev/bellwether/controllers/hub/discovery"
	"github.com/bellwether-dev/bellwether/controllers/hub/fleet"
	"github.com/bellwether-dev/bellwether/controllers/hub/inventory"
	"github.com/bellwether-dev/bellwether/controllers/hub/operator"
	"github.com/bellwether-dev/bellwether/controllers/hub/paging"
	"github.com/bellwether-dev/bellwether/controllers/hub/rollout"
	"github.com/bellwether-dev/bellwether/controllers/hub/silence"
	"github.com/bellwether-dev/bellwether/controllers/hub/slo"
	"github.com/bellwether-dev/bellwether/controllers/hub/window"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/probe"
)

// Options configure the controllers of the hub.
type Options struct {
	// Version is the version of the hub. The versions of agents are compared with it.
	Version string
	// LeaseGrace is added to the duration in an agent's Lease.
	LeaseGrace time.Duration
	// Concurrency is the number of objects of one kind that are reconciled at the same time.
	Concurrency int
	// MaxChanges is how many operators of a cluster may change at the same time: 0 means 1, and
	// a negative number means any number.
	MaxChanges int
	// Catalogs reads published catalogs.
	Catalogs *Catalogs
	// SLO configures where rules are written, and which Prometheus reports
	// whether they are evaluated.
	SLO slo.Options
	// Paging configures where the configuration of Alertmanager is written.
	Paging paging.Options
	// Silence configures where silences are created, and how long they may last.
	Silence silence.Options
	// Discovery configures from which objects of other systems FleetClusters are created.
	Discovery discovery.Options
	// Inventory configures where the fleet's history is recorded.
	Inventory inventory.Options
	// Probes limits the addresses that probes on the hub connect to.
	Probes probe.Addresses
	// Metrics registers the collectors; default: the registry that the manager serves.
	Metrics prometheus.Registerer
}

// Add adds all controllers of the hub to a manager. The manager's cache must have the options of Cache.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if err := kit.IndexInstalls(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	o.Catalogs.ReadSecrets(mgr.GetAPIReader(), o.Paging.ServiceAccount)
	for _, add := range []func() error{
		func() error {
			return fleet.Add(mgr, fleet.Options{Grace: o.LeaseGrace, Concurrency: o.Concurrency,
				Namespace: o.SLO.Namespace, Version: o.Version})
		},
		func() error { return catalog.Add(mgr, o.Catalogs, o.Concurrency) },
		func() error { return operator.Add(mgr, o.Catalogs, o.Concurrency) },
		func() error {
			return rollout.Add(mgr, rollout.Options{Concurrency: o.Concurrency, MaxChanges: o.MaxChanges,
				Metrics: o.Metrics, Prometheus: o.SLO.Prometheus})
		},
		func() error { return window.Add(mgr, o.Concurrency) },
		func() error { return slo.Add(mgr, o.SLO) },
		func() error { return paging.Add(mgr, o.Paging) },
		func() error {
			o.Silence.PagerDutyHosts = o.Paging.PagerDuty
			return silence.Add(mgr, o.Silence)
		},
		func() error {
			return changeevents.Add(mgr, changeevents.Options{Concurrency: o.Concurrency,
				PagerDuty: o.Paging.PagerDuty})
		},
		func() error {
			o.Discovery.Concurrency = o.Concurrency
			return discovery.Add(mgr, o.Discovery)
		},
		func() error { return inventory.Add(mgr, o.Inventory) },
		func() error { return probe.Add(mgr, mgr, probe.Options{Metrics: o.Metrics, Addresses: o.Probes}) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	for _, gauges := range []prometheus.Collector{fleet.Gauges(mgr), catalog.Gauges(mgr), operator.Gauges(mgr),
		rollout.Gauges(mgr), slo.Gauges(mgr), paging.Gauges(mgr), silence.Gauges(mgr), changeevents.Gauges(mgr)} {
		if err := o.Metrics.Register(gauges); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}
