// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/controllers/agent"
	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
	"github.com/bellwether-dev/bellwether/controllers/probe"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// process has the data that all clusters of one process share.
type process struct {
	flags     flags
	ports     serve.Ports
	holder    string
	scheme    *runtime.Scheme
	templates *templates.Set
	catalogs  *load.Loader
	images    *oci.Client
	probes    probe.Addresses
}

// Limits of the memory of cached catalogs.
const (
	maxCachedBytes       = 4 << 20
	maxCachedBytesHosted = 64 << 20
	// readBudget limits the memory of one read of a catalog. docs/reference/limits.md describes
	// the effect on the memory.
	readBudget = 48 << 20
)

// newProcess returns the process for the flags. It returns an error if a flag is invalid.
func newProcess(f flags) (*process, error) {
	p := &process{flags: f}
	p.holder, _ = os.Hostname()
	var err error
	p.scheme, err = startup.NewScheme(operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme, operatorsv2.AddToScheme)
	if err != nil {
		return nil, err
	}
	if p.templates, err = templates.Load(f.templates); err != nil {
		return nil, fmt.Errorf("load templates: %w", err)
	}
	if p.ports, err = serve.ParsePorts(f.viewPort); err != nil {
		return nil, fmt.Errorf("--view-ports: %w", err)
	}
	if p.probes.Denied, err = startup.ParsePrefixes(f.probeDenied); err != nil {
		return nil, fmt.Errorf("--probe-denied-cidrs: %w", err)
	}
	cacheLimit := maxCachedBytes
	if f.hostedNamespace != "" {
		cacheLimit = maxCachedBytesHosted
	}
	p.images = oci.NewClient(oci.Options{CacheDir: f.cacheDir})
	p.catalogs = load.New(p.images, load.Options{MaxBytes: cacheLimit, Budget: readBudget})
	return p, nil
}

// target is one fleet cluster, with the configurations to connect to it and to
// its namespace on the hub.
type target struct {
	cluster, namespace string
	local              *rest.Config
	// ownNamespace is the agent's namespace on the cluster.
	ownNamespace string
	// store returns the store of the credentials for the hub.
	store func(local cluster.Cluster) (credentials.Store, error)
	// warnings emits Events about the Secret with the credentials. If it has no recorder, the
	// Secret is on the served cluster.
	warnings
	// connected receives a function that returns why the hub does not accept the
	// agent's reports. It can be nil.
	connected func(check func() error)
	// ports are the ports of the cluster's catalog views. No other cluster uses these ports.
	ports                   serve.Ports
	metricsAddr, healthAddr string
	metrics                 metrics.RegistererGatherer
}

// serve runs the agent of one cluster until the context ends. It calls started when the caches
// of hub and cluster are filled.
func (p *process) serve(ctx context.Context, t target, started func()) error {
	clock := &startup.Clock{}
	local, err := p.newLocal(ctx, t, clock)
	if err != nil {
		return err
	}
	if t.events == nil {
		t.events = local.GetEventRecorder("bellwether-agent")
	}
	store, err := t.store(local)
	if err != nil {
		return err
	}
	hubCredentials, err := credentials.Load(ctx, store, p.flags.cacheDir, buildUserAgent())
	if err != nil {
		return fmt.Errorf("read the credentials for the hub: %w", err)
	}
	defer hubCredentials.Close()
	hub, err := p.newHub(ctx, t, hubCredentials.Config())
	if err != nil {
		return err
	}
	views := serve.New(serve.Options{Listen: toListenAddress(p.flags.viewBind), Advertise: p.flags.viewHost,
		Ports: t.ports})
	defer views.Close()
	f := p.flags
	connection, err := agent.Add(hub, local, agent.Options{
		Cluster: t.cluster, Namespace: t.namespace, Holder: p.holder, Version: version.Get().Version,
		LeaseEvery: f.leaseEvery, OwnNamespace: t.ownNamespace, LeaseFor: f.leaseFor, CountEvery: f.countEvery,
		MonitorLabels: f.monitorLabels,
		BackupStores:  f.backupStores, BackupSecrets: t.ownNamespace, Probes: p.probes,
		Catalogs: p.catalogs, Views: views, Templates: p.templates, Now: clock.Now, Metrics: t.metrics,
		Credentials: hubCredentials, Store: store, TokenLifetime: f.hubTokenLifetime,
		Hosted: f.hostedNamespace != "", ReadOnly: f.readOnly,
		Warn: func(reason, message string) { t.emit(reason, "Connect", message) },
	})
	if err != nil {
		return err
	}
	if t.connected != nil {
		t.connected(connection.Check)
	}
	if err := p.addSender(hub, local, t); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return connection.Start(ctx) })
	group.Go(func() error {
		if err := hub.Start(ctx); err != nil && context.Cause(ctx) == nil {
			return err
		}
		return nil // the context has ended
	})
	group.Go(func() error {
		select {
		case <-hub.Elected():
			started()
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

// newHub returns the manager. It is a manager for the hub, because all reconciled objects
// are on the hub. It waits for a hub that cannot be reached, because the catalog views
// must be served meanwhile.
func (p *process) newHub(ctx context.Context, t target, config *rest.Config) (ctrl.Manager, error) {
	hub, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 p.scheme,
		Logger:                 log.FromContext(ctx),
		Metrics:                metricsserver.Options{BindAddress: t.metricsAddr},
		HealthProbeBindAddress: t.healthAddr,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{t.namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			// The heartbeat already logs that the hub refuses the credentials.
			DefaultWatchErrorHandler: logWatchError,
		},
		Controller: ctrlconfig.Controller{
			CacheSyncTimeout: 365 * 24 * time.Hour,
			// Each cluster has controllers of the same names.
			SkipNameValidation: ptr.To(p.flags.hostedNamespace != ""),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return hub, startup.AddPing(hub)
}

// logWatchError logs the error that ended a watch, unless the hub refuses the credentials:
// otherwise each watch would log that error at each attempt.
func logWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if !apierrors.IsUnauthorized(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// discoveryTimeout limits each discovery request to the fleet cluster. The creation of the cache
// needs such requests, and an API server that never answers would block it.
const discoveryTimeout = 10 * time.Second

// newLocal returns the fleet cluster. The clock follows the clock of its API server.
func (p *process) newLocal(ctx context.Context, t target, clock *startup.Clock) (cluster.Cluster, error) {
	localConfig := rest.CopyConfig(t.local)
	clock.Follow(localConfig)
	local, err := cluster.New(localConfig, func(o *cluster.Options) {
		o.Scheme = p.scheme
		o.Logger = log.FromContext(ctx)
		o.MapperProvider = func(c *rest.Config, transport *http.Client) (meta.RESTMapper, error) {
			bounded := *transport
			bounded.Timeout = discoveryTimeout
			return olmv0.Mapper(c, &bounded)
		}
		o.Cache = agent.Cache()
		o.Client.Cache = &client.CacheOptions{Unstructured: true}
	})
	if err != nil {
		return nil, fmt.Errorf("reach the fleet cluster: %w", err)
	}
	return local, nil
}
