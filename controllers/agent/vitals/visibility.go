// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Visibility reports which data can be read from the caches without waiting and without the risk
// that old data is reported as current.
type Visibility struct {
	// Hub: the OperatorInstalls are known. They stay known while the hub cannot be reached,
	// because the operators that should run do not change.
	Hub bool
	// Cluster: the cached data of the cluster is current.
	Cluster bool
	// OLM: the cluster serves OLM's API.
	OLM bool
	// Conditions: the OperatorConditions are known. Old versions of OLM do not have them.
	Conditions bool
}

const (
	// refreshInterval is how often the caches and the cluster's API server are
	// checked.
	refreshInterval = 15 * time.Second
	// staleAfter is how long the API server may fail to answer before the content of the
	// caches is treated as outdated.
	staleAfter = 2 * time.Minute
	// requestTimeout limits the requests of one check.
	requestTimeout = 10 * time.Second
)

// cacheWatcher starts the caches that the metrics are read from, and checks whether their data
// is current. It is a manager.Runnable.
type cacheWatcher struct {
	hub      cache.Cache
	local    cluster.Cluster
	olm      func() (served, known bool)
	now      func() time.Time
	outcomes *outcomes

	mu         sync.Mutex
	installs   cache.Informer
	objects    []cache.Informer
	conditions cache.Informer
	reachedAt  time.Time
}

// Start checks the caches until ctx ends.
func (w *cacheWatcher) Start(ctx context.Context) error {
	for healthy := true; ; {
		err := w.refresh(ctx)
		if err != nil && healthy && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot read everything that the metrics of operators need; retrying",
				"every", refreshInterval)
		}
		healthy = err == nil
		wait := refreshInterval
		// The metrics must start soon after the data becomes visible.
		if visible := w.visibility(); !visible.Hub || !visible.Cluster {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// visibility returns which data can be read at the moment.
func (w *cacheWatcher) visibility() Visibility {
	w.mu.Lock()
	defer w.mu.Unlock()
	served, known := w.olm()
	visible := Visibility{
		Hub: w.installs != nil && w.installs.HasSynced(),
		OLM: served,
	}
	visible.Cluster = known && w.now().Sub(w.reachedAt) < staleAfter
	if served {
		visible.Cluster = visible.Cluster && len(w.objects) > 0
		for _, informer := range w.objects {
			visible.Cluster = visible.Cluster && informer.HasSynced()
		}
		visible.Conditions = w.conditions != nil && w.conditions.HasSynced()
	}
	return visible
}

// refresh starts the caches that can be started, and checks that the API server answers.
func (w *cacheWatcher) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := w.watchInstalls(ctx); err != nil {
		return err
	}
	served, known := w.olm()
	if !known {
		return nil
	}
	if err := w.checkAPIServer(ctx); err != nil {
		return err
	}
	if !served {
		return nil
	}
	return w.watchObjects(ctx)
}

// watchInstalls starts the cache of OperatorInstalls, unless it was started before.
func (w *cacheWatcher) watchInstalls(ctx context.Context) error {
	// Only this goroutine writes the field, so it is read without the lock. A request to the hub
	// can take long, and a scrape must not wait for it.
	if w.installs != nil {
		return nil
	}
	informer, err := w.hub.GetInformer(ctx, &v1alpha1.OperatorInstall{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch OperatorInstalls: %w", err)
	}
	if _, err := informer.AddEventHandler(w.outcomes); err != nil {
		return fmt.Errorf("watch OperatorInstalls: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.installs = informer
	return nil
}

// watchObjects starts the caches of OLM objects and Deployments. The install
// controller uses the same caches.
func (w *cacheWatcher) watchObjects(ctx context.Context) error {
	var all []cache.Informer
	for _, object := range []client.Object{
		newSubscription(), newCatalogSource(), &operatorsv1alpha1.ClusterServiceVersion{}, &appsv1.Deployment{},
	} {
		informer, err := w.local.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		all = append(all, informer)
	}
	conditions, err := w.local.GetCache().GetInformer(ctx, &operatorsv2.OperatorCondition{},
		cache.BlockUntilSynced(false))
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("watch OperatorConditions: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects = all
	if err == nil {
		w.conditions = conditions
	}
	return nil
}

// checkAPIServer sends a small request to verify that the API server answers this
// agent, and records the time.
func (w *cacheWatcher) checkAPIServer(ctx context.Context) error {
	if err := w.local.GetAPIReader().List(ctx, &appsv1.DeploymentList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("reach the cluster's API server: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reachedAt = w.now()
	return nil
}

// newSubscription returns an empty Subscription.
func newSubscription() *unstructured.Unstructured {
	return newOLMObject(operatorsv1alpha1.SubscriptionKind)
}

// newCatalogSource returns an empty CatalogSource.
func newCatalogSource() *unstructured.Unstructured {
	return newOLMObject(operatorsv1alpha1.CatalogSourceKind)
}

// newOLMObject returns an empty, unstructured OLM object of a kind.
func newOLMObject(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{
		Group: operatorsv1alpha1.GroupName, Version: operatorsv1alpha1.GroupVersion, Kind: kind,
	})
	return object
}
