// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// freezeReader reads the FleetFreezes of the hub, for the agent of a cluster. It is
// a manager.Runnable, because a hub of an earlier version does not serve
// FleetFreezes until it is upgraded.
type freezeReader struct {
	live, cached client.Reader
	cluster      string
	// watch starts to watch FleetFreezes.
	watch func() error

	// isKnown is true if the hub has answered whether it serves FleetFreezes. isWatched is true
	// if there is a watch. lastError is the error of the last failed request.
	isKnown, isWatched atomic.Bool
	lastError          atomic.Pointer[string]
}

var errRefused = errors.New("the hub did not list its FleetFreezes")

// firstCheckInterval is how often the hub is queried for FleetFreezes until it has answered, and
// checkInterval is how often it is queried after that.
const (
	firstCheckInterval = 10 * time.Second
	checkInterval      = 2 * time.Minute
)

// Start implements manager.Runnable. It queries the hub until the context ends.
func (f *freezeReader) Start(ctx context.Context) error {
	for {
		err := f.check(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Nothing is changed on the cluster until it is known whether it is frozen")
		}
		wait := firstCheckInterval
		if err == nil && f.isKnown.Load() {
			wait = checkInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// check queries the API server and starts the watch if FleetFreezes are served. It also queries
// while there is a watch, because the cache of a forbidden watch keeps its old content forever.
func (f *freezeReader) check(ctx context.Context) error {
	err := f.live.List(ctx, &v1alpha1.FleetFreezeList{}, client.Limit(1))
	switch {
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
		f.isKnown.Store(true)
		return nil
	case err != nil:
		if apierrors.IsForbidden(err) { // after other errors, the known freezes stay valid
			f.isKnown.Store(false)
		}
		text := err.Error()
		f.lastError.Store(&text)
		return fmt.Errorf("list FleetFreezes: %w", err)
	}
	if !f.isWatched.Load() {
		if err := f.watch(); err != nil {
			return err
		}
		f.isWatched.Store(true)
	}
	f.isKnown.Store(true)
	return nil
}

// watchFreezes reconciles all OperatorInstalls when a FleetFreeze changes.
func watchFreezes(hub ctrl.Manager, installs controller.Controller) error {
	mapToAllInstalls := func(ctx context.Context, _ client.Object) []reconcile.Request {
		return kit.ListRequests(ctx, hub.GetClient(), &v1alpha1.OperatorInstallList{},
			func(*v1alpha1.OperatorInstall) bool { return true })
	}
	if err := installs.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.FleetFreeze{},
		handler.TypedEnqueueRequestsFromMapFunc(mapToAllInstalls))); err != nil {
		return fmt.Errorf("watch FleetFreezes: %w", err)
	}
	return nil
}

// isFrozen reports whether nothing may be changed on the cluster: because of a FleetFreeze, or
// because it is not known whether one exists.
func (f *freezeReader) isFrozen(ctx context.Context) bool {
	freeze, err := f.readFreeze(ctx)
	return freeze != nil || err != nil
}

// readFreeze returns the freeze of the cluster; nil if there is none. The error wraps
// engines.ErrNotReady if that is not known yet, and errRefused if the hub has refused the request.
func (f *freezeReader) readFreeze(ctx context.Context) (*v1alpha1.FleetFreeze, error) {
	switch {
	case !f.isKnown.Load() && f.lastError.Load() != nil:
		return nil, fmt.Errorf("%w: %s", errRefused, *f.lastError.Load())
	case !f.isKnown.Load():
		return nil, engines.ErrNotReady
	case !f.isWatched.Load(): // the hub does not serve FleetFreezes
		return nil, nil
	}
	var list v1alpha1.FleetFreezeList
	if err := f.cached.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list FleetFreezes: %w", err)
	}
	return holds.FreezeOf(list.Items, f.cluster), nil
}
