// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// watchRollouts keeps the rollouts and installs of an operator, and the clusters of the fleet, in memory. The channel
// receives a value after a change.
func (a *Env) watchRollouts(ctx context.Context, operator client.ObjectKey) (client.Reader, <-chan struct{}, error) {
	config, err := a.restConfig()
	if err != nil {
		return nil, nil, AddKubeconfigHint(err)
	}
	installs := labels.SelectorFromSet(v1alpha1.OperatorReference(operator).Labels())
	watched, err := cache.New(config, cache.Options{Scheme: hub.Scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.OperatorRollout{}: {Namespaces: map[string]cache.Config{operator.Namespace: {}}},
			&v1alpha1.ManagedOperator{}: {Namespaces: map[string]cache.Config{operator.Namespace: {}}},
			&v1alpha1.OperatorInstall{}: {Label: installs},
		}})
	if err != nil {
		return nil, nil, fmt.Errorf("watch rollouts: %w", err)
	}
	changed := make(chan struct{}, 1)
	if err := addEventHandlers(ctx, watched, changed); err != nil {
		return nil, nil, err
	}
	go func() { _ = watched.Start(ctx) }() // it ends when ctx ends, and returns no other error
	if !watched.WaitForCacheSync(ctx) {
		return nil, nil, fmt.Errorf("watch rollouts: %w", context.Cause(ctx))
	}
	return watched, changed, nil
}

// addEventHandlers makes every change of the watched objects send a value to changed.
func addEventHandlers(ctx context.Context, watched cache.Cache, changed chan<- struct{}) error {
	signalChange := func() {
		select {
		case changed <- struct{}{}:
		default: // a value is already in the channel
		}
	}
	for _, kind := range []client.Object{&v1alpha1.OperatorRollout{}, &v1alpha1.OperatorInstall{},
		&v1alpha1.FleetCluster{}, &v1alpha1.ManagedOperator{}} {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch rollouts: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { signalChange() }, UpdateFunc: func(any, any) { signalChange() },
			DeleteFunc: func(any) { signalChange() },
		}); err != nil {
			return fmt.Errorf("watch rollouts: %w", err)
		}
	}
	return nil
}
