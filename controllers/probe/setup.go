// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
	"github.com/bellwether-dev/bellwether/controllers/probe/run"
)

// What hub and agent may do with EndpointProbes. What an agent may do beyond that
// is in package services.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=endpointprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=endpointprobes/status,verbs=patch

// Options of Add.
type Options struct {
	// Cluster is the name of the FleetCluster, on its agent. On the hub it is
	// empty and follows from the namespace of each EndpointProbe.
	Cluster string
	// Addresses are those that probes may connect to.
	Addresses Addresses
	// Metrics is where the series of probes are registered.
	Metrics prometheus.Registerer
}

// Addresses bound what probes connect to, whatever their specs say.
type Addresses struct {
	// Denied to all probes.
	Denied []netip.Prefix
	// Private are those that are private besides loopback, link-local and metadata
	// addresses: such as the ranges of this cluster's pods and Services.
	Private []netip.Prefix
	// NoPrivate refuses private addresses also to probes with spec.allowPrivate.
	NoPrivate bool
}

// Add runs the EndpointProbes of a cluster: the fleet cluster for an agent, its
// own for the hub. If the cluster does not serve the kind yet, it waits for it.
func Add(mgr ctrl.Manager, at cluster.Cluster, o Options) error {
	changes := newChangeQueue()
	engine := run.New(run.Options{Cluster: o.Cluster, Changed: changes.add, Denied: o.Addresses.Denied,
		Private: o.Addresses.Private, NoPrivate: o.Addresses.NoPrivate})
	if err := o.Metrics.Register(engine); err != nil {
		return fmt.Errorf("register metrics of probes: %w", err)
	}
	watch := &targetWatch{client: at.GetClient(), cache: at.GetCache(), started: map[plan.Kind]bool{}}
	inner := &Reconciler{Client: at.GetClient(), Engine: engine, Cluster: o.Cluster,
		secrets: newSecretCache(at.GetAPIReader(), time.Now), watch: watch, now: time.Now}
	c, err := controller.New("endpointprobe", mgr, controller.Options{
		Reconciler: removalReconciler{client: at.GetClient(), engine: engine,
			next: kit.Shell(at.GetClient(), nil, inner)},
	})
	if err != nil {
		return fmt.Errorf("build probe controller: %w", err)
	}
	watch.controller = c
	for _, from := range []source.TypedSource[reconcile.Request]{
		source.Kind(at.GetCache(), &v1alpha1.EndpointProbe{},
			&handler.TypedEnqueueRequestForObject[*v1alpha1.EndpointProbe]{}),
		source.Channel(changes.out, &handler.TypedEnqueueRequestForObject[*v1alpha1.EndpointProbe]{}),
	} {
		if err := c.Watch(from); err != nil {
			return fmt.Errorf("watch EndpointProbes: %w", err)
		}
	}
	for _, runnable := range []interface{ Start(context.Context) error }{engine, changes} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add the probes: %w", err)
		}
	}
	return nil
}

// changeQueue passes changed results to the controller, each probe once, and
// limits how fast statuses are written: many probes that change at once must
// not overload the API server or use up this client's rate limit.
type changeQueue struct {
	out chan event.TypedGenericEvent[*v1alpha1.EndpointProbe]

	mu   sync.Mutex
	keys map[types.NamespacedName]bool
	more chan struct{}
}

// statusPause is the minimum time between two status writes.
const statusPause = 100 * time.Millisecond

func newChangeQueue() *changeQueue {
	return &changeQueue{
		out:  make(chan event.TypedGenericEvent[*v1alpha1.EndpointProbe]),
		keys: map[types.NamespacedName]bool{}, more: make(chan struct{}, 1),
	}
}

func (c *changeQueue) add(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[key] = true
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *changeQueue) take() (key types.NamespacedName, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key = range c.keys {
		delete(c.keys, key)
		return key, true
	}
	return key, false
}

// Start implements manager.Runnable.
func (c *changeQueue) Start(ctx context.Context) error {
	pause := time.NewTicker(statusPause)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.more:
		}
		for key, ok := c.take(); ok; key, ok = c.take() {
			probe := &v1alpha1.EndpointProbe{}
			probe.Namespace, probe.Name = key.Namespace, key.Name
			select {
			case <-ctx.Done():
				return nil
			case c.out <- event.TypedGenericEvent[*v1alpha1.EndpointProbe]{Object: probe}:
			}
			select {
			case <-ctx.Done():
				return nil
			case <-pause.C:
			}
		}
	}
}
