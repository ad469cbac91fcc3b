// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	agentcontrollers "github.com/bellwether-dev/bellwether/controllers/agent"
	"github.com/bellwether-dev/bellwether/controllers/agent/install"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Options say what a fleet of hollow agents consists of.
type Options struct {
	// Config reaches the hub with the right to act as any agent.
	Config *rest.Config
	// Scheme knows Bellwether's kinds and those of OLM.
	Scheme *runtime.Scheme
	// Clusters are the names of the FleetClusters whose agents to run. The hub must have made their namespaces.
	Clusters []string
	// Before is a fleet of the same clusters that was stopped: what OLM holds on them is still there, as where the
	// clusters join another hub. It needs OwnWatches.
	Before *Fleet
	// Others is what others have installed on every cluster, as the agents report it; nil for nothing.
	Others *v1alpha1.OperatorScanStatus
	Behaviour
	// LeaseEvery and LeaseFor are as the agent's flags; default 30s and 90s.
	LeaseEvery, LeaseFor time.Duration
	// OwnWatches gives each agent a manager and a watch of its own, as real agents have. Without it, one watch serves
	// all of them, which takes far less memory here and in the API server.
	OwnWatches bool
	// Workers is how many OperatorInstalls are reconciled at a time, of all clusters together; default 64. A real agent
	// reconciles two.
	Workers int
}

// Fleet is a running fleet of hollow agents.
type Fleet struct {
	options Options
	// clusters by their namespace on the hub.
	clusters map[string]*cluster
	engine   *engine

	// running ends with stop.
	running context.Context //nolint:containedctx // what Disturb starts must not outlive the fleet
	stop    context.CancelFunc
	done    sync.WaitGroup
	err     error

	requests atomic.Int64

	mu sync.Mutex
	// ended are the installations that have ended, in the order of their ends.
	ended     []Installation
	changes   map[client.ObjectKey]*Change
	operators map[client.ObjectKey]*operator
	// refusals of Leases by the hub, by cluster: the last of each.
	refusals map[string]string
}

// Start starts the agents. They run until Stop.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	o.LeaseEvery, o.LeaseFor = cmp.Or(o.LeaseEvery, 30*time.Second), cmp.Or(o.LeaseFor, 90*time.Second)
	o.Workers = cmp.Or(o.Workers, 64)
	f := &Fleet{options: o, clusters: map[string]*cluster{}, changes: map[client.ObjectKey]*Change{},
		operators: map[client.ObjectKey]*operator{}, refusals: map[string]string{}}
	f.engine = &engine{operator: f.operator, forget: f.forget, now: time.Now,
		catalogs: load.New(oci.NewClient(oci.Options{}), load.Options{})}
	for _, name := range o.Clusters {
		namespace := v1alpha1.ClusterNamespace(name)
		f.clusters[namespace] = &cluster{name: name, namespace: namespace}
	}
	if o.Before != nil {
		f.inherit(o.Before)
	}
	if err := f.readAccounts(ctx); err != nil {
		return nil, err
	}
	hub := rest.CopyConfig(o.Config)
	hub.QPS, hub.RateLimiter = -1, nil
	latency := f.latency()
	hub.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &network{next: next, clusters: f.clusters, latency: latency, requests: &f.requests}
	})
	ctx, f.stop = context.WithCancel(logr.NewContext(ctx, logr.Discard()))
	f.running = ctx
	if err := f.startAgents(ctx, hub); err != nil {
		f.stop()
		f.done.Wait()
		return nil, fmt.Errorf("start hollow agents: %w", err)
	}
	return f, nil
}

// inherit takes over what OLM holds on the clusters of a fleet that was stopped.
func (f *Fleet) inherit(before *Fleet) {
	before.mu.Lock()
	defer before.mu.Unlock()
	f.ended = slices.Clone(before.ended)
	for key, o := range before.operators {
		c := f.clusters[key.Namespace]
		if c == nil {
			continue
		}
		o.mu.Lock()
		o.ended, o.changed = f.end, func() { c.notify(key) }
		o.mu.Unlock()
		f.operators[key] = o
	}
}

// keptOn returns what a cluster keeps of an operator, as the real engine reads it from the cluster.
func (f *Fleet) keptOn(c *cluster) func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error) {
	return func(_ context.Context, operator v1alpha1.OperatorReference) (*engines.Kept, error) {
		f.mu.Lock()
		o := f.operators[client.ObjectKey{Namespace: c.namespace, Name: operator.InstallName()}]
		f.mu.Unlock()
		if o == nil {
			return nil, nil
		}
		return o.keeps(), nil
	}
}

// readAccounts reads which ServiceAccounts the agents are to the hub. A real agent knows it from its token.
func (f *Fleet) readAccounts(ctx context.Context) error {
	admin, err := client.New(f.options.Config, client.Options{Scheme: f.options.Scheme})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	if err := admin.List(ctx, &all, client.MatchingFields{"metadata.name": v1alpha1.AgentServiceAccount}); err != nil {
		return fmt.Errorf("list the agents' ServiceAccounts: %w", err)
	}
	for _, account := range all.Items {
		if c, ok := f.clusters[account.Namespace]; ok {
			c.account = account.UID
		}
	}
	for _, c := range f.clusters {
		if c.account == "" {
			return fmt.Errorf("the hub has not made the ServiceAccount of %s", c.name)
		}
	}
	return nil
}

// latency draws the delay of each request.
func (f *Fleet) latency() func(*cluster) time.Duration {
	delay := f.options.Latency
	if delay.Median == 0 {
		return func(*cluster) time.Duration { return 0 }
	}
	var mu sync.Mutex
	random := f.options.source("latency")
	return func(*cluster) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return delay.draw(random)
	}
}

func (f *Fleet) startAgents(ctx context.Context, hub *rest.Config) error {
	shared, err := rest.HTTPClientFor(hub)
	if err != nil {
		return fmt.Errorf("make transport: %w", err)
	}
	direct, err := client.New(hub, client.Options{Scheme: f.options.Scheme, HTTPClient: shared})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	all := slices.Collect(maps.Values(f.clusters))
	groups := [][]*cluster{all}
	if f.options.OwnWatches {
		groups = slices.Collect(slices.Chunk(all, 1))
	}
	for _, group := range groups {
		if err := f.startGroup(ctx, hub, direct.RESTMapper(), group); err != nil {
			return err
		}
	}
	for _, c := range all {
		f.done.Go(func() { f.beat(ctx, direct, c) })
		f.done.Go(func() { f.report(ctx, direct, c) })
	}
	return nil
}

// startGroup starts the install controller of clusters that share a watch, and waits until it has seen what is there.
func (f *Fleet) startGroup(ctx context.Context, hub *rest.Config, mapper meta.RESTMapper, group []*cluster) error {
	caches := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	workers := f.options.Workers
	if f.options.OwnWatches {
		caches.DefaultNamespaces = map[string]cache.Config{group[0].namespace: {}}
		workers = 2
	}
	yes := true
	manager, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme: f.options.Scheme, Cache: caches, Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		Controller:     config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	triggers := install.NewTriggers()
	for _, c := range group {
		c.notify = func(key client.ObjectKey) {
			if ctx.Err() == nil {
				triggers.Notify(key)
			}
		}
		c.installs = manager.GetCache()
	}
	if err := f.addInstall(manager, triggers, workers, group); err != nil {
		return err
	}
	f.done.Go(func() {
		if err := manager.Start(ctx); err != nil && ctx.Err() == nil {
			f.mu.Lock()
			f.err = errors.Join(f.err, err)
			f.mu.Unlock()
		}
	})
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("fill cache: %w", context.Cause(ctx))
	}
	return nil
}

func (f *Fleet) addInstall(manager ctrl.Manager, triggers install.Triggers, workers int, group []*cluster) error {
	bounded, err := agentcontrollers.WithBoundedEvents(manager)
	if err != nil {
		return err
	}
	recorder := bounded.GetEventRecorder("bellwether-agent")
	reconciler := &install.Reconciler[*observation, plan.Action]{
		Hub: manager.GetClient(), Engine: f.engine, Events: recorder, Now: time.Now, Veto: noVeto,
	}
	if f.options.OwnWatches {
		reconciler.ReadKept = f.keptOn(group[0])
	}
	shell := kit.WrapReconciler(manager.GetClient(), recorder, reconciler)
	err = ctrl.NewControllerManagedBy(manager).Named("install").
		For(&v1alpha1.OperatorInstall{}, builder.WithPredicates(predicate.NewPredicateFuncs(f.note))).
		WatchesRawSource(source.Channel(triggers, &handler.TypedEnqueueRequestForObject[*v1alpha1.OperatorInstall]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if c := f.clusters[r.Namespace]; c == nil || c.isCut() {
				return reconcile.Result{}, nil // connect brings it back here
			}
			return shell.Reconcile(ctx, r)
		}))
	if err != nil {
		return fmt.Errorf("build install controller: %w", err)
	}
	return nil
}

// Stop ends all agents as a crash would: their Leases stay. It returns an error that ended some before.
func (f *Fleet) Stop() error {
	f.stop()
	f.done.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// operator returns the simulation of OLM for an install, which is made where there is none.
func (f *Fleet) operator(install *v1alpha1.OperatorInstall) *operator {
	key := client.ObjectKeyFromObject(install)
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.operators[key]
	if !ok {
		c := f.clusters[install.Namespace]
		o = &operator{behaviour: f.options.Behaviour, cluster: c.name, now: time.Now, ended: f.end,
			changed: func() { c.notify(key) }}
		f.operators[key] = o
	}
	return o
}

func (f *Fleet) forget(install *v1alpha1.OperatorInstall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.operators, client.ObjectKeyFromObject(install))
}

func (f *Fleet) end(i Installation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, i)
}

func (f *Fleet) refused(cluster, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[cluster] = message
}

// Refusals returns what the hub last said to each agent whose Lease it has refused, by cluster.
func (f *Fleet) Refusals() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.refusals)
}

// Ended returns the installations that have ended, in the order of their ends.
func (f *Fleet) Ended() []Installation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ended)
}

// Requests returns how many requests the agents have made to the hub.
func (f *Fleet) Requests() int { return int(f.requests.Load()) }
