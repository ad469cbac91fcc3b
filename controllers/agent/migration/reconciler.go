// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration stores the custom resources of operators again after a release changed their
// storage version, and removes the old versions from status.storedVersions of their definitions.
// It does so only if an OperatorInstall requests it. Package rollouts/migration decides.
package migration

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/migration"
)

// sliceDelay is the delay between two slices of a migration.
const sliceDelay = 10 * time.Millisecond

// Definitions reads the definitions of operators that the engine has installed on the fleet
// cluster, without the cache.
type Definitions interface {
	// ListOwned returns the definitions of the custom resources of a bundle. The error is a NotFound
	// if the bundle is not installed in the namespace.
	ListOwned(ctx context.Context, namespace, bundle string) ([]apiextensionsv1.CustomResourceDefinition, error)
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Reconciler migrates the custom resources of operators, one operator after the other.
type Reconciler struct {
	// Hub reads OperatorInstalls from the cache, and writes their status.
	// HubLive reads without the cache.
	Hub     client.Client
	HubLive client.Reader
	// Definitions reads the definitions of installed operators, and Writer creates access
	// reviews to check the agent's permissions on the fleet cluster.
	Definitions Definitions
	Writer      client.Writer
	Objects     Objects
	Events      events.EventRecorder
	Now         func() time.Time
	// Veto returns the veto of the cluster's owner; nil if there is none.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// Freeze returns the FleetFreeze of the cluster; nil if there is none.
	Freeze func(ctx context.Context) (*v1alpha1.FleetFreeze, error)
}

// Reconcile implements reconcile.Reconciler. It migrates one slice of an operator's objects and
// reports the progress before and after it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	install := &v1alpha1.OperatorInstall{}
	if err := r.HubLive.Get(ctx, request.NamespacedName, install); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("get OperatorInstall: %w", err))
	}
	in, err := r.observe(ctx, install)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe custom resources: %w", err)
	}
	next := migration.Next(in)
	if err := r.writeStatus(ctx, install, next); err != nil || next.Migrate == nil {
		return ctrl.Result{RequeueAfter: next.RecheckAfter}, err
	}
	workErr := r.migrate(ctx, install, &next)
	if workErr != nil {
		next.SetInterrupted(in, workErr)
	}
	if err := r.writeStatus(ctx, install, next); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: sliceDelay}, workErr
}

// observe gathers the input of migration.Next: the definitions, the agent's permissions for
// their objects, the freeze and the veto.
func (r *Reconciler) observe(ctx context.Context, install *v1alpha1.OperatorInstall) (migration.Input, error) {
	in := migration.Input{Now: r.Now(), Install: install}
	if !migration.IsRequested(install) || install.Status.Installed == nil || install.Spec.Admission == nil {
		return in, nil
	}
	definitions, err := r.Definitions.ListOwned(ctx, install.Spec.Admission.Release.TargetNamespace(),
		install.Status.Installed.Bundle)
	if err != nil {
		return in, client.IgnoreNotFound(err)
	}
	in.Installed = true
	for i := range definitions {
		definition := migration.Observe(&definitions[i])
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

// isPermitted reports whether the agent has all permissions that the
// migration of a definition needs.
func (r *Reconciler) isPermitted(ctx context.Context, d migration.Definition) (bool, error) {
	for _, needed := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Group: d.Group, Resource: d.Plural}, {Verb: "patch", Group: d.Group, Resource: d.Plural},
		{Verb: "patch", Group: definitionResource.Group, Resource: definitionResource.Resource, Subresource: "status",
			Name: d.Name()},
	} {
		permitted, err := kit.IsPermitted(ctx, r.Writer, needed)
		if err != nil || !permitted {
			return false, err
		}
	}
	return true, nil
}

// migrate continues with the chosen definition for one slice, and records the progress in next.
// After the last object, it removes the old versions from the definition's status, unless an
// object failed or the definition has changed.
func (r *Reconciler) migrate(ctx context.Context, install *v1alpha1.OperatorInstall, next *migration.Decision) error {
	p, d := next.CurrentProgress(), *next.Migrate
	err := migrateSlice(ctx, r.Objects, d, p, r.Now, func(ctx context.Context) (bool, error) {
		return r.isCurrent(ctx, install)
	})
	if err != nil || p.EndTime == nil || p.Failed > 0 { // some objects are not stored again yet
		return err
	}
	live, err := r.Definitions.Get(ctx, d.Name())
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if observed := migration.Observe(live); observed.Generation != d.Generation || observed.Storage != d.Storage {
		return nil // the definition has changed, so the migration starts again
	}
	if err := r.Objects.Finish(ctx, d.Name(), live.ResourceVersion, d.Storage); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Custom resources stored again", "definition", d.Name(), "version", d.Storage,
		"objects", p.Objects)
	kit.Emit(r.Events, install, "StorageMigrated", "Migrate",
		"Stored %s of %s again as %s; no object is stored as %s", phrase.Count(p.Objects, "object"),
		d.Name(), d.Storage, phrase.First(p.From, len(p.From)))
	return nil
}

// isCurrent reports whether the install is unchanged since the migration was decided. The cache
// can be older than the install, so a lower generation counts as unchanged.
func (r *Reconciler) isCurrent(ctx context.Context, install *v1alpha1.OperatorInstall) (bool, error) {
	cached := &v1alpha1.OperatorInstall{}
	err := r.Hub.Get(ctx, client.ObjectKeyFromObject(install), cached)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get OperatorInstall: %w", err)
	}
	return cached.UID == install.UID && cached.Generation <= install.Generation && cached.DeletionTimestamp.IsZero(),
		nil
}

// writeStatus writes the parts of the status that this controller owns. The install controller
// writes the other parts at the same time, so a conflict is tried again.
func (r *Reconciler) writeStatus(ctx context.Context, install *v1alpha1.OperatorInstall,
	next migration.Decision) error {
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
		r.emitProblemEvent(before, next)
		return nil
	})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("report the migration of custom resources: %w", err))
	}
	return nil
}

// emitProblemEvent emits an Event if a migration has failed or is forbidden, and
// that was not reported before.
func (r *Reconciler) emitProblemEvent(previous *v1alpha1.OperatorInstall, next migration.Decision) {
	oldReason := conditions.Get(previous.Status.Conditions, v1alpha1.ConditionStorageMigrated).Reason
	if next.Condition == nil || next.Condition.Reason == oldReason {
		return
	}
	switch next.Condition.Reason {
	case v1alpha1.ReasonStorageMigrationFailed, v1alpha1.ReasonStorageMigrationForbidden:
		kit.Emit(r.Events, previous, next.Condition.Reason, "Migrate", "%s",
			next.Condition.Message)
	}
}
