// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration has the custom resources of operators stored anew after a
// release changed their storage version, and removes the old versions from
// status.storedVersions of their definitions. It does so only where an
// OperatorInstall asks for it. What is decided is in package plan.
package migration

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/migration/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	"github.com/bellwether-dev/bellwether/phrase"
)

// again is how soon the next slice follows.
const again = 10 * time.Millisecond

// Reconciler migrates the custom resources of one operator after the other.
type Reconciler struct {
	// Hub reads OperatorInstalls from the cache, and writes their status. HubLive reads
	// past the cache.
	Hub     client.Client
	HubLive client.Reader
	// Live reads the fleet cluster directly, and Writer creates reviews of what the
	// agent may do there.
	Live    client.Reader
	Writer  client.Writer
	Objects Objects
	Events  events.EventRecorder
	Now     func() time.Time
	// Veto returns what the cluster's owner refuses; nil if that is nothing.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// Freeze returns the FleetFreeze of the cluster; nil if there is none.
	Freeze func(ctx context.Context) (*v1alpha1.FleetFreeze, error)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	install := &v1alpha1.OperatorInstall{}
	if err := r.HubLive.Get(ctx, request.NamespacedName, install); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("get OperatorInstall: %w", err))
	}
	in, err := r.observe(ctx, install)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe custom resources: %w", err)
	}
	next := plan.Next(in)
	if err := r.report(ctx, install, next); err != nil || next.Migrate == nil {
		return ctrl.Result{RequeueAfter: next.RecheckAfter}, err
	}
	workErr := r.migrate(ctx, install, &next)
	if workErr != nil {
		next.Interrupted(in, workErr)
	}
	if err := r.report(ctx, install, next); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, workErr
}

// observe reads the definitions and what the agent may do with their objects.
func (r *Reconciler) observe(ctx context.Context, install *v1alpha1.OperatorInstall) (plan.Input, error) {
	in := plan.Input{Now: r.Now(), Install: install}
	if !plan.IsAsked(install) || install.Status.Installed == nil || install.Spec.Admission == nil {
		return in, nil
	}
	found, err := olmv0.OwnedDefinitions(ctx, r.Live, install.Spec.Admission.Release.TargetNamespace(),
		install.Status.Installed.Bundle)
	if err != nil {
		return in, client.IgnoreNotFound(err)
	}
	in.Installed = true
	for i := range found {
		definition := plan.Observe(&found[i])
		in.Definitions = append(in.Definitions, definition)
		permitted, err := r.isPermitted(ctx, definition)
		if err != nil {
			return in, err
		}
		if !permitted {
			in.Forbidden = append(in.Forbidden, definition.Name())
		}
	}
	if in.Freeze, err = r.Freeze(ctx); err != nil {
		return in, err
	}
	in.Veto, err = r.Veto(ctx)
	return in, err
}

// isPermitted tells whether the agent may do all that a migration needs.
func (r *Reconciler) isPermitted(ctx context.Context, d plan.Definition) (bool, error) {
	for _, needed := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Group: d.Group, Resource: d.Plural}, {Verb: "patch", Group: d.Group, Resource: d.Plural},
		{Verb: "patch", Group: definitions.Group, Resource: definitions.Resource, Subresource: "status",
			Name: d.Name()},
	} {
		permitted, err := kit.IsPermitted(ctx, r.Writer, needed)
		if err != nil || !permitted {
			return false, err
		}
	}
	return true, nil
}

// migrate goes on with the definition that was chosen, for a while. At the end of it
// the definition says that nothing is stored in an old version any more.
func (r *Reconciler) migrate(ctx context.Context, install *v1alpha1.OperatorInstall, next *plan.Decision) error {
	p, d := next.Current(), *next.Migrate
	err := pass(ctx, r.Objects, d, p, r.Now, func(ctx context.Context) (bool, error) {
		return r.isCurrent(ctx, install)
	})
	if err != nil || p.EndTime == nil || p.Failed > 0 {
		return err
	}
	live, err := olmv0.Definition(ctx, r.Live, d.Name())
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if now := plan.Observe(live); now.Generation != d.Generation || now.Storage != d.Storage {
		return nil // the definition has changed, so that the migration begins again
	}
	if err := r.Objects.Finish(ctx, d.Name(), live.ResourceVersion, d.Storage); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Custom resources stored anew", "definition", d.Name(), "version", d.Storage,
		"objects", p.Objects)
	kit.Emit(r.Events, install, "StorageMigrated", "Migrate",
		"Stored %s of %s anew as %s; objects may not be stored as %s any more", phrase.Count(p.Objects, "object"),
		d.Name(), d.Storage, phrase.First(p.From, len(p.From)))
	return nil
}

// isCurrent tells whether an install is still as a migration was decided for.
func (r *Reconciler) isCurrent(ctx context.Context, install *v1alpha1.OperatorInstall) (bool, error) {
	now := &v1alpha1.OperatorInstall{}
	err := r.Hub.Get(ctx, client.ObjectKeyFromObject(install), now)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get OperatorInstall: %w", err)
	}
	return now.UID == install.UID && now.Generation <= install.Generation && now.DeletionTimestamp.IsZero(), nil
}

// report writes the parts of the status that are this controller's. The install
// controller writes the others at the same time, so a conflict is tried again.
func (r *Reconciler) report(ctx context.Context, install *v1alpha1.OperatorInstall, next plan.Decision) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.HubLive.Get(ctx, client.ObjectKeyFromObject(install), install); err != nil {
			return err
		}
		before := install.DeepCopy()
		install.Status.StorageMigrations = next.Progress
		if next.Condition == nil {
			meta.RemoveStatusCondition(&install.Status.Conditions, v1alpha1.ConditionStorageMigrated)
		} else {
			meta.SetStatusCondition(&install.Status.Conditions, *next.Condition)
		}
		if equality.Semantic.DeepEqual(before.Status, install.Status) {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Hub.Status().Patch(ctx, install, patch); err != nil {
			return err
		}
		r.announce(before, next)
		return nil
	})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("report the migration of custom resources: %w", err))
	}
	return nil
}

// announce emits an Event when a migration cannot go on.
func (r *Reconciler) announce(before *v1alpha1.OperatorInstall, next plan.Decision) {
	was := conditions.Get(before.Status.Conditions, v1alpha1.ConditionStorageMigrated).Reason
	if next.Condition == nil || next.Condition.Reason == was {
		return
	}
	switch next.Condition.Reason {
	case v1alpha1.ReasonStorageMigrationFailed, v1alpha1.ReasonStorageMigrationForbidden:
		kit.Emit(r.Events, before, next.Condition.Reason, "Migrate", "%s",
			next.Condition.Message)
	}
}
