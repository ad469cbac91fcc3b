// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/backup"
	"github.com/bellwether-dev/bellwether/controllers/credentials"
	"github.com/bellwether-dev/bellwether/controllers/heartbeat"
	"github.com/bellwether-dev/bellwether/controllers/install"
	"github.com/bellwether-dev/bellwether/controllers/job"
	"github.com/bellwether-dev/bellwether/controllers/migration"
	"github.com/bellwether-dev/bellwether/controllers/monitor"
	"github.com/bellwether-dev/bellwether/controllers/probe"
	"github.com/bellwether-dev/bellwether/controllers/scan"
	"github.com/bellwether-dev/bellwether/controllers/services"
	"github.com/bellwether-dev/bellwether/controllers/vitals"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
)

// AgentOptions configure what runs in a fleet cluster's agent.
type AgentOptions struct {
	// Cluster is the FleetCluster's name.
	Cluster string
	// Namespace is the cluster's namespace on the hub.
	Namespace string
	// OwnNamespace is the agent's own namespace on its cluster, where the cluster's
	// owner may refuse changes. Empty: nobody can.
	OwnNamespace string
	// Holder names this process in the Lease.
	Holder  string
	Version string
	// LeaseEvery is how often the Lease is renewed, and LeaseFor how long it is
	// valid.
	LeaseEvery, LeaseFor time.Duration

	Catalogs  olmv0.Catalogs
	Views     olmv0.Views
	Templates *templates.Set

	// CountEvery is how often the operators' custom resources are counted;
	// default 1m.
	CountEvery time.Duration
	// MonitorLabels are put on the PodMonitors that OperatorSLOs ask for.
	MonitorLabels map[string]string
	// BackupStores are the URLs of the stores that backups may be written to, the
	// default first; BackupSecrets is the namespace of the Secrets with their
	// credentials.
	BackupStores  []string
	BackupSecrets string
	// Probes bounds what probes connect to.
	Probes probe.Addresses
	// Credentials reach the hub, and Store keeps those that are renewed.
	Credentials *credentials.Credentials
	Store       credentials.Store
	// TokenLifetime is how long the tokens for the hub are valid.
	TokenLifetime time.Duration
	// Hosted says that the agent does not run on its cluster.
	Hosted bool
	// ReadOnly says that the agent may only read its cluster: it reports what runs there, and manages nothing.
	ReadOnly bool
	// Warn is told of credentials that the hub refuses, or that cannot be renewed, each
	// time that this is noticed. The reason is that of an Event. Nil: nobody is told.
	Warn func(reason, message string)
	// Now is the clock that everything is decided and reported by: the cluster's, if the
	// node's may differ.
	Now func() time.Time
	// Metrics takes the collectors; default: the registry that the manager
	// serves.
	Metrics prometheus.Registerer
}

// AgentCache says what of the fleet cluster is kept in memory, and how.
func AgentCache() cache.Options {
	o := olmv0.LocalCache()
	maps.Copy(o.ByObject, probe.CacheByObject())
	return o
}

// AddAgent adds everything that runs in an agent. The manager is the hub's, its
// cache restricted to the cluster's namespace; local is the fleet cluster.
//
// The connection that it returns is not part of the manager, which starts nothing
// before the caches of both clusters are filled: an agent whose own API server is
// down, or whose credentials the hub refuses, has to say so.
func AddAgent(hub ctrl.Manager, local cluster.Cluster, o AgentOptions) (*Connection, error) {
	bounded, err := WithBoundedEvents(hub)
	if err != nil {
		return nil, err
	}
	direct, err := client.New(hub.GetConfig(), client.Options{Scheme: hub.GetScheme(), HTTPClient: hub.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("make client for the hub: %w", err)
	}
	olm, err := addParts(bounded, local, o)
	if err != nil {
		return nil, err
	}
	if err := scan.Add(hub, direct, o.Namespace, &olmv0.Finder{Local: local.GetClient(), OLM: olm}, o.Now); err != nil {
		return nil, err
	}
	return connect(hub, local, direct, olm, o)
}

// addParts adds what manages operators, or, where the agent may only read, what looks for OLM.
func addParts(hub ctrl.Manager, local cluster.Cluster, o AgentOptions) (olm func() (served, known bool), err error) {
	if !o.ReadOnly {
		return addControllers(hub, local, o)
	}
	if err := hub.Add(local); err != nil {
		return nil, fmt.Errorf("add fleet cluster: %w", err)
	}
	watcher := &olmv0.Watcher{Hub: hub.GetClient(), Local: local}
	if err := hub.Add(watcher); err != nil {
		return nil, fmt.Errorf("add what looks for OLM: %w", err)
	}
	return watcher.OLM, nil
}

// Connection is an agent's connection to its hub: it renews the Lease and the credentials.
type Connection struct {
	lease  *heartbeat.Lease
	keeper *credentials.Keeper
}

// Check tells why the hub does not accept the agent's reports; nil while it does.
func (c *Connection) Check() error {
	if err := c.lease.Ready(nil); err != nil {
		return err
	}
	return c.lease.Connected(nil)
}

// Start keeps the connection until the context ends.
func (c *Connection) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.lease.Start(ctx) })
	group.Go(func() error { return c.keeper.Start(ctx) })
	return group.Wait()
}

// addControllers returns what tells whether the cluster serves OLM's API, if that
// is known already.
func addControllers(hub ctrl.Manager, local cluster.Cluster, o AgentOptions) (olm func() (served, known bool),
	err error) {
	if err := hub.Add(local); err != nil {
		return nil, fmt.Errorf("add fleet cluster: %w", err)
	}
	stops := &freezes{live: hub.GetAPIReader(), cached: hub.GetClient(), cluster: o.Cluster}
	olm, kept, err := addInstall(hub, local, stops, o)
	if err != nil {
		return nil, err
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if err := vitals.Add(hub, local, o.Metrics, vitals.Options{
		Cluster: o.Cluster, OLM: olm, CountEvery: o.CountEvery, Now: o.Now,
	}); err != nil {
		return nil, err
	}
	if err := monitor.Add(hub, local, monitor.Options{Cluster: o.Cluster, Labels: o.MonitorLabels}); err != nil {
		return nil, err
	}
	if err := probe.Add(hub, local, probe.Options{Cluster: o.Cluster, Metrics: o.Metrics,
		Addresses: o.Probes}); err != nil {
		return nil, err
	}
	if err := services.Add(hub, local, o.Namespace,
		func(ctx context.Context, operator v1alpha1.OperatorReference) (bool, error) {
			is, err := kept(ctx, operator)
			return is != nil, err
		}); err != nil {
		return nil, err
	}
	if err := backup.Add(hub, local, backup.Options{Cluster: o.Cluster, Stores: o.BackupStores,
		SecretNamespace: o.BackupSecrets, Now: o.Now, Frozen: stops.stop}); err != nil {
		return nil, err
	}
	if err := migration.Add(hub, local, o.Now, readVeto(local.GetAPIReader(), o.OwnNamespace),
		stops.current); err != nil {
		return nil, err
	}
	if err := job.Add(hub, local, o.OwnNamespace, stops.stop); err != nil {
		return nil, err
	}
	return olm, nil
}

// addInstall adds the controller that installs operators, with the engine for OLM
// v0. It returns what tells whether the cluster serves OLM's API, and what it keeps of
// an operator.
func addInstall(hub ctrl.Manager, local cluster.Cluster, stops *freezes, o AgentOptions) (
	olm func() (served, known bool),
	kept func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error), err error) {
	triggers := install.NewTriggers()
	watcher := &olmv0.Watcher{Hub: hub.GetClient(), Local: local, Notify: triggers.Notify}
	engine := olmv0.New(olmv0.Options{
		Local: local.GetClient(), Live: local.GetAPIReader(), Hub: hub.GetClient(),
		Catalogs: o.Catalogs, Views: o.Views, Templates: o.Templates, OLM: watcher.OLM, Now: o.Now,
		Policy: readPolicy(local.GetAPIReader(), o.OwnNamespace),
		PullSecret: func(ctx context.Context, name string) ([]byte, error) {
			return PullSecrets{Live: local.GetAPIReader(), Allow: allowOnCluster}.Read(ctx, o.OwnNamespace, name)
		},
	}, triggers.Notify)
	recorder := hub.GetEventRecorder("bellwether-agent")
	reconciler := &install.Reconciler[*olmv0.Observation, plan.Action]{Hub: hub.GetClient(), Engine: engine,
		Events: recorder, Now: o.Now, Veto: readVeto(local.GetAPIReader(), o.OwnNamespace), Kept: engine.Kept,
		Freeze: stops.current}
	watcher.Controller, err = install.Add(hub, recorder, reconciler, triggers)
	if err != nil {
		return nil, nil, err
	}
	stops.watch = func() error { return watchFreezes(hub, watcher.Controller) }
	return watcher.OLM, engine.Kept, errors.Join(hub.Add(watcher), hub.Add(stops))
}

func connect(hub ctrl.Manager, local cluster.Cluster, direct client.Client, olm func() (served, known bool),
	o AgentOptions) (*Connection, error) {
	server, err := heartbeat.NewAPIServer(local.GetConfig())
	if err != nil {
		return nil, err
	}
	if o.Warn == nil {
		o.Warn = func(string, string) {}
	}
	lease := &heartbeat.Lease{
		Hub: direct, Namespace: o.Namespace, ClusterName: o.Cluster, Hosted: o.Hosted, Holder: o.Holder,
		Every: o.LeaseEvery,
		For:   o.LeaseFor, AgentVersion: o.Version, Cluster: server, Live: local.GetAPIReader(), OLM: olm, Now: o.Now,
		Veto: vetoOf(local.GetAPIReader(), o), Account: o.Credentials.Account,
		Refused: func(message string) { o.Warn("HubRefusesCredentials", message) },
	}
	for name, check := range map[string]healthz.Checker{"hub": lease.Ready, "hub-connection": lease.Connected} {
		if err := hub.AddReadyzCheck(name, check); err != nil {
			return nil, fmt.Errorf("add health check: %w", err)
		}
	}
	return &Connection{lease: lease, keeper: &credentials.Keeper{
		Credentials: o.Credentials, Store: o.Store, Hub: direct, Namespace: o.Namespace, Lifetime: o.TokenLifetime,
		Failed: func(err error) { o.Warn("CredentialsNotRenewed", err.Error()) }, Now: time.Now,
	}}, nil
}
