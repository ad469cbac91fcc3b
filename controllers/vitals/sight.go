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

// Sight is what can be read from the caches right now, without waiting and
// without telling of a past as if it were the present.
type Sight struct {
	// Hub: the OperatorInstalls are known. Once they are, they stay known: what
	// should run does not change because the hub cannot be reached.
	Hub bool
	// Cluster: what is known of the cluster is current.
	Cluster bool
	// OLM: the cluster serves OLM's API.
	OLM bool
	// Conditions: the OperatorConditions are known. Old OLMs have none.
	Conditions bool
}

const (
	// lookEvery is how often caches and the cluster's API server are looked at.
	lookEvery = 15 * time.Second
	// staleAfter is how long the API server may fail to answer before what the
	// caches hold is no longer told as the present.
	staleAfter = 2 * time.Minute
	// askFor bounds one question to it.
	askFor = 10 * time.Second
)

// sight keeps the caches that the vital signs are read from, and knows whether
// they can be. It is a manager.Runnable.
type sight struct {
	hub   cache.Cache
	local cluster.Cluster
	olm   func() (served, known bool)
	now   func() time.Time
	ends  *outcomes

	mu         sync.Mutex
	installs   cache.Informer
	objects    []cache.Informer
	conditions cache.Informer
	reached    time.Time
}

// Start looks until ctx ends.
func (s *sight) Start(ctx context.Context) error {
	for well := true; ; {
		err := s.refresh(ctx)
		if err != nil && well && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot see all of what the metrics of operators are about; trying again",
				"every", lookEvery)
		}
		well = err == nil
		wait := lookEvery
		if now := s.look(); !now.Hub || !now.Cluster {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// look says what can be read.
func (s *sight) look() Sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	served, known := s.olm()
	now := Sight{
		Hub: s.installs != nil && s.installs.HasSynced(),
		OLM: served,
	}
	now.Cluster = known && s.now().Sub(s.reached) < staleAfter
	if served {
		now.Cluster = now.Cluster && len(s.objects) > 0
		for _, informer := range s.objects {
			now.Cluster = now.Cluster && informer.HasSynced()
		}
		now.Conditions = s.conditions != nil && s.conditions.HasSynced()
	}
	return now
}

// refresh starts the caches that can be started and asks the API server for a
// sign of life.
func (s *sight) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	if err := s.watchInstalls(ctx); err != nil {
		return err
	}
	served, known := s.olm()
	if !known {
		return nil
	}
	if err := s.ask(ctx); err != nil {
		return err
	}
	if !served {
		return nil
	}
	return s.watchObjects(ctx)
}

func (s *sight) watchInstalls(ctx context.Context) error {
	// Only this goroutine writes it. Asking a hub may take long, and a scrape must
	// not wait for that.
	if s.installs != nil {
		return nil
	}
	informer, err := s.hub.GetInformer(ctx, &v1alpha1.OperatorInstall{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch OperatorInstalls: %w", err)
	}
	if _, err := informer.AddEventHandler(s.ends); err != nil {
		return fmt.Errorf("watch OperatorInstalls: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installs = informer
	return nil
}

// watchObjects shares the caches that the install controller has of the same
// objects.
func (s *sight) watchObjects(ctx context.Context) error {
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

// ask asks the API server for the least that proves it answers this agent.
func (s *sight) ask(ctx context.Context) error {
	if err := s.local.GetAPIReader().List(ctx, &appsv1.DeploymentList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("reach the cluster's API server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = s.now()
	return nil
}

func subscription() *unstructured.Unstructured { return ofOLM(operatorsv1alpha1.SubscriptionKind) }

func catalogSource() *unstructured.Unstructured { return ofOLM(operatorsv1alpha1.CatalogSourceKind) }

func ofOLM(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{
		Group: operatorsv1alpha1.GroupName, Version: operatorsv1alpha1.GroupVersion, Kind: kind,
	})
	return object
}
