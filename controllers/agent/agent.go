// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent lists the controllers of a fleet cluster's agent, which are in the folders below. It only connects
// them and makes no decisions.
package agent

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
	"github.com/bellwether-dev/bellwether/controllers/agent/backup"
	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
	"github.com/bellwether-dev/bellwether/controllers/agent/heartbeat"
	"github.com/bellwether-dev/bellwether/controllers/agent/install"
	"github.com/bellwether-dev/bellwether/controllers/agent/job"
	"github.com/bellwether-dev/bellwether/controllers/agent/migration"
	"github.com/bellwether-dev/bellwether/controllers/agent/monitor"
	"github.com/bellwether-dev/bellwether/controllers/agent/scan"
	"github.com/bellwether-dev/bellwether/controllers/agent/services"
	"github.com/bellwether-dev/bellwether/controllers/agent/vitals"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/probe"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
)

// Options configure the controllers of a fleet cluster's agent.
type Options struct {
	// Cluster is the FleetCluster's name.
	Cluster string
	// Namespace is the cluster's namespace on the hub.
	Namespace string
	// OwnNamespace is the agent's own namespace on its cluster. The cluster's owner can refuse
	// changes there. Empty: changes cannot be refused.
	OwnNamespace string
	// Holder is the name of this process in the Lease.
	Holder  string
	Version string
	// LeaseEvery is how often the Lease is renewed, and LeaseFor how long it is
	// valid.
	LeaseEvery, LeaseFor time.Duration

	Catalogs  olmv0.Catalogs
	Views     olmv0.Views
	Templates *templates.Set

	// CountEvery is how often the custom resources of operators are counted; default 1m.
	CountEvery time.Duration
	// MonitorLabels are set on the PodMonitors that OperatorSLOs request.
	MonitorLabels map[string]string
	// BackupStores are the URLs of the stores that backups may be written to. The first store is
	// the default. BackupSecrets is the namespace of the Secrets with the credentials of stores.
	BackupStores  []string
	BackupSecrets string
	// Probes limits the addresses that probes connect to.
	Probes probe.Addresses
	// Credentials are the credentials for the hub, and Store stores renewed credentials.
	Credentials *credentials.Credentials
	Store       credentials.Store
	// TokenLifetime is how long the tokens for the hub are valid.
	TokenLifetime time.Duration
	// Hosted is true if the agent does not run on its cluster.
	Hosted bool
	// ReadOnly is true if the agent has read-only access to its cluster: it reports what runs
	// there, and manages nothing.
	ReadOnly bool
	// Warn is called each time the hub refuses the credentials, or they cannot be renewed.
	// reason is the reason of an Event. Nil: no warnings.
	Warn func(reason, message string)
	// Now is the clock for all decisions and reports: the clock of the cluster, because the
	// clock of the node might differ.
	Now func() time.Time
	// Metrics registers the collectors; default: the registry that the manager serves.
	Metrics prometheus.Registerer
}

// Cache returns the options of the agent's cache: which objects of the fleet cluster are
// cached, and with which fields.
func Cache() cache.Options {
	o := olmv0.LocalCache()
	maps.Copy(o.ByObject, probe.CacheByObject())
	return o
}

// Add adds all controllers of an agent. hub is a manager for the hub whose cache is
// restricted to the cluster's namespace. local is the fleet cluster.
//
// The returned connection is not part of the manager, because the manager starts nothing before
// the caches of both clusters are filled. An agent whose API server is down, or whose
// credentials the hub refuses, must still report this.
func Add(hub ctrl.Manager, local cluster.Cluster, o Options) (*Connection, error) {
	boundedHub, err := WithBoundedEvents(hub)
	if err != nil {
		return nil, err
	}
	direct, err := client.New(hub.GetConfig(), client.Options{Scheme: hub.GetScheme(), HTTPClient: hub.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("make client for the hub: %w", err)
	}
	olm, err := addManagement(boundedHub, local, o)
	if err != nil {
		return nil, err
	}
	if err := scan.Add(hub, direct, o.Namespace, &olmv0.Finder{Local: local.GetClient(), OLM: olm}, o.Now); err != nil {
		return nil, err
	}
	return newConnection(hub, local, direct, olm, o)
}

// addManagement adds the controllers that manage operators. For an agent with read-only
// access, it adds only a watcher for OLM. The returned function reports whether the
// cluster serves OLM's API.
func addManagement(hub ctrl.Manager, local cluster.Cluster, o Options) (olm func() (served, known bool),
	err error) {
	if !o.ReadOnly {
		return addControllers(hub, local, o)
	}
	if err := hub.Add(local); err != nil {
		return nil, fmt.Errorf("add fleet cluster: %w", err)
	}
	watcher := &olmv0.Watcher{Hub: hub.GetClient(), Local: local}
	if err := hub.Add(watcher); err != nil {
		return nil, fmt.Errorf("add the watcher for OLM: %w", err)
	}
	return watcher.OLM, nil
}

// Connection is an agent's connection to its hub: it renews the Lease and the credentials.
type Connection struct {
	lease  *heartbeat.Lease
	keeper *credentials.Keeper
}

// Check returns why the hub does not accept the agent's reports; nil if it accepts them.
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

// addControllers adds the controllers that manage operators and report about them.
// The returned function reports whether the cluster serves OLM's API; known is false
// if that is not known yet.
func addControllers(hub ctrl.Manager, local cluster.Cluster, o Options) (olm func() (served, known bool),
	err error) {
	if err := hub.Add(local); err != nil {
		return nil, fmt.Errorf("add fleet cluster: %w", err)
	}
	freezes := &freezeReader{live: hub.GetAPIReader(), cached: hub.GetClient(), cluster: o.Cluster}
	olm, kept, err := addInstall(hub, local, freezes, o)
	if err != nil {
		return nil, err
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if err := vitals.Add(hub, local, o.Metrics, vitals.Options{
		Cluster: o.Cluster, OLM: olm, CountEvery: o.CountEvery, Now: o.Now,
		Engine: vitals.Engine{BundleOf: olmv0.BundleOf, IsConnected: olmv0.IsConnected},
	}); err != nil {
		return nil, err
	}
	if err := monitor.Add(hub, local, monitor.Options{Cluster: o.Cluster, Labels: o.MonitorLabels,
		BundleOf: olmv0.BundleOf}); err != nil {
		return nil, err
	}
	if err := probe.Add(hub, local, probe.Options{Cluster: o.Cluster, Metrics: o.Metrics,
		Addresses: o.Probes}); err != nil {
		return nil, err
	}
	if err := services.Add(hub, local, o.Namespace,
		func(ctx context.Context, operator v1alpha1.OperatorReference) (bool, error) {
			record, err := kept(ctx, operator)
			return record != nil, err
		}); err != nil {
		return nil, err
	}
	definitions := olmv0.Definitions{Live: local.GetAPIReader()}
	if err := backup.Add(hub, local, backup.Options{Cluster: o.Cluster, Definitions: definitions,
		Stores:          o.BackupStores,
		SecretNamespace: o.BackupSecrets, Now: o.Now, Frozen: freezes.isFrozen}); err != nil {
		return nil, err
	}
	if err := migration.Add(hub, local, definitions, o.Now, newVetoReader(local.GetAPIReader(), o.OwnNamespace),
		freezes.readFreeze); err != nil {
		return nil, err
	}
	if err := job.Add(hub, local, o.OwnNamespace, freezes.isFrozen); err != nil {
		return nil, err
	}
	return olm, nil
}

// addInstall adds the controller that installs operators, with the engine for OLM v0. olm
// reports whether the cluster serves OLM's API, and kept returns the record of an operator that
// is stored on the cluster.
func addInstall(hub ctrl.Manager, local cluster.Cluster, freezes *freezeReader, o Options) (
	olm func() (served, known bool),
	kept func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error), err error) {
	triggers := install.NewTriggers()
	watcher := &olmv0.Watcher{Hub: hub.GetClient(), Local: local, Notify: triggers.Notify}
	engine := olmv0.New(olmv0.Options{
		Local: local.GetClient(), Live: local.GetAPIReader(), Hub: hub.GetClient(),
		Catalogs: o.Catalogs, Views: o.Views, Templates: o.Templates, OLM: watcher.OLM, Now: o.Now,
		Policy: newPolicyReader(local.GetAPIReader(), o.OwnNamespace),
		PullSecret: func(ctx context.Context, name string) ([]byte, error) {
			secrets := kit.PullSecrets{Live: local.GetAPIReader(), Allow: describePermission}
			return secrets.Read(ctx, o.OwnNamespace, name)
		},
	}, triggers.Notify)
	recorder := hub.GetEventRecorder("bellwether-agent")
	reconciler := &install.Reconciler[*olmv0.Observation, plan.Action]{Hub: hub.GetClient(), Engine: engine,
		Events: recorder, Now: o.Now, Veto: newVetoReader(local.GetAPIReader(), o.OwnNamespace), ReadKept: engine.Kept,
		Freeze: freezes.readFreeze}
	watcher.Controller, err = install.Add(hub, recorder, reconciler, triggers)
	if err != nil {
		return nil, nil, err
	}
	freezes.watch = func() error { return watchFreezes(hub, watcher.Controller) }
	return watcher.OLM, engine.Kept, errors.Join(hub.Add(watcher), hub.Add(freezes))
}

// newConnection returns the agent's connection to its hub, and adds its
// health checks to the manager.
func newConnection(hub ctrl.Manager, local cluster.Cluster, direct client.Client, olm func() (served, known bool),
	o Options) (*Connection, error) {
	server, err := heartbeat.NewAPIServer(local.GetConfig())
	if err != nil {
		return nil, err
	}
	if o.Warn == nil {
		o.Warn = func(string, string) {}
	}
	lease := &heartbeat.Lease{
		Hub: direct, Namespace: o.Namespace, ClusterName: o.Cluster, Hosted: o.Hosted, Holder: o.Holder,
		RenewInterval: o.LeaseEvery,
		Validity:      o.LeaseFor, AgentVersion: o.Version, Cluster: server, Live: local.GetAPIReader(), OLM: olm,
		Now:  o.Now,
		Veto: newEffectiveVetoReader(local.GetAPIReader(), o), Account: o.Credentials.Account,
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
