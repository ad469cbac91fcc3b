// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

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
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
)

// freezes are the FleetFreezes of the hub, for the agent of a cluster. It is a manager.Runnable: a hub of an earlier
// version does not serve them.
type freezes struct {
	live, cached client.Reader
	cluster      string
	// watch begins to watch FleetFreezes.
	watch func() error

	// known says that the hub was asked for the kind, and watched that there is a watch. refused is why it does not
	// answer.
	known, watched atomic.Bool
	refused        atomic.Pointer[string]
}

var errRefused = errors.New("the hub does not tell")

// kindInterval is how often the hub is asked whether it serves FleetFreezes, until it has answered, and lookInterval
// how often then.
const (
	kindInterval = 10 * time.Second
	lookInterval = 2 * time.Minute
)

// Start implements manager.Runnable.
func (f *freezes) Start(ctx context.Context) error {
	for {
		err := f.look(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Nothing is changed on the cluster until it is known whether it is frozen")
		}
		wait := kindInterval
		if err == nil && f.known.Load() {
			wait = lookInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// look asks the API server, also while there is a watch: one that was forbidden keeps what it has seen for ever.
func (f *freezes) look(ctx context.Context) error {
	err := f.live.List(ctx, &v1alpha1.FleetFreezeList{}, client.Limit(1))
	switch {
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
		f.known.Store(true)
		return nil
	case err != nil:
		if apierrors.IsForbidden(err) { // else what was known is known
			f.known.Store(false)
		}
		text := err.Error()
		f.refused.Store(&text)
		return fmt.Errorf("list FleetFreezes: %w", err)
	}
	if !f.watched.Load() {
		if err := f.watch(); err != nil {
			return err
		}
		f.watched.Store(true)
	}
	f.known.Store(true)
	return nil
}

// watchFreezes has the controller of OperatorInstalls look at all of them when a FleetFreeze changes.
func watchFreezes(hub ctrl.Manager, installs controller.Controller) error {
	all := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return kit.Requests(ctx, hub.GetClient(), &v1alpha1.OperatorInstallList{},
			func(*v1alpha1.OperatorInstall) bool { return true })
	})
	if err := installs.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.FleetFreeze{}, all)); err != nil {
		return fmt.Errorf("watch FleetFreezes: %w", err)
	}
	return nil
}

// stop tells whether nothing may be changed on the cluster: a FleetFreeze says so, or it is not known whether one does.
func (f *freezes) stop(ctx context.Context) bool {
	freeze, err := f.current(ctx)
	return freeze != nil || err != nil
}

// current returns the freeze of the cluster; nil if there is none. The error wraps engines.ErrNotReady where that is
// not known yet.
func (f *freezes) current(ctx context.Context) (*v1alpha1.FleetFreeze, error) {
	switch {
	case !f.known.Load() && f.refused.Load() != nil:
		return nil, fmt.Errorf("%w: %s", errRefused, *f.refused.Load())
	case !f.known.Load():
		return nil, engines.ErrNotReady
	case !f.watched.Load():
		return nil, nil
	}
	var list v1alpha1.FleetFreezeList
	if err := f.cached.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list FleetFreezes: %w", err)
	}
	return freeze.Of(list.Items, f.cluster), nil
}
