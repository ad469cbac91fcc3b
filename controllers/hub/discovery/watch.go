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
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

// indexName is the field that sources are indexed by: the name of their FleetCluster.
const indexName = "name"

// watch watches one kind of source while the API server serves the kind.
// It runs on the leader only.
type watch struct {
	kind       discovery.Kind
	mgr        ctrl.Manager
	served     apidiscovery.DiscoveryInterface
	controller controller.Controller
	reconciler *Reconciler
	recheck    time.Duration

	view atomic.Pointer[view]
}

// view is a filled cache of a kind in one version. If the definition of the kind is deleted and
// created again, a new view replaces this view.
type view struct {
	kind    discovery.Kind
	version string
	cache   client.Reader
	stop    context.CancelFunc
}

// loadView returns the current view of the kind; nil while the cache is not filled.
func (w *watch) loadView() *view { return w.view.Load() }

// Start checks repeatedly whether the kind is served, until the context ends. An error is logged
// and does not stop the loop, because a problem with one source must not stop the hub.
func (w *watch) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.recheck)
	defer ticker.Stop()
	for {
		if err := w.startOrStop(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot watch a source of clusters", "kind", w.kind.Kind)
		}
		select {
		case <-ctx.Done():
			w.stopView()
			return nil
		case <-ticker.C:
		}
	}
}

// startOrStop starts the view if the kind is served, and stops the view if the kind or
// its version is not served.
func (w *watch) startOrStop(ctx context.Context) error {
	version, err := w.findServedVersion(ctx)
	if err != nil {
		return fmt.Errorf("check whether %s is served: %w", w.kind.Kind, err)
	}
	if v := w.loadView(); v != nil && v.version == version {
		return nil
	}
	w.stopView()
	if version == "" {
		return nil
	}
	return w.startView(ctx, version)
}

// findServedVersion returns the first of the kind's versions that is served; empty if
// none is served. The result can change: directly after the definition was created, an
// API server might serve only an older version for a short time.
func (w *watch) findServedVersion(ctx context.Context) (string, error) {
	for _, version := range w.kind.Versions {
		group := schema.GroupVersion{Group: w.kind.Group, Version: version}
		served, err := kit.IsServed(ctx, w.served, group, w.kind.Kind)
		if served || err != nil {
			return version, err
		}
	}
	return "", nil
}

// stopView stops the current view, if there is one.
func (w *watch) stopView() {
	if v := w.view.Swap(nil); v != nil {
		v.stop()
	}
}

// startView fills a cache and watches the kind with it. It then enqueues each source, and each
// FleetCluster of the kind, because a source might have been deleted before the watch started.
func (w *watch) startView(ctx context.Context, version string) error {
	objects, err := cache.New(w.mgr.GetConfig(), cache.Options{HTTPClient: w.mgr.GetHTTPClient(),
		Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper(), DefaultTransform: w.prune})
	if err != nil {
		return fmt.Errorf("make a cache of %ss: %w", w.kind.Kind, err)
	}
	watching, stop := context.WithCancel(ctx)
	v := &view{kind: w.kind, version: version, cache: objects, stop: stop}
	if err := w.fillCache(watching, objects, v.newObject()); err != nil {
		stop()
		return err
	}
	w.view.Store(v)
	log.FromContext(ctx).Info("Watches a source of clusters", "kind", w.kind.Kind, "version", version)
	var object client.Object = v.newObject()
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(w.observeSource(e.ObjectOld), w.observeSource(e.ObjectNew))
	}}
	events := source.Kind(objects, object, handler.EnqueueRequestsFromMapFunc(w.mapSourceToNames), changed)
	for _, watched := range []source.Source{events, source.Func(w.enqueueClusters)} {
		if err := w.controller.Watch(watched); err != nil {
			w.stopView() // startOrStop starts it again
			return fmt.Errorf("watch %ss: %w", w.kind.Kind, err)
		}
	}
	return nil
}

// fillTimeout limits how long the objects of a kind are read before the start of the view fails.
const fillTimeout = 5 * time.Minute

// fillCache indexes the objects by name, starts the cache in the background and waits until the
// cache is filled, at most for fillTimeout.
func (w *watch) fillCache(ctx context.Context, objects cache.Cache, kind client.Object) error {
	err := objects.IndexField(ctx, kind, indexName, func(o client.Object) []string {
		return []string{w.observeSource(o).Name()}
	})
	if err != nil {
		return fmt.Errorf("index %ss by name: %w", w.kind.Kind, err)
	}
	go func() {
		if err := objects.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "A cache of a source of clusters ended", "kind", w.kind.Kind)
		}
	}()
	limited, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	if !objects.WaitForCacheSync(limited) {
		return fmt.Errorf("%ss could not be read: check that the hub may list and watch %s", w.kind.Kind,
			w.kind.Definition())
	}
	return nil
}

// prune removes the fields that are not used, before an object is cached.
func (w *watch) prune(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return w.kind.Prune(u), nil
	}
	return object, nil
}

// observeSource converts an object of the kind to a source.
func (w *watch) observeSource(o client.Object) discovery.Source {
	return w.kind.Observe(o.(*unstructured.Unstructured))
}

// mapSourceToNames returns requests for the FleetClusters that a source affects: the
// FleetCluster with its name, and each FleetCluster that names the source.
func (w *watch) mapSourceToNames(ctx context.Context, o client.Object) []reconcile.Request {
	s := w.observeSource(o)
	requests := []reconcile.Request{newRequest(s.Name())}
	clusters, err := w.reconciler.listClustersOfSource(ctx, s.Ref)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the FleetClusters of a source", "source",
			discovery.DescribeSource(s.Ref))
	}
	for i := range clusters {
		if clusters[i].Name != s.Name() {
			requests = append(requests, newRequest(clusters[i].Name))
		}
	}
	return requests
}

// enqueueClusters enqueues the FleetClusters whose source has the watch's kind.
func (w *watch) enqueueClusters(ctx context.Context,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, request := range kit.ListRequests(ctx, w.reconciler.Client, &v1alpha1.FleetClusterList{},
		func(c *v1alpha1.FleetCluster) bool {
			if c.Spec.SourceRef == nil {
				return false
			}
			kind, known := discovery.KindOf(*c.Spec.SourceRef)
			return known && kind.Kind == w.kind.Kind
		}) {
		queue.Add(request)
	}
	return nil
}
