// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apidiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/discovery/sources"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// indexName is the field that sources are indexed by: the name of their FleetCluster.
const indexName = "name"

// watch watches one kind of source while the API server serves it. It runs on the leader
// only.
type watch struct {
	kind       sources.Kind
	mgr        ctrl.Manager
	served     apidiscovery.DiscoveryInterface
	controller controller.Controller
	reconciler *Reconciler
	recheck    time.Duration

	seen atomic.Pointer[view]
}

// view is a full cache of a kind in one version. A definition that goes and comes again has
// another one.
type view struct {
	kind    sources.Kind
	version string
	cache   client.Reader
	stop    context.CancelFunc
}

// current is what the hub sees of the kind; nil while it does not see all of it.
func (w *watch) current() *view { return w.seen.Load() }

// Start looks again and again whether the kind is served. An error is logged and tried
// again: one source must not stop the hub.
func (w *watch) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.recheck)
	defer ticker.Stop()
	for {
		if err := w.check(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot watch a source of clusters", "kind", w.kind.Kind)
		}
		select {
		case <-ctx.Done():
			w.drop()
			return nil
		case <-ticker.C:
		}
	}
}

// check starts to watch a kind that is served, and stops to watch one that is not.
func (w *watch) check(ctx context.Context) error {
	version, err := w.find(ctx)
	if err != nil {
		return fmt.Errorf("look whether %s is served: %w", w.kind.Kind, err)
	}
	if seen := w.current(); seen != nil && seen.version == version {
		return nil
	}
	w.drop()
	if version == "" {
		return nil
	}
	return w.begin(ctx, version)
}

// find returns the version that the kind is to be read in: the first of its versions that is served; empty if none is.
// An API server that has just got the definition may serve an older version first.
func (w *watch) find(ctx context.Context) (string, error) {
	for _, version := range w.kind.Versions {
		group := schema.GroupVersion{Group: w.kind.Group, Version: version}
		served, err := kit.IsServed(ctx, w.served, group, w.kind.Kind)
		if served || err != nil {
			return version, err
		}
	}
	return "", nil
}

func (w *watch) drop() {
	if seen := w.seen.Swap(nil); seen != nil {
		seen.stop()
	}
}

// begin fills a cache, and then wakes the reconciler for each source, and for each
// FleetCluster whose source may have gone meanwhile.
func (w *watch) begin(ctx context.Context, version string) error {
	objects, err := cache.New(w.mgr.GetConfig(), cache.Options{HTTPClient: w.mgr.GetHTTPClient(),
		Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper(), DefaultTransform: w.prune})
	if err != nil {
		return fmt.Errorf("make a cache of %ss: %w", w.kind.Kind, err)
	}
	watching, stop := context.WithCancel(ctx)
	seen := &view{kind: w.kind, version: version, cache: objects, stop: stop}
	if err := w.fill(watching, objects, seen.object()); err != nil {
		stop()
		return err
	}
	w.seen.Store(seen)
	log.FromContext(ctx).Info("Watches a source of clusters", "kind", w.kind.Kind, "version", version)
	var object client.Object = seen.object()
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(w.observe(e.ObjectOld), w.observe(e.ObjectNew))
	}}
	events := source.Kind(objects, object, handler.EnqueueRequestsFromMapFunc(w.names), changed)
	if err := w.controller.Watch(events); err != nil {
		return fmt.Errorf("watch %ss: %w", w.kind.Kind, err)
	}
	return w.controller.Watch(source.Func(w.enqueueClusters))
}

// maxFill is how long the objects of a kind may take to be read.
const maxFill = 5 * time.Minute

func (w *watch) fill(ctx context.Context, objects cache.Cache, kind client.Object) error {
	err := objects.IndexField(ctx, kind, indexName, func(o client.Object) []string {
		return []string{w.observe(o).Name()}
	})
	if err != nil {
		return fmt.Errorf("index %ss by name: %w", w.kind.Kind, err)
	}
	go func() {
		if err := objects.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "A cache of a source of clusters ended", "kind", w.kind.Kind)
		}
	}()
	limited, cancel := context.WithTimeout(ctx, maxFill)
	defer cancel()
	if !objects.WaitForCacheSync(limited) {
		return fmt.Errorf("%ss could not be read: check that the hub may list and watch %s", w.kind.Kind,
			w.kind.Definition())
	}
	return nil
}

func (w *watch) prune(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return w.kind.Prune(u), nil
	}
	return object, nil
}

func (w *watch) observe(o client.Object) sources.Source {
	return w.kind.Observe(o.(*unstructured.Unstructured))
}

// names are those of FleetClusters that a source matters to: its own, and that of each
// FleetCluster that names it.
func (w *watch) names(ctx context.Context, o client.Object) []reconcile.Request {
	s := w.observe(o)
	requests := []reconcile.Request{requestFor(s.Name())}
	named, err := w.reconciler.namedBy(ctx, s.Ref)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the FleetClusters of a source", "source", sources.Describe(s.Ref))
	}
	for i := range named {
		if named[i].Name != s.Name() {
			requests = append(requests, requestFor(named[i].Name))
		}
	}
	return requests
}

// enqueueClusters wakes the reconciler for the FleetClusters of the kind.
func (w *watch) enqueueClusters(ctx context.Context,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, request := range kit.Requests(ctx, w.reconciler.Client, &v1alpha1.FleetClusterList{},
		func(c *v1alpha1.FleetCluster) bool {
			if c.Spec.SourceRef == nil {
				return false
			}
			kind, known := sources.Of(*c.Spec.SourceRef)
			return known && kind.Kind == w.kind.Kind
		}) {
		queue.Add(request)
	}
	return nil
}
