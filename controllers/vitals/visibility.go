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

// Visibility says what can be read from the caches now, without waiting and
// without reporting old data as current.
type Visibility struct {
	// Hub: the OperatorInstalls are known. They stay known while the hub cannot
	// be reached, because what should run does not change.
	Hub bool
	// Cluster: what is known of the cluster is current.
	Cluster bool
	// OLM: the cluster serves OLM's API.
	OLM bool
	// Conditions: the OperatorConditions are known. Old versions of OLM have
	// none.
	Conditions bool
}

const (
	// refreshInterval is how often the caches and the cluster's API server are
	// checked.
	refreshInterval = 15 * time.Second
	// staleAfter is how long the API server may not answer before the content
	// of the caches is no longer reported as current.
	staleAfter = 2 * time.Minute
	// requestTimeout bounds one request to the API server.
	requestTimeout = 10 * time.Second
)

// cacheWatcher starts the caches that the metrics are read from, and checks
// whether they are current. It is a manager.Runnable.
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
func (s *cacheWatcher) Start(ctx context.Context) error {
	for healthy := true; ; {
		err := s.refresh(ctx)
		if err != nil && healthy && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot read everything that the metrics of operators need; retrying",
				"every", refreshInterval)
		}
		healthy = err == nil
		wait := refreshInterval
		if visible := s.visibility(); !visible.Hub || !visible.Cluster {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// visibility returns what can be read now.
func (s *cacheWatcher) visibility() Visibility {
	s.mu.Lock()
	defer s.mu.Unlock()
	served, known := s.olm()
	visible := Visibility{
		Hub: s.installs != nil && s.installs.HasSynced(),
		OLM: served,
	}
	visible.Cluster = known && s.now().Sub(s.reachedAt) < staleAfter
	if served {
		visible.Cluster = visible.Cluster && len(s.objects) > 0
		for _, informer := range s.objects {
			visible.Cluster = visible.Cluster && informer.HasSynced()
		}
		visible.Conditions = s.conditions != nil && s.conditions.HasSynced()
	}
	return visible
}

// refresh starts the caches that can be started and checks that the API server
// answers.
func (s *cacheWatcher) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.watchInstalls(ctx); err != nil {
		return err
	}
	served, known := s.olm()
	if !known {
		return nil
	}
	if err := s.checkAPIServer(ctx); err != nil {
		return err
	}
	if !served {
		return nil
	}
	return s.watchObjects(ctx)
}

func (s *cacheWatcher) watchInstalls(ctx context.Context) error {
	// Only this goroutine writes it. A request to the hub may take long, and a
	// scrape must not wait for it.
	if s.installs != nil {
		return nil
	}
	informer, err := s.hub.GetInformer(ctx, &v1alpha1.OperatorInstall{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch OperatorInstalls: %w", err)
	}
	if _, err := informer.AddEventHandler(s.outcomes); err != nil {
		return fmt.Errorf("watch OperatorInstalls: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installs = informer
	return nil
}

// watchObjects shares the caches of the install controller for the same
// objects.
func (s *cacheWatcher) watchObjects(ctx context.Context) error {
	var all []cache.Informer
	for _, object := range []client.Object{
		subscription(), catalogSource(), &operatorsv1alpha1.ClusterServiceVersion{}, &appsv1.Deployment{},
	} {
		informer, err := s.local.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		all = append(all, informer)
	}
	conditions, err := s.local.GetCache().GetInformer(ctx, &operatorsv2.OperatorCondition{},
		cache.BlockUntilSynced(false))
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("watch OperatorConditions: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = all
	if err == nil {
		s.conditions = conditions
	}
	return nil
}

// checkAPIServer sends the smallest request that proves that the API server
// answers this agent.
func (s *cacheWatcher) checkAPIServer(ctx context.Context) error {
	if err := s.local.GetAPIReader().List(ctx, &appsv1.DeploymentList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("reach the cluster's API server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reachedAt = s.now()
	return nil
}

func subscription() *unstructured.Unstructured { return olmObject(operatorsv1alpha1.SubscriptionKind) }

func catalogSource() *unstructured.Unstructured {
	return olmObject(operatorsv1alpha1.CatalogSourceKind)
}

func olmObject(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{
		Group: operatorsv1alpha1.GroupName, Version: operatorsv1alpha1.GroupVersion, Kind: kind,
	})
	return object
}
