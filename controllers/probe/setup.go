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

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/probe/run"
)

// The permissions of hub and agent for EndpointProbes. The additional permissions of an
// agent are in package services.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=endpointprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=endpointprobes/status,verbs=patch

// Options of Add.
type Options struct {
	// Cluster is the name of the FleetCluster on its agent. On the hub it is empty, and the
	// namespace of each EndpointProbe determines the cluster.
	Cluster string
	// Addresses limits the addresses that probes may connect to.
	Addresses Addresses
	// Metrics registers the series of probes.
	Metrics prometheus.Registerer
}

// Addresses limits the addresses that probes connect to, independent of their specs.
type Addresses struct {
	// Denied are addresses that no probe may connect to.
	Denied []netip.Prefix
	// Private are additional private addresses, such as the ranges of this cluster's pods and
	// Services. Loopback, link-local and metadata addresses are always private.
	Private []netip.Prefix
	// NoPrivate refuses private addresses even to probes with spec.allowPrivate.
	NoPrivate bool
}

// Add runs the EndpointProbes of a cluster: the fleet cluster for an agent, or the hub's own
// cluster. If the cluster does not serve the kind yet, the controller waits for it.
func Add(mgr ctrl.Manager, local cluster.Cluster, o Options) error {
	changes := newChangeQueue()
	engine := run.New(run.Options{Cluster: o.Cluster, Changed: changes.add, Denied: o.Addresses.Denied,
		Private: o.Addresses.Private, NoPrivate: o.Addresses.NoPrivate})
	if err := o.Metrics.Register(engine); err != nil {
		return fmt.Errorf("register metrics of probes: %w", err)
	}
	watch := &targetWatch{client: local.GetClient(), cache: local.GetCache(), started: map[probes.Kind]bool{}}
	inner := &Reconciler{Client: local.GetClient(), Engine: engine, Cluster: o.Cluster,
		secrets: newSecretCache(local.GetAPIReader(), time.Now), watch: watch, now: time.Now}
	c, err := controller.New("endpointprobe", mgr, controller.Options{
		Reconciler: removalReconciler{client: local.GetClient(), engine: engine,
			next: kit.WrapReconciler(local.GetClient(), nil, inner)},
	})
	if err != nil {
		return fmt.Errorf("build probe controller: %w", err)
	}
	watch.controller = c
	for _, events := range []source.TypedSource[reconcile.Request]{
		source.Kind(local.GetCache(), &v1alpha1.EndpointProbe{},
			&handler.TypedEnqueueRequestForObject[*v1alpha1.EndpointProbe]{}),
		source.Channel(changes.out, &handler.TypedEnqueueRequestForObject[*v1alpha1.EndpointProbe]{}),
	} {
		if err := c.Watch(events); err != nil {
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

// changeQueue passes probes with changed results to the controller, each probe once, and limits
// the rate of status writes. Otherwise many probes that change at the same time would overload
// the API server or use up the client's rate limit.
type changeQueue struct {
	out chan event.TypedGenericEvent[*v1alpha1.EndpointProbe]

	mu   sync.Mutex
	keys map[types.NamespacedName]bool
	wake chan struct{}
}

// statusInterval is the minimum time between two status writes.
const statusInterval = 100 * time.Millisecond

// newChangeQueue returns an empty queue.
func newChangeQueue() *changeQueue {
	return &changeQueue{
		out:  make(chan event.TypedGenericEvent[*v1alpha1.EndpointProbe]),
		keys: map[types.NamespacedName]bool{}, wake: make(chan struct{}, 1),
	}
}

// add adds a probe to the queue, unless the queue has it already.
func (c *changeQueue) add(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[key] = true
	select {
	case c.wake <- struct{}{}:
	default: // Start is going to read the queue already
	}
}

// take removes one probe from the queue and returns its key; false if the queue is empty.
func (c *changeQueue) take() (key types.NamespacedName, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key = range c.keys {
		delete(c.keys, key)
		return key, true
	}
	return key, false
}

// Start implements manager.Runnable. It sends one probe after the other to out, with
// a pause of statusInterval.
func (c *changeQueue) Start(ctx context.Context) error {
	pause := time.NewTicker(statusInterval)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
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
