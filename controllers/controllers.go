// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the one list of what runs where: AddHub on the hub,
// AddAgent in each fleet cluster. It wires and decides nothing.
package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/bellwether-dev/bellwether/controllers/catalog"
	"github.com/bellwether-dev/bellwether/controllers/changeevents"
	"github.com/bellwether-dev/bellwether/controllers/discovery"
	"github.com/bellwether-dev/bellwether/controllers/fleet"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/operator"
	"github.com/bellwether-dev/bellwether/controllers/paging"
	"github.com/bellwether-dev/bellwether/controllers/probe"
	"github.com/bellwether-dev/bellwether/controllers/rollout"
	"github.com/bellwether-dev/bellwether/controllers/silence"
	"github.com/bellwether-dev/bellwether/controllers/slo"
	"github.com/bellwether-dev/bellwether/controllers/window"
)

// HubOptions configure what runs on the hub.
type HubOptions struct {
	// Version of the hub, which those of agents are compared with.
	Version string
	// LeaseGrace is added to the duration that an agent's Lease names.
	LeaseGrace time.Duration
	// Concurrency is the number of objects of a kind reconciled at a time.
	Concurrency int
	// MaxChanges is how many operators of a cluster may change at a time: 0 means 1,
	// and a negative number means any number.
	MaxChanges int
	// Catalogs reads published catalogs.
	Catalogs *Catalogs
	// SLO says where rules go, and where to ask whether they are evaluated.
	SLO slo.Options
	// Paging says where the configuration of Alertmanager goes.
	Paging paging.Options
	// Silence says where silences are made, and how long they may last.
	Silence silence.Options
	// Discovery says which objects of other systems FleetClusters are made of.
	Discovery discovery.Options
	// Probes bounds what probes that run on the hub connect to.
	Probes probe.Addresses
	// Metrics takes the collectors; default: the registry that the manager
	// serves.
	Metrics prometheus.Registerer
}

// AddHub adds everything that runs on the hub to a manager whose cache has
// HubCache's options.
func AddHub(mgr ctrl.Manager, o HubOptions) error {
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
